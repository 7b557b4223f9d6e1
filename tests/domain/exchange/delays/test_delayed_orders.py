"""Orders that cross the book of a market with a delay."""

import msgspec
import pytest
from tests.rigs.digest import digest
from tests.rigs.orders.version_2 import a_v2_buy, some_v2_fields
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_spending,
    a_trading_state,
    a_word,
    an_address,
    an_observation,
    an_open_market,
    an_order_id,
)

from foretell.domain.errors.exchange import PostOnlyWouldCross
from foretell.domain.exchange.allocations import total_of
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    BarWallet,
    CancelOrders,
    CancelSeen,
    ChangeTick,
    Command,
    DelayMarket,
    HaltMarket,
    JoinTreasury,
    NonceSeen,
    PlaceOrder,
    ReleaseOrder,
    ResolveMarket,
    ReturnAllocation,
    StopSeen,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.delays.delayed_orders import due_releases
from foretell.domain.exchange.effects import (
    CloseReason,
    OrderClosed,
    OrderPlaced,
    OrderRestored,
    TradeMatched,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import OrderStatus, OrderType, SignedOrder
from foretell.domain.exchange.signing.stops import StopKind
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import Placement, State
from foretell.domain.exchange.state_effects import restored_effects

MARKET = a_word("market")
DELAY_MS = 3_000
ALICE = an_address("alice")
DUE_MS = NOW_MS + DELAY_MS


def a_delaying_state() -> State:
    """Return a state where bob offers ten tokens at 40, in a market with a delay."""
    state = a_trading_state("alice", "bob", "carol")
    apply(state, a_placing(a_sell("bob", price_ticks=40, size_units=10 * TOKEN)))
    apply(state, DelayMarket(NOW_MS, MARKET, DELAY_MS))
    return state


def placed(state: State, order: SignedOrder, kind: OrderType = OrderType.GTC) -> Placement:
    outcome = apply(state, a_placing(order, kind))
    assert isinstance(outcome.result, Placement)
    return outcome.result


def reserved(state: State) -> int:
    return state.ledger.look_up(ALICE, COLLATERAL).reserved_units


def release(state: State, at_ms: int = DUE_MS) -> list[Outcome]:
    """Apply the releases that are due."""
    return [apply(state, each) for each in due_releases(state, at_ms)]


def closings(outcome: Outcome) -> list[tuple[str, CloseReason]]:
    return [
        (each.order_id, each.reason) for each in outcome.effects if isinstance(each, OrderClosed)
    ]


BUY = a_buy("alice", price_ticks=40, size_units=6 * TOKEN)


def test_an_order_that_crosses_is_held_with_its_funds_and_outside_the_book() -> None:
    state = a_delaying_state()
    placement = placed(state, BUY)
    assert (placement.status, placement.trade_ids) == (OrderStatus.DELAYED, ())
    assert reserved(state) == 6 * TOKEN * 40 // 100
    assert an_order_id(BUY) not in state.live_orders
    assert [order.remaining_units for order in state.market_by_id[MARKET].book.orders()] == [
        10 * TOKEN
    ]
    assert state.delays.next_ms() == DUE_MS
    assert release(state, DUE_MS - 1) == []


def test_an_order_that_rests_is_not_held() -> None:
    state = a_delaying_state()
    assert placed(state, a_buy("alice", price_ticks=39)).status is OrderStatus.LIVE
    assert state.delays.next_ms() is None


def test_a_post_only_order_that_crosses_is_refused_at_once() -> None:
    state = a_delaying_state()
    with pytest.raises(PostOnlyWouldCross):
        apply(state, a_placing(BUY, is_post_only=True))
    assert reserved(state) == 0


def test_a_release_while_settlement_is_behind_closes_the_order() -> None:
    """The command says so: a replay closes it as well."""
    state = a_delaying_state()
    placed(state, BUY)
    before = encode_state(state)
    (release_order,) = due_releases(state, DUE_MS)
    behind = msgspec.structs.replace(release_order, is_settlement_behind=True)
    outcome = apply(state, behind)
    (effect,) = outcome.effects
    assert isinstance(effect, OrderPlaced)
    assert (effect.status, effect.close_reason) == (
        OrderStatus.CANCELED,
        CloseReason.SETTLEMENT_BEHIND,
    )
    assert (reserved(state), state.unsettled_trades) == (0, {})
    assert state.placement_by_order[an_order_id(BUY)].status is OrderStatus.CANCELED
    again = decode_state(before)
    again.tracks_book_changes = state.tracks_book_changes
    assert apply(again, decode_command(encode_command(behind))) == outcome
    assert digest(again) == digest(state)


def test_a_release_of_an_earlier_version_matches() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    (release_order,) = due_releases(state, DUE_MS)
    fields = msgspec.msgpack.decode(encode_command(release_order))
    assert fields.pop() is False
    apply(state, decode_command(msgspec.msgpack.encode(fields)))
    assert len(state.unsettled_trades) == 1


def test_a_release_matches_by_the_book_of_that_moment() -> None:
    """Bob withdraws in time, and carol's better offer, which came later, is taken."""
    state = a_delaying_state()
    placed(state, BUY)
    (bobs,) = state.live_orders
    apply(state, CancelOrders(NOW_MS + 1_000, an_address("bob"), (bobs,)))
    apply(state, a_placing(a_sell("carol", price_ticks=30, size_units=5 * TOKEN)))
    (outcome,) = release(state)
    (trade,) = [each.trade for each in outcome.effects if isinstance(each, TradeMatched)]
    assert (trade.size_units, trade.fills[0].maker) == (5 * TOKEN, an_address("carol"))
    assert trade.matched_at_ms == DUE_MS
    rest = state.live_orders[an_order_id(BUY)]
    assert (rest.remaining_units, rest.placed_at_ms) == (TOKEN, DUE_MS)
    assert reserved(state) == TOKEN * 40 // 100
    assert state.delays.next_ms() is None


def test_orders_are_released_in_the_order_of_their_times() -> None:
    state = a_delaying_state()
    for name in ("carol", "alice"):
        placed(state, a_buy(name, price_ticks=40, size_units=10 * TOKEN))
    first, second = release(state)
    assert [isinstance(each, TradeMatched) for each in first.effects].count(True) == 1
    assert not any(isinstance(each, TradeMatched) for each in second.effects)
    assert [
        each.command.order.maker for each in first.effects if isinstance(each, OrderPlaced)
    ] == [an_address("carol")]


@pytest.mark.parametrize("kind", [OrderType.FOK, OrderType.FAK])
def test_an_order_that_only_takes_and_finds_nothing_at_its_release_ends(kind: OrderType) -> None:
    state = a_delaying_state()
    spending = a_spending("alice", 40, 2 * TOKEN)
    assert placed(state, spending, kind).status is OrderStatus.DELAYED
    assert reserved(state) == 2 * TOKEN
    (bobs,) = state.live_orders
    apply(state, CancelOrders(NOW_MS, an_address("bob"), (bobs,)))
    (outcome,) = release(state)
    (effect,) = [each for each in outcome.effects if isinstance(each, OrderPlaced)]
    assert (effect.status, effect.close_reason) == (OrderStatus.CANCELED, CloseReason.KILLED)
    assert reserved(state) == 0


@pytest.mark.parametrize("kind", [OrderType.FOK, OrderType.FAK])
def test_an_order_that_only_takes_is_filled_at_its_release(kind: OrderType) -> None:
    state = a_delaying_state()
    placed(state, a_spending("alice", 40, 2 * TOKEN), kind)
    (outcome,) = release(state)
    (effect,) = [each for each in outcome.effects if isinstance(each, OrderPlaced)]
    assert (effect.status, effect.matched_units) == (OrderStatus.MATCHED, 5 * TOKEN)
    assert reserved(state) == 0


def test_an_order_that_expires_meanwhile_ends() -> None:
    state = a_delaying_state()
    dated = a_buy("alice", price_ticks=40, size_units=6 * TOKEN, expiration_s=NOW_S + 61)
    placed(state, dated, OrderType.GTD)
    (outcome,) = release(state)
    (effect,) = [each for each in outcome.effects if isinstance(each, OrderPlaced)]
    assert (effect.status, effect.close_reason) == (OrderStatus.CANCELED, CloseReason.EXPIRED)
    assert reserved(state) == 0


ENDS: dict[CloseReason, Command] = {
    CloseReason.CANCELED: CancelOrders(NOW_MS, ALICE, (an_order_id(BUY),)),
    CloseReason.CANCELED_ON_CHAIN: an_observation(
        cancels=(CancelSeen(EXCHANGE, an_order_id(BUY)),)
    ),
    CloseReason.NONCE_RAISED: an_observation(nonces=(NonceSeen(EXCHANGE, ALICE, 1),)),
    CloseReason.UNDERFUNDED: an_observation([BalanceSeen(ALICE, COLLATERAL, 0)]),
    CloseReason.MARKET_RESOLVED: ResolveMarket(NOW_MS, MARKET),
    CloseReason.WALLET_BARRED: BarWallet(NOW_MS, ALICE, is_barred=True, cause="reverts"),
}


@pytest.mark.parametrize("reason", ENDS)
def test_a_delayed_order_ends_as_a_resting_one_does(reason: CloseReason) -> None:
    state = a_delaying_state()
    placed(state, BUY)
    outcome = apply(state, ENDS[reason])
    assert (an_order_id(BUY), reason) in closings(outcome)
    assert reserved(state) == 0
    assert release(state) == []


def test_a_stop_ends_the_delayed_orders_below_its_timestamp() -> None:
    state = a_delaying_state()
    early, late = (
        a_v2_buy("alice", v2=some_v2_fields(timestamp_ms=at_ms), salt=str(at_ms))
        for at_ms in (NOW_MS - 1, NOW_MS)
    )
    placed(state, early)
    placed(state, late)
    seen = StopSeen(EXCHANGE, ALICE, StopKind.TIMESTAMP, NOW_MS)
    outcome = apply(state, an_observation(stops=(seen,)))
    assert closings(outcome) == [(an_order_id(early), CloseReason.CANCELED_ON_CHAIN)]
    assert list(state.delays.orders) == [an_order_id(late)]


def test_an_allowance_that_is_withdrawn_ends_a_delayed_order() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    gone = AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=0)
    outcome = apply(state, an_observation(allowances=[gone]))
    assert closings(outcome) == [(an_order_id(BUY), CloseReason.UNDERFUNDED)]


