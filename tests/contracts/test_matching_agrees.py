"""The engine's matches and the exchange's settlements are equal, to the base unit."""

from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.contracts.mirrored_market import MirroredMarket, Moves, OrderSpec
from tests.contracts.scenarios.rig import TRADERS, ScenarioRig, TradedPair, scenario_rig
from tests.contracts.signing import OWN_V1, OWN_V2

from foretell.domain.exchange.matching import MatchType
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.exchange.trade import FILLS_PER_TRADE_MAX, Trade
from foretell.domain.values.amounts import lot_units

TICKS = (10, 100, 1000)
SIZE_MAX = 4_000
SCRIPT_MIN, SCRIPT_MAX = 10, 20
SWEEPERS = 3
MAKERS = FILLS_PER_TRADE_MAX + 5
KINDS_MIN = 5
"""The least number of each kind; the tried scripts depend on the loaded modules."""
TAKING_TYPES = (OrderType.FAK, OrderType.FOK)
sides = st.sampled_from(Side)


@st.composite
def resting_orders(draw: st.DrawFn, ticks_per_one: int) -> OrderSpec:
    """Yield orders of whole lots around one half, of which about every second crosses another."""
    price = draw(st.integers(2 * ticks_per_one // 5, 3 * ticks_per_one // 5))
    lot = lot_units(price, ticks_per_one)
    return OrderSpec(
        trader=draw(st.integers(0, TRADERS - 1)),
        side=draw(sides),
        is_yes=draw(st.booleans()),
        price_ticks=price,
        size_units=lot * draw(st.integers(1, SIZE_MAX // lot)),
        profile=draw(st.sampled_from((OWN_V1, OWN_V2))),
    )


@st.composite
def sweeping_orders(draw: st.DrawFn, ticks_per_one: int) -> OrderSpec:
    """Yield taking orders of any size, at a price that crosses many."""
    side = draw(sides)
    price = {Side.BUY: 7, Side.SELL: 3}[side] * ticks_per_one // 10
    return OrderSpec(
        trader=draw(st.integers(0, TRADERS - 1)),
        side=side,
        is_yes=draw(st.booleans()),
        price_ticks=price,
        size_units=draw(st.integers(1, 2 * SIZE_MAX)),
        order_type=draw(st.sampled_from(TAKING_TYPES)),
        profile=draw(st.sampled_from((OWN_V1, OWN_V2))),
    )


@st.composite
def scripts(draw: st.DrawFn) -> tuple[int, list[OrderSpec]]:
    """Yield the ticks per one, and the orders in sequence."""
    ticks = draw(st.sampled_from(TICKS))
    resting = st.lists(resting_orders(ticks), min_size=SCRIPT_MIN, max_size=SCRIPT_MAX)
    sweeping = st.lists(sweeping_orders(ticks), min_size=SWEEPERS, max_size=SWEEPERS)
    return ticks, [*draw(resting), *draw(sweeping)]


PAIRS = {"a market": 0, "an event's question": 1}


def pair_of(rig: ScenarioRig, number: int) -> TradedPair:
    return (rig.market, *rig.questions)[number]


def kinds_of(mirrored: MirroredMarket, trade: Trade) -> Counter[str]:
    """Return the kinds of a trade, to check that all kinds occur."""
    structs = {mirrored.order_by_id[fill.maker_order_id].signed.profile for fill in trade.fills}
    types = {fill.match_type for fill in trade.fills}
    return Counter(
        [
            *types,
            *(["several makers"] if len(trade.fills) > 1 else []),
            *(["several kinds"] if len(types) > 1 else []),
            *(["both structs"] if len(structs) > 1 else []),
            trade.side.name,
        ]
    )


def check_settled(mirrored: MirroredMarket, trade: Trade) -> None:
    moved: Moves = mirrored.settle(trade)
    assert +moved == +mirrored.moves(trade)
    assert -moved == -mirrored.moves(trade)


@pytest.mark.case("B-03")
@pytest.mark.parametrize("number", PAIRS.values(), ids=PAIRS)
def test_every_settled_trade_changes_the_balances_that_the_engine_expects(number: int) -> None:
    seen: Counter[str] = Counter()

    # A script of orders is short: a failing one is shown without shrinking.
    @settings(phases=[Phase.generate])
    @given(script=scripts())
    def trade(script: tuple[int, list[OrderSpec]]) -> None:
        rig, (ticks, specs) = scenario_rig(), script
        with rig.evm.rolled_back():
            mirrored = MirroredMarket(rig, pair_of(rig, number), ticks)
            for each in (trade for spec in specs for trade in mirrored.place(spec)):
                check_settled(mirrored, each)
                seen.update(kinds_of(mirrored, each))
            assert mirrored.held_on_chain(mirrored.traders) == mirrored.held_in_ledger()
            assert mirrored.left_on_chain() == mirrored.left_by_trades()

    trade()
    kinds = (*MatchType, "several makers", "several kinds", "both structs", *Side.__members__)
    assert min(seen[kind] for kind in kinds) >= KINDS_MIN


@pytest.mark.parametrize("number", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("is_yes", [True, False], ids=["of one token", "of complements"])
def test_a_taker_with_more_makers_than_a_match_allows_is_settled_in_two(
    number: int, *, is_yes: bool
) -> None:
    """The second match fills the rest that the first left of the taker's order."""
    bids = [OrderSpec(1, Side.SELL if is_yes else Side.BUY, is_yes, 50, 102) for _ in range(MAKERS)]
    rig = scenario_rig()
    with rig.evm.rolled_back():
        mirrored = MirroredMarket(rig, pair_of(rig, number), 100)
        assert not any(mirrored.place(bid) for bid in bids)
        trades = mirrored.place(
            OrderSpec(0, Side.BUY, is_yes=True, price_ticks=57, size_units=100 * MAKERS)
        )
        assert [len(trade.fills) for trade in trades] == [
            FILLS_PER_TRADE_MAX,
            MAKERS - FILLS_PER_TRADE_MAX,
        ]
        for trade in trades:
            check_settled(mirrored, trade)
        assert mirrored.left_on_chain() == mirrored.left_by_trades()
