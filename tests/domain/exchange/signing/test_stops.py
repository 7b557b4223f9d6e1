"""Stops: the orders that a maker ends at its exchange by a timestamp, or a Safe for its first owner."""

import pytest
from tests.rigs.orders.version_2 import a_v2_buy, some_v2_fields
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    NOW_MS,
    a_buy,
    a_placing,
    a_trading_state,
    an_address,
    an_observation,
)

from foretell.domain.errors.order import OrderStopped, OwnerSigningOff
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import NonceSeen, StopSeen
from foretell.domain.exchange.effects import CloseReason, OrderClosed
from foretell.domain.exchange.observe_chain import split_observation
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.exchange.signing.stops import (
    TIMESTAMP_MS_MAX,
    StopKind,
    is_stopped,
    standing_of,
)
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import State
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address

ALICE = an_address("alice")
SAFE = an_address("a safe")
EARLY = some_v2_fields(timestamp_ms=NOW_MS - 1)


def stop(state: State, maker: Address, kind: StopKind, value: int) -> list[OrderClosed]:
    """Have the state see a stop, and return the orders that it closed."""
    seen = StopSeen(EXCHANGE, maker, kind, value)
    effects = apply(state, an_observation(stops=(seen,))).effects
    return [each for each in effects if isinstance(each, OrderClosed)]


def a_safe_order(owner: str = "alice", *, is_v2: bool, salt: str = "1") -> SignedOrder:
    """Return a BUY that the first owner of the Safe signed alone."""
    make = a_v2_buy if is_v2 else a_buy
    return make(owner, maker=SAFE, signature_type=SignatureType.SAFE, salt=salt)


def test_a_timestamp_ends_the_earlier_orders_of_version_2_alone() -> None:
    state = a_trading_state()
    early = a_placing(a_v2_buy("alice", v2=EARLY))
    kept = [
        a_placing(order) for order in (a_v2_buy("alice"), a_buy("alice"), a_v2_buy("bob", v2=EARLY))
    ]
    for placing in (early, *kept):
        apply(state, placing)
    (closed,) = stop(state, ALICE, StopKind.TIMESTAMP, NOW_MS)
    assert (closed.order_id, closed.reason) == (early.order_id, CloseReason.CANCELED_ON_CHAIN)
    assert set(state.live_orders) == {placing.order_id for placing in kept}


def test_an_order_below_the_timestamp_is_refused_until_the_stop_is_undone() -> None:
    state, early = a_trading_state(), a_placing(a_v2_buy("alice", v2=EARLY))
    stop(state, ALICE, StopKind.TIMESTAMP, NOW_MS)
    with pytest.raises(OrderStopped, match=str(NOW_MS)):
        apply(state, early)
    apply(state, a_placing(a_v2_buy("alice")))
    assert stop(state, ALICE, StopKind.TIMESTAMP, 0) == []
    assert state.maker_stops == {}
    apply(state, early)


def test_a_stop_at_another_exchange_ends_nothing_here() -> None:
    state, placing = a_trading_state(), a_placing(a_v2_buy("alice"))
    apply(state, placing)
    seen = StopSeen(NEG_RISK_EXCHANGE, ALICE, StopKind.TIMESTAMP, NOW_MS + 1)
    assert apply(state, an_observation(stops=(seen,))).effects == []
    apply(state, a_placing(a_v2_buy("alice", salt="2")))


@pytest.mark.parametrize("is_v2", [False, True])
def test_a_safe_ends_what_its_first_owner_signs_alone(*, is_v2: bool) -> None:
    state = a_trading_state("a safe", "bob")
    placing = a_placing(a_safe_order(is_v2=is_v2))
    apply(state, placing)
    (closed,) = stop(state, SAFE, StopKind.OWNER_SIGNING, 1)
    assert (closed.order_id, closed.reason) == (placing.order_id, CloseReason.CANCELED_ON_CHAIN)
    again = a_placing(a_safe_order(is_v2=is_v2, salt="2"))
    with pytest.raises(OwnerSigningOff, match=SAFE):
        apply(state, again)
    stop(state, SAFE, StopKind.OWNER_SIGNING, 0)
    apply(state, again)


def test_keys_and_wallets_that_judge_signatures_keep_their_orders() -> None:
    state = a_trading_state("alice", "a safe")
    own, judged = a_v2_buy("alice"), a_v2_buy("alice", maker=SAFE)
    contract = {"signature_type": SignatureType.CONTRACT}
    wallet = a_v2_buy("alice", maker=SAFE, **contract, signature=b"\0" * 65)
    assert standing_of(judged) == standing_of(wallet)
    for placing in (a_placing(own), a_placing(a_buy("alice"))):
        apply(state, placing)
    assert stop(state, ALICE, StopKind.OWNER_SIGNING, 1) == []
    apply(state, a_placing(wallet))
    assert stop(state, SAFE, StopKind.OWNER_SIGNING, 1) == []


def test_a_snapshot_keeps_stops_and_what_they_end() -> None:
    state = a_trading_state()
    apply(state, a_placing(a_v2_buy("alice")))
    stop(state, ALICE, StopKind.TIMESTAMP, NOW_MS)
    restored = decode_state(encode_state(state))
    assert restored.maker_stops == {(EXCHANGE, ALICE, StopKind.TIMESTAMP): NOW_MS}
    assert len(stop(restored, ALICE, StopKind.TIMESTAMP, NOW_MS + 1)) == 1


def test_stops_are_split_into_parts_too() -> None:
    whole = an_observation(
        nonces=(NonceSeen(EXCHANGE, ALICE, 1),),
        stops=tuple(StopSeen(EXCHANGE, ALICE, kind, 1) for kind in StopKind),
    )
    parts = split_observation(whole, 2)
    assert [(len(part.nonces), len(part.stops)) for part in parts] == [(1, 1), (0, 1)]


@pytest.mark.parametrize("timestamp_ms", [0, TIMESTAMP_MS_MAX, AMOUNT_UNITS_MAX])
def test_any_timestamp_counts_as_a_time_and_never_as_a_nonce(timestamp_ms: int) -> None:
    standing = standing_of(a_v2_buy("alice", v2=some_v2_fields(timestamp_ms=timestamp_ms)))
    assert TIMESTAMP_MS_MAX < standing <= AMOUNT_UNITS_MAX
    counted = min(timestamp_ms, TIMESTAMP_MS_MAX)
    who = {"signer": ALICE, "maker": ALICE}
    assert is_stopped(standing, StopKind.TIMESTAMP, counted + 1, **who)
    assert not is_stopped(standing, StopKind.TIMESTAMP, counted, **who)


def test_an_order_of_before_stops_were_known_is_ended_by_no_timestamp() -> None:
    before = 2**63 - 1
    who = {"signer": ALICE, "maker": ALICE}
    assert not is_stopped(before, StopKind.TIMESTAMP, TIMESTAMP_MS_MAX, **who)