def test_an_allowance_of_another_exchange_that_is_withdrawn_leaves_a_delayed_order() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    other = an_open_market("other", exchange=NEG_RISK_EXCHANGE)
    apply(state, other)
    newer = a_placing(a_buy(market="other", exchange=NEG_RISK_EXCHANGE), market=other)
    apply(state, newer)
    gone = AllowanceSeen(ALICE, NEG_RISK_EXCHANGE, is_collateral=True, units=0)
    outcome = apply(state, an_observation(allowances=[gone]))
    assert closings(outcome) == [(newer.order_id, CloseReason.UNDERFUNDED)]
    assert list(state.delays.orders) == [an_order_id(BUY)]


@pytest.mark.parametrize(
    "other",
    [
        CancelOrders(NOW_MS, an_address("bob"), (an_order_id(BUY),)),
        an_observation(cancels=(CancelSeen(an_address("other exchange"), an_order_id(BUY)),)),
        an_observation(nonces=(NonceSeen(an_address("other exchange"), ALICE, 1),)),
        ResolveMarket(NOW_MS, a_word("other")),
    ],
)
def test_what_is_about_another_order_leaves_it(other: Command) -> None:
    state = a_delaying_state()
    placed(state, BUY)
    apply(state, other)
    assert list(state.delays.orders) == [an_order_id(BUY)]


