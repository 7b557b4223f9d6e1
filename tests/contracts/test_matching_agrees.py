"""What the engine matches and what the exchange settles are the same, to the base unit."""

from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.contracts.lives.arena import TRADERS, Arena, Venue, arena
from tests.contracts.signing import OWN_V1, OWN_V2
from tests.contracts.twin import Moves, Twin, Wish

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
"""Which scripts are tried depends on what else the process has loaded: there are always some."""
TAKING_TYPES = (OrderType.FAK, OrderType.FOK)
sides = st.sampled_from(Side)


@st.composite
def resting_wishes(draw: st.DrawFn, ticks_per_one: int) -> Wish:
    """Whole lots around a half, so that about every second order meets somebody."""
    price = draw(st.integers(2 * ticks_per_one // 5, 3 * ticks_per_one // 5))
    lot = lot_units(price, ticks_per_one)
    return Wish(
        trader=draw(st.integers(0, TRADERS - 1)),
        side=draw(sides),
        is_yes=draw(st.booleans()),
        price_ticks=price,
        size_units=lot * draw(st.integers(1, SIZE_MAX // lot)),
        profile=draw(st.sampled_from((OWN_V1, OWN_V2))),
    )


@st.composite
def sweeping_wishes(draw: st.DrawFn, ticks_per_one: int) -> Wish:
    """An order of any size that takes what is there, at a price that meets many."""
    side = draw(sides)
    price = {Side.BUY: 7, Side.SELL: 3}[side] * ticks_per_one // 10
    return Wish(
        trader=draw(st.integers(0, TRADERS - 1)),
        side=side,
        is_yes=draw(st.booleans()),
        price_ticks=price,
        size_units=draw(st.integers(1, 2 * SIZE_MAX)),
        order_type=draw(st.sampled_from(TAKING_TYPES)),
        profile=draw(st.sampled_from((OWN_V1, OWN_V2))),
    )


@st.composite
def scripts(draw: st.DrawFn) -> tuple[int, list[Wish]]:
    """How fine the ticks are, and what is ordered, one after the other."""
    ticks = draw(st.sampled_from(TICKS))
    resting = st.lists(resting_wishes(ticks), min_size=SCRIPT_MIN, max_size=SCRIPT_MAX)
    sweeping = st.lists(sweeping_wishes(ticks), min_size=SWEEPERS, max_size=SWEEPERS)
    return ticks, [*draw(resting), *draw(sweeping)]


VENUES = {"a market": 0, "an event's question": 1}


def venue_of(scene: Arena, number: int) -> Venue:
    return (scene.market, *scene.questions)[number]


def kinds_of(twin: Twin, trade: Trade) -> Counter[str]:
    """Return what is notable of a trade: so is seen that no kind was left out."""
    structs = {twin.order_by_id[fill.maker_order_id].signed.profile for fill in trade.fills}
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


def check_settled(twin: Twin, trade: Trade) -> None:
    moved: Moves = twin.settle(trade)
    assert +moved == +twin.moves(trade)
    assert -moved == -twin.moves(trade)


@pytest.mark.parametrize("number", VENUES.values(), ids=VENUES)
def test_whatever_meets_the_exchange_moves_what_the_engine_says(number: int) -> None:
    seen: Counter[str] = Counter()

    # A script of orders is short as it is: what breaks it is shown, and not made shorter.
    @settings(phases=[Phase.generate])
    @given(script=scripts())
    def trade(script: tuple[int, list[Wish]]) -> None:
        scene, (ticks, wishes) = arena(), script
        with scene.evm.rolled_back():
            twin = Twin(scene, venue_of(scene, number), ticks)
            for each in (trade for wish in wishes for trade in twin.place(wish)):
                check_settled(twin, each)
                seen.update(kinds_of(twin, each))
            assert twin.held_on_chain(twin.traders) == twin.held_in_ledger()
            assert twin.left_on_chain() == twin.left_by_trades()

    trade()
    kinds = (*MatchType, "several makers", "several kinds", "both structs", *Side.__members__)
    assert min(seen[kind] for kind in kinds) >= KINDS_MIN


@pytest.mark.parametrize("number", VENUES.values(), ids=VENUES)
@pytest.mark.parametrize("is_yes", [True, False], ids=["of one token", "of complements"])
def test_a_taker_of_more_makers_than_a_match_has_is_settled_in_two(
    number: int, *, is_yes: bool
) -> None:
    """The second match finds of the taker's order what the first left, at any price."""
    bids = [Wish(1, Side.SELL if is_yes else Side.BUY, is_yes, 50, 102) for _ in range(MAKERS)]
    scene = arena()
    with scene.evm.rolled_back():
        twin = Twin(scene, venue_of(scene, number), 100)
        assert not any(twin.place(bid) for bid in bids)
        trades = twin.place(Wish(0, Side.BUY, is_yes=True, price_ticks=57, size_units=100 * MAKERS))
        assert [len(trade.fills) for trade in trades] == [
            FILLS_PER_TRADE_MAX,
            MAKERS - FILLS_PER_TRADE_MAX,
        ]
        for trade in trades:
            check_settled(twin, trade)
        assert twin.left_on_chain() == twin.left_by_trades()
