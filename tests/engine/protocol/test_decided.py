"""The effects of a command, made here and made by a process that got it: they are equal."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_placing,
    a_signed_order,
    a_state,
    an_address,
    an_asset,
    an_open_market,
    some_funds,
    some_rules,
)

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import (
    CancelOrders,
    ChangeTick,
    Command,
    ExpireOrders,
    PlaceOrder,
    ResolveMarket,
    encode_command,
)
from foretell.domain.exchange.decision import Canceled, Done, Placed
from foretell.domain.exchange.effects import CloseReason, OrderClosed, TradeMatched
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import ZERO_BYTES32
from foretell.engine.protocol.decided import DecidedCommand, committed_of, encode_committed
from foretell.engine.protocol.requests import CommittedCommand
from foretell.journal.framing import payload_digest

MARKET = an_open_market(rules=some_rules(size_units_min=1))
NAMES = ("alice", "bob", "carol")
SIGNATURE = bytes(64) + b"\x1b"
OTHER_PRICE_TICKS = 33
"""A lot at 33 of 100 is 100 units, at 50 it is 2: remainders of other prices are dust."""

Order = tuple[str, Side, int, int, int]
"""Who, the side, the price of yes in ticks, a size in tokens, and units beyond it."""


def placing_of(order: Order, number: int) -> PlaceOrder:
    who, side, price_ticks, tokens, odd_units = order
    lot = 100 if price_ticks == OTHER_PRICE_TICKS else 10
    size_units = (tokens * TOKEN + odd_units) // lot * lot
    cost_units = size_units * price_ticks // 100
    is_buy = side is Side.BUY
    signed = a_signed_order(
        who,
        salt=str(number),
        side=side,
        token_id=an_asset(is_yes=True),
        maker_amount=cost_units if is_buy else size_units,
        taker_amount=size_units if is_buy else cost_units,
        signature=SIGNATURE,
    )
    return a_placing(signed, market=MARKET)


def crossed(committed: CommittedCommand) -> CommittedCommand:
    """Return a command as another process has it."""
    return committed_of(msgspec.msgpack.decode(encode_committed(committed), type=DecidedCommand))


def assert_same_after_the_crossing(commands: Iterable[Command]) -> list[CommittedCommand]:
    """Apply commands to a real state; return those that were accepted, as another process has them."""
    state = a_state(MARKET, some_funds(*NAMES))
    state.tracks_book_changes = True
    others = []
    for sequence, command in enumerate(commands):
        try:
            outcome = apply(state, command)
        except ForetellError:
            continue
        committed = CommittedCommand(sequence, outcome, encode_command(command))
        other = crossed(committed)
        assert (other.sequence, other.effects) == (sequence, committed.effects)
        assert type(other.decision) is type(committed.decision)
        assert other.digest == committed.digest == payload_digest(encode_command(command))
        others.append(other)
    return others


def canceling(placing: PlaceOrder) -> CancelOrders:
    return CancelOrders(NOW_MS + 1, placing.order.signer, (placing.order_id, ZERO_BYTES32))


ORDERS = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(Side),
    st.sampled_from([OTHER_PRICE_TICKS, 40, 50, 60]),
    st.integers(1, 6),
    st.sampled_from([0, 0, 10, 50, 90]),
)


@given(
    orders=st.lists(st.tuples(ORDERS, st.booleans()), min_size=1, max_size=12),
    last=st.sampled_from(
        [
            ExpireOrders(NOW_MS + 2),
            ResolveMarket(NOW_MS + 2, MARKET.condition_id),
            ChangeTick(NOW_MS + 2, MARKET.condition_id, 1_000),
        ]
    ),
)
def test_effects_are_the_same_after_the_crossing(
    orders: list[tuple[Order, bool]], last: Command
) -> None:
    commands: list[Command] = []
    for number, (order, is_canceled) in enumerate(orders):
        placing = placing_of(order, number)
        commands += [placing, canceling(placing)] if is_canceled else [placing]
    assert_same_after_the_crossing([*commands, last])


@pytest.mark.parametrize(
    ("orders", "reasons", "trades"),
    [
        pytest.param([("alice", Side.BUY, 50, 10, 0)], [], 0, id="resting"),
        pytest.param(
            [("alice", Side.BUY, 50, 10, 0), ("bob", Side.SELL, 50, 4, 0)], [], 1, id="matching"
        ),
        pytest.param(
            [("alice", Side.BUY, 50, 10, 0), ("alice", Side.SELL, 50, 4, 0)],
            [CloseReason.SELF_TRADE],
            0,
            id="self-trade",
        ),
        pytest.param(
            [
                ("carol", Side.BUY, 40, 5, 10),
                ("bob", Side.SELL, OTHER_PRICE_TICKS, 10, 0),
                ("alice", Side.BUY, 50, 20, 0),
            ],
            [CloseReason.DUST],
            2,
            id="dust",
        ),
    ],
)
def test_a_placed_order_has_the_same_effects_after_the_crossing(
    orders: list[Order], reasons: list[CloseReason], trades: int
) -> None:
    others = assert_same_after_the_crossing(map(placing_of, orders, range(len(orders))))
    effects = [effect for other in others for effect in other.effects]
    assert all(isinstance(other.decision, Placed) for other in others)
    assert len(others) == len(orders)
    assert [each.reason for each in effects if isinstance(each, OrderClosed)] == reasons
    assert sum(isinstance(each, TradeMatched) for each in effects) == trades


def test_other_commands_have_the_same_effects_after_the_crossing() -> None:
    kept, canceled = (placing_of(("alice", Side.BUY, 50, 10, 0), number) for number in range(2))
    resolving = ResolveMarket(NOW_MS + 2, MARKET.condition_id)
    others = assert_same_after_the_crossing([kept, canceled, canceling(canceled), resolving])
    kinds = [type(other.decision) for other in others]
    assert kinds == [Placed, Placed, Canceled, Done]
    closed = [each for other in others for each in other.effects if isinstance(each, OrderClosed)]
    assert [each.reason for each in closed] == [CloseReason.CANCELED, CloseReason.MARKET_RESOLVED]
    assert {each.maker for each in closed} == {an_address("alice")}