def test_a_forced_return_takes_the_funds_of_a_delayed_order() -> None:
    state = a_delaying_state()
    apply(state, JoinTreasury(NOW_MS, "north"))
    placed(state, BUY)
    held = state.ledger.look_up(ALICE, COLLATERAL).confirmed_units
    outcome = apply(state, ReturnAllocation(NOW_MS, "north", ALICE, total_of(held), is_forced=True))
    assert closings(outcome) == [(an_order_id(BUY), CloseReason.UNDERFUNDED)]
    assert state.ledger.look_up(ALICE, COLLATERAL).confirmed_units == 0


def test_a_halted_market_ends_the_orders_that_are_released_into_it() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    apply(state, HaltMarket(NOW_MS, MARKET, is_halted=True))
    (outcome,) = release(state)
    assert isinstance(outcome.result, Placement)
    assert outcome.result.status is OrderStatus.CANCELED
    assert reserved(state) == 0


def test_an_order_keeps_its_price_when_the_tick_becomes_finer() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    apply(state, ChangeTick(NOW_MS, MARKET, 1_000))
    (outcome,) = release(state)
    assert any(isinstance(each, TradeMatched) for each in outcome.effects)
    assert reserved(state) == 0


def test_a_repeated_order_is_held_once() -> None:
    state = a_delaying_state()
    first = placed(state, BUY)
    before = digest(state)
    assert placed(state, BUY) == first
    assert digest(state) == before


def test_a_release_takes_effect_once() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    (command,) = due_releases(state, DUE_MS)
    apply(state, command)
    before = digest(state)
    again = apply(state, command)
    assert (again.is_change, again.effects) == (False, [])
    assert digest(state) == before


def test_the_end_of_a_delay_is_for_new_orders() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    assert apply(state, DelayMarket(NOW_MS, MARKET, 0)).is_change
    assert not apply(state, DelayMarket(NOW_MS, MARKET, 0)).is_change
    assert placed(state, a_buy("carol", price_ticks=40)).status is not OrderStatus.DELAYED
    assert state.delays.next_ms() == DUE_MS


def test_a_snapshot_keeps_what_waits() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    again = decode_state(encode_state(state))
    assert encode_state(again) == encode_state(state)
    assert reserved(again) == reserved(state)
    assert [each.effects for each in release(again)] == [each.effects for each in release(state)]
    assert encode_state(again) == encode_state(state)


def test_a_state_without_delays_has_the_bytes_of_before() -> None:
    state = a_trading_state()
    before = encode_state(state)
    apply(state, DelayMarket(NOW_MS, MARKET, DELAY_MS))
    assert encode_state(state) != before
    apply(state, DelayMarket(NOW_MS, MARKET, 0))
    assert encode_state(state) == before


def test_a_new_subscriber_gets_the_delayed_orders() -> None:
    state = a_delaying_state()
    placed(state, BUY)
    restored = [each for each in restored_effects(state) if isinstance(each, OrderRestored)]
    assert an_order_id(BUY) in {each.order_id for each in restored}


def test_a_release_is_a_placement_at_another_time() -> None:
    state = a_delaying_state()
    placing = msgspec.structs.replace(a_placing(BUY), builder=a_word("builder"))
    apply(state, placing)
    (command,) = due_releases(state, DUE_MS)
    fields = msgspec.structs.asdict(command)
    assert type(command) is ReleaseOrder
    assert fields.pop("is_settlement_behind") is False
    assert PlaceOrder(**(fields | {"at_ms": NOW_MS})) == placing
