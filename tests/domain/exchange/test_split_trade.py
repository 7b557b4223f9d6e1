"""Split of a trade: its parts move together what it did, and settle each by itself."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.digest import digest
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_spending,
    a_trading_state,
    a_word,
    an_address,
    an_order_id,
    some_funds,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import SplitTrade
from foretell.domain.exchange.effects import BookChanged, CloseReason, OrderClosed, TradeSplit
from foretell.domain.exchange.order import OrderType, SignedOrder
from foretell.domain.exchange.state import Placement, State
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Bytes32

LATER_MS = NOW_MS + 1_000
MAKERS = ("bob", "carol", "dave")


def matched(
    taker: SignedOrder, order_type: OrderType = OrderType.GTC
) -> tuple[State, str, list[Bytes32]]:
    """Return a state in which a taker met three makers, the trade, and the makers' orders."""
    state = a_trading_state("alice", *MAKERS)
    resting = [
        a_placing(a_sell("bob", 40, 10 * TOKEN)),
        a_placing(a_buy("carol", 60, 10 * TOKEN, is_yes=False)),
        a_placing(a_sell("dave", 40, 15 * TOKEN)),
    ]
    for placing in resting:
        apply(state, placing)
    placement = apply(state, a_placing(taker, order_type)).result
    assert isinstance(placement, Placement)
    (trade_id,) = placement.trade_ids
    return state, trade_id, [placing.order_id for placing in resting]


def moved(state: State, *trade_ids: str) -> Counter[tuple[str, str]]:
    """Return what trades move, account by account."""
    sums: Counter[tuple[str, str]] = Counter()
    for trade_id in trade_ids:
        for wallet, asset, units in state.unsettled_trades[trade_id].moves:
            sums[wallet, asset] += units
    return sums


def split(
    trade_id: str, *parts: tuple[Bytes32, ...], refused: tuple[Bytes32, ...] = ()
) -> SplitTrade:
    return SplitTrade(LATER_MS, trade_id, parts, refused)


TAKERS = [
    (a_buy("alice", 45, 30 * TOKEN), OrderType.GTC),
    (a_spending("alice", 45, 12 * TOKEN), OrderType.FAK),
]


@pytest.mark.parametrize(("taker", "order_type"), TAKERS, ids=["size", "budget"])
def test_the_parts_move_together_what_the_trade_did(
    taker: SignedOrder, order_type: OrderType
) -> None:
    state, trade_id, (_, second, third) = matched(taker, order_type)
    before = moved(state, trade_id)
    (effect,) = apply(state, split(trade_id, (second,), (third,))).effects
    assert isinstance(effect, TradeSplit)
    assert list(state.unsettled_trades) == [trade_id, *(part.trade_id for part in effect.parts)]
    assert moved(state, *state.unsettled_trades) == before


@pytest.mark.parametrize(
    ("taker", "order_type", "fill_units"),
    [(*TAKERS[0], [4_500_000] * 3), (*TAKERS[1], [4_000_000] * 3)],
    ids=["size", "budget"],
)
def test_each_part_uses_of_its_taker_what_it_would_alone(
    taker: SignedOrder, order_type: OrderType, fill_units: list[int]
) -> None:
    state, trade_id, (_, second, third) = matched(taker, order_type)
    (effect,) = apply(state, split(trade_id, (second,), (third,))).effects
    assert isinstance(effect, TradeSplit)
    trades = (effect.kept, *effect.parts)
    assert [trade.taker_fill_units for trade in trades] == fill_units
    assert [trade.size_units for trade in trades] == [10 * TOKEN] * 3
    assert [trade.cost_units for trade in trades] == [4 * TOKEN] * 3
    assert {trade.bucket_index for trade in trades} == {0}
    assert [[fill.maker for fill in trade.fills] for trade in trades] == [
        [an_address(name)] for name in MAKERS
    ]


def test_a_split_changes_no_account() -> None:
    state, trade_id, (first, _, _) = matched(a_buy("alice", 45, 30 * TOKEN))
    picture = {
        (wallet, asset): (account.credit_units, account.debit_units, account.reserved_units)
        for wallet in map(an_address, ("alice", *MAKERS))
        for asset in state.ledger.assets(wallet)
        for account in [state.ledger.look_up(wallet, asset)]
    }
    apply(state, split(trade_id, (first,)))
    assert picture == {
        (wallet, asset): (account.credit_units, account.debit_units, account.reserved_units)
        for wallet, asset in picture
        for account in [state.ledger.look_up(wallet, asset)]
    }


def test_each_part_settles_or_fails_by_itself() -> None:
    state, trade_id, (_, second, _) = matched(a_buy("alice", 45, 30 * TOKEN))
    (effect,) = apply(state, split(trade_id, (second,))).effects
    assert isinstance(effect, TradeSplit)
    (part,) = effect.parts
    apply(state, a_settlement(part.trade_id, TradeStatus.FAILED))
    assert list(state.unsettled_trades) == [trade_id]
    apply(state, a_settlement(trade_id, TradeStatus.CONFIRMED))
    assert state.unsettled_trades == {}


def test_a_part_can_be_split_again() -> None:
    state, trade_id, (_, second, third) = matched(a_buy("alice", 45, 30 * TOKEN))
    (effect,) = apply(state, split(trade_id, (second, third))).effects
    assert isinstance(effect, TradeSplit)
    apply(state, split(effect.parts[0].trade_id, (third,)))
    trades = [unsettled.trade for unsettled in state.unsettled_trades.values()]
    assert [[fill.maker for fill in trade.fills] for trade in trades] == [
        [an_address(name)] for name in MAKERS
    ]
    assert len({trade.trade_id for trade in trades}) == 3


def test_the_live_orders_of_a_part_list_it_among_their_trades() -> None:
    taker = a_buy("alice", 45, 40 * TOKEN)
    state, trade_id, (_, _, third) = matched(taker)
    (split_trade, *_) = apply(state, split(trade_id, (third,))).effects
    assert isinstance(split_trade, TradeSplit)
    (part,) = split_trade.parts
    assert state.live_orders[an_order_id(taker)].trade_ids == (trade_id, part.trade_id)


def test_a_refused_order_leaves_the_book() -> None:
    state, trade_id, (_, _, third) = matched(a_buy("alice", 45, 30 * TOKEN))
    _, closed, _ = effects = apply(state, split(trade_id, (third,), refused=(third,))).effects
    assert isinstance(closed, OrderClosed)
    assert (closed.order_id, closed.reason) == (third, CloseReason.REVERTS_ON_CHAIN)
    assert isinstance(effects[-1], BookChanged)
    assert state.live_orders == {}


def test_a_refused_order_that_does_not_rest_is_ignored() -> None:
    state, trade_id, (first, _, third) = matched(a_buy("alice", 45, 30 * TOKEN))
    assert not apply(state, split(trade_id, refused=(first,))).is_change
    assert list(state.live_orders) == [third]


@pytest.mark.parametrize("status", [TradeStatus.MINED, TradeStatus.CONFIRMED, TradeStatus.FAILED])
def test_a_trade_that_is_on_the_chain_or_final_is_not_split(status: TradeStatus) -> None:
    state, trade_id, (first, _, _) = matched(a_buy("alice", 45, 30 * TOKEN))
    apply(state, a_settlement(trade_id, status))
    before = digest(state)
    assert not apply(state, split(trade_id, (first,))).is_change
    assert digest(state) == before


def test_a_split_that_leaves_or_takes_no_fill_has_no_effect() -> None:
    state, trade_id, order_ids = matched(a_buy("alice", 45, 30 * TOKEN))
    before = digest(state)
    assert not apply(state, split(trade_id, tuple(order_ids))).is_change
    assert not apply(state, split(trade_id, (a_word("unknown"),), ())).is_change
    assert digest(state) == before


@given(marks=st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_after_any_split_every_fill_is_in_one_trade(marks: list[int]) -> None:
    state, trade_id, order_ids = matched(a_buy("alice", 45, 30 * TOKEN))
    before = moved(state, trade_id)
    pairs = list(zip(order_ids, marks, strict=True))
    parts = [tuple(each for each, mark in pairs if mark == number) for number in (1, 2, 3)]
    apply(state, split(trade_id, *parts))
    found = [
        fill.maker_order_id
        for unsettled in state.unsettled_trades.values()
        for fill in unsettled.trade.fills
    ]
    assert sorted(found) == sorted(order_ids)
    assert moved(state, *state.unsettled_trades) == before


def test_a_seller_gives_in_each_part_the_tokens_of_the_part() -> None:
    state = a_trading_state("alice", *MAKERS)
    apply(state, some_funds("alice"))
    first = a_placing(a_buy("bob", 50, 10 * TOKEN))
    second = a_placing(a_buy("carol", 50, 20 * TOKEN))
    apply(state, first)
    apply(state, second)
    placement = apply(state, a_placing(a_sell("alice", 50, 30 * TOKEN))).result
    assert isinstance(placement, Placement)
    (effect,) = apply(state, split(placement.trade_ids[0], (second.order_id,))).effects
    assert isinstance(effect, TradeSplit)
    trades = (effect.kept, *effect.parts)
    assert [trade.taker_fill_units for trade in trades] == [10 * TOKEN, 20 * TOKEN]
