"""Change to a finer tick, which keeps every resting order as it is."""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_clob_client.order_builder.builder import ROUNDING_CONFIG, OrderBuilder
from py_clob_client.signer import Signer
from tests.rigs.digest import digest
from tests.rigs.values import (
    CHAIN_ID,
    NOW_MS,
    TOKEN,
    a_buy,
    a_key,
    a_placing,
    a_sell,
    a_signed_order,
    a_state,
    a_trading_state,
    a_word,
    an_open_market,
    some_funds,
    some_rules,
)

from foretell.domain.errors.exchange import TickNotFiner
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import ChangeTick, OpenMarket, PlaceOrder, ResolveMarket
from foretell.domain.exchange.effects import Effect, OrderFilled, TickChanged, TradeMatched
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import OrderType, Side, order_terms
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import Market, State
from foretell.domain.exchange.tick_size import (
    FINER_AT_THE_EDGE,
    TICKS_PER_ONE,
    check_finer,
    ticks_after_trade,
)
from foretell.domain.values.amounts import (
    affordable_size_units,
    lot_units,
    reserve_units,
    whole_lots_units,
)
from foretell.domain.values.hexadecimal import Address

MARKET = a_word("market")
LATER_MS = NOW_MS + 5

PAIRS = list(itertools.product(TICKS_PER_ONE, TICKS_PER_ONE))
FINER = [(coarse, fine) for coarse, fine in PAIRS if coarse < fine and fine % coarse == 0]
NOT_FINER = [pair for pair in PAIRS if pair not in FINER]


def a_change(ticks_per_one: int, market: str = "market") -> ChangeTick:
    return ChangeTick(LATER_MS, a_word(market), ticks_per_one)


def a_market_of(ticks_per_one: int) -> OpenMarket:
    return an_open_market(rules=some_rules(ticks_per_one))


def placings_at(market: OpenMarket) -> list[PlaceOrder]:
    """Return orders of both sides and both tokens at the outermost prices and in the middle."""
    last = market.rules.ticks_per_one - 1
    scale: dict[str, Any] = {"ticks_per_one": market.rules.ticks_per_one}
    middle = market.rules.ticks_per_one // 2
    orders = [
        a_buy("alice", 1, 10 * TOKEN, **scale),
        a_buy("bob", 1, 20 * TOKEN, **scale),
        a_buy("alice", middle - 1, 5 * TOKEN, salt="1", **scale),
        a_sell("bob", last, 10 * TOKEN, is_yes=False, **scale),
        a_sell("bob", middle + 1, 7 * TOKEN, **scale),
        a_buy("alice", 1, 8 * TOKEN, is_yes=False, **scale),
    ]
    return [a_placing(order, market=market) for order in orders]


def a_full_state(market: OpenMarket) -> State:
    """Return a state with these resting orders, one of them partly filled."""
    state = a_state(market, some_funds("alice", "bob", "carol"), *placings_at(market))
    middle = market.rules.ticks_per_one // 2
    taking = a_buy("carol", middle + 1, 5 * TOKEN, ticks_per_one=market.rules.ticks_per_one)
    apply(state, a_placing(taking, market=market))
    return state


def market_in(state: State) -> Market:
    return state.market_by_id[MARKET]


def queue(state: State) -> list[tuple[str, Fraction, Fraction, int]]:
    """Return the resting orders in order, with price, price of yes and remaining size."""
    book = market_in(state).book
    return [
        (
            order.order_id,
            Fraction(order.price_ticks, book.ticks_per_one),
            Fraction(order.yes_price_ticks, book.ticks_per_one),
            order.remaining_units,
        )
        for order in book.orders()
    ]


def reserved(state: State) -> dict[tuple[Address, AssetId], int]:
    return {
        account: state.ledger.look_up(*account).reserved_units
        for account in state.ledger.accounts_held()
    }


def finer_pairs() -> st.SearchStrategy[tuple[int, int]]:
    return st.sampled_from(FINER)


@pytest.mark.parametrize(("coarse", "fine"), FINER)
def test_a_tick_that_divides_the_one_before_is_finer(coarse: int, fine: int) -> None:
    check_finer(coarse, fine)


@pytest.mark.parametrize(("ticks_per_one", "wanted"), NOT_FINER)
def test_a_tick_that_is_not_finer_or_does_not_divide_the_present_one_is_refused(
    ticks_per_one: int, wanted: int
) -> None:
    with pytest.raises(TickNotFiner, match=f"cannot change from 1/{ticks_per_one} to 1/{wanted}"):
        check_finer(ticks_per_one, wanted)


@pytest.mark.parametrize("wanted", [-1_000, 0, 300, 2_000, 100_000])
def test_a_tick_that_clients_do_not_support_is_refused(wanted: int) -> None:
    with pytest.raises(TickNotFiner):
        check_finer(100, wanted)


@given(pair=finer_pairs(), price=st.data(), units=st.integers(0, 10**15))
def test_costs_reservations_and_lots_do_not_depend_on_the_tick(
    pair: tuple[int, int], price: st.DataObject, units: int
) -> None:
    coarse, fine = pair
    ticks = price.draw(st.integers(1, coarse - 1))
    before, after = (ticks, coarse), (ticks * fine // coarse, fine)
    assert lot_units(*before) == lot_units(*after)
    assert reserve_units(units, *before) == reserve_units(units, *after)
    assert whole_lots_units(units, *before) == whole_lots_units(units, *after)
    assert affordable_size_units(units, *before) == affordable_size_units(units, *after)


@pytest.mark.case("B-10")
@pytest.mark.parametrize(("coarse", "fine"), FINER)
def test_resting_orders_keep_price_place_and_reservation(coarse: int, fine: int) -> None:
    state = a_full_state(a_market_of(coarse))
    before, held, live = queue(state), reserved(state), list(state.live_orders)
    outcome = apply(state, a_change(fine))
    assert outcome.effects == [TickChanged(MARKET, coarse, fine, LATER_MS)]
    assert outcome.is_change
    assert queue(state) == before
    assert reserved(state) == held
    assert list(state.live_orders) == live
    book = market_in(state).book
    assert not [
        order
        for order in book.orders()
        if order.remaining_units < lot_units(order.price_ticks, book.ticks_per_one)
    ]


@pytest.mark.case("B-10")
@pytest.mark.parametrize(("coarse", "fine"), FINER)
def test_a_book_changed_by_a_finer_tick_trades_and_empties_as_before(
    coarse: int, fine: int
) -> None:
    market = a_market_of(coarse)
    changed, same = a_full_state(market), a_full_state(market)
    apply(changed, a_change(fine))
    scale: dict[str, Any] = {"ticks_per_one": coarse}
    takings = [a_sell("carol", 1, 100 * TOKEN, **scale), a_buy("carol", coarse - 1, **scale)]
    for taking in takings:
        placing = a_placing(taking, OrderType.FAK, market)
        one, other = apply(changed, placing), apply(same, placing)
        assert one.result == other.result
        assert filled(one.effects) == filled(other.effects)
    assert queue(changed) == queue(same)
    assert reserved(changed) == reserved(same)


def filled(effects: Sequence[Effect]) -> list[tuple[str, int]]:
    return [
        (each.order_id, each.remaining_units) for each in effects if isinstance(each, OrderFilled)
    ]


@given(
    pair=finer_pairs(),
    make=st.sampled_from([a_buy, a_sell]),
    order_type=st.sampled_from([OrderType.GTC, OrderType.FAK]),
    price=st.data(),
)
def test_a_price_signed_in_coarse_ticks_is_valid_in_every_finer_tick(
    pair: tuple[int, int], make: Any, order_type: OrderType, price: st.DataObject
) -> None:
    coarse, fine = pair
    ticks = price.draw(st.integers(1, coarse - 1))
    size_units = 10_000 * TOKEN  # above every minimum, at any price
    order = make(price_ticks=ticks, size_units=size_units, ticks_per_one=coarse, signature=b"kept")
    terms = order_terms(order, order_type, some_rules(fine), MARKET)
    assert (terms.price_ticks, terms.ticks_per_one) == (ticks * fine // coarse, fine)


@given(
    side=st.sampled_from(Side),
    hundredths=st.integers(500, 10**7),
    price_ticks=st.integers(1, 99),
)
def test_a_ratio_rounded_for_the_coarse_tick_is_accepted_in_the_finer_one_of_the_edge(
    side: Side, hundredths: int, price_ticks: int
) -> None:
    """A market order's ratio is slightly off its tick; the tolerance counts the present tick."""
    _, maker, taker = OrderBuilder(
        Signer("0x" + a_key("alice").hex(), CHAIN_ID)
    ).get_market_order_amounts(
        side.name, hundredths / 100, price_ticks / 100, ROUNDING_CONFIG["0.01"]
    )
    order = a_signed_order(side=side, maker_amount=maker, taker_amount=taker, signature=b"kept")
    terms = order_terms(order, OrderType.FAK, some_rules(FINER_AT_THE_EDGE[100]), MARKET)
    assert terms.price_ticks == 10 * price_ticks


def test_an_order_checked_in_the_coarse_tick_joins_the_queue_at_its_price() -> None:
    state = a_trading_state("alice", "bob", "carol")
    first, later = a_placing(a_buy("alice", 3)), a_placing(a_buy("bob", 3))
    apply(state, first)
    apply(state, a_change(1_000))
    apply(state, later)
    taking = a_sell("carol", 30, 15 * TOKEN, ticks_per_one=1_000)
    outcome = apply(state, a_placing(taking, market=a_market_of(1_000)))
    assert filled(outcome.effects) == [(first.order_id, 0), (later.order_id, 5 * TOKEN)]


def test_a_price_between_two_coarse_ticks_is_accepted_after_the_change_and_goes_first() -> None:
    state = a_trading_state("alice", "bob", "carol")
    coarse = a_placing(a_buy("alice", 3))
    better = a_placing(a_buy("bob", 31, ticks_per_one=1_000), market=a_market_of(1_000))
    apply(state, coarse)
    apply(state, a_change(1_000))
    apply(state, better)
    outcome = apply(state, a_placing(a_sell("carol", 3, 15 * TOKEN)))
    assert filled(outcome.effects) == [(better.order_id, 0), (coarse.order_id, 5 * TOKEN)]
    [trade] = [each.trade for each in outcome.effects if isinstance(each, TradeMatched)]
    assert trade.ticks_per_one == 1_000
    assert [fill.price_ticks for fill in trade.fills] == [31, 30]


def test_a_trade_keeps_the_ticks_that_it_was_matched_in() -> None:
    state = a_trading_state()
    apply(state, a_placing(a_sell("bob", 97)))
    apply(state, a_placing(a_buy("alice", 97)))
    apply(state, a_change(1_000))
    [unsettled] = state.unsettled_trades.values()
    assert unsettled.trade.ticks_per_one == 100
    assert unsettled.trade.fills[0].price_ticks == 97
    assert market_in(state).last_price_ticks == 970


def test_a_change_of_the_tick_changes_no_other_rule() -> None:
    state = a_trading_state()
    apply(state, a_change(1_000))
    market = market_in(state)
    assert market.rules == some_rules(1_000)
    assert market.opened == an_open_market()
    assert market.changed_at_ms == state.latest_ms == LATER_MS
    assert market.last_price_ticks is None


def test_a_market_can_change_its_tick_several_times() -> None:
    state = a_full_state(a_market_of(10))
    before = queue(state)
    apply(state, a_change(100))
    apply(state, a_change(1_000))
    apply(state, a_change(10_000))
    assert queue(state) == before
    assert market_in(state).rules.ticks_per_one == 10_000


@pytest.mark.parametrize(("coarse", "fine"), FINER)
def test_a_snapshot_keeps_the_present_tick(coarse: int, fine: int) -> None:
    state = a_full_state(a_market_of(coarse))
    apply(state, a_change(fine))
    restored = decode_state(encode_state(state))
    assert digest(restored) == digest(state)
    assert restored.market_by_id[MARKET].rules == some_rules(fine)


@pytest.mark.parametrize(
    "change",
    [a_change(100), a_change(1_000, "unknown"), a_change(1_000, "over"), a_change(300, "over")],
    ids=["the same tick", "unknown market", "resolved", "resolved, and unsupported"],
)
def test_the_present_tick_or_a_market_that_is_not_open_changes_nothing(
    change: ChangeTick,
) -> None:
    over = an_open_market("over")
    state = a_state(an_open_market(), over, ResolveMarket(NOW_MS, over.condition_id))
    before = digest(state)
    assert apply(state, change) == Outcome(None, [], is_change=False)
    assert digest(state) == before


@pytest.mark.parametrize(("ticks_per_one", "wanted"), [(1_000, 100), (400, 1_000), (100, 300)])
def test_a_refused_change_of_the_tick_changes_nothing(ticks_per_one: int, wanted: int) -> None:
    state = a_full_state(a_market_of(ticks_per_one))
    before = digest(state)
    with pytest.raises(TickNotFiner):
        apply(state, a_change(wanted))
    assert digest(state) == before


@pytest.mark.parametrize(
    ("price_ticks", "wanted"),
    [(1, 1_000), (3, 1_000), (4, 100), (50, 100), (96, 100), (97, 1_000), (99, 1_000)],
)
def test_a_trade_at_the_edge_needs_a_finer_tick(price_ticks: int, wanted: int) -> None:
    assert ticks_after_trade(100, price_ticks) == wanted


@pytest.mark.parametrize("ticks_per_one", sorted(set(TICKS_PER_ONE) - {100}))
def test_other_ticks_do_not_change_at_the_edge(ticks_per_one: int) -> None:
    assert ticks_after_trade(ticks_per_one, 1) == ticks_per_one
    assert ticks_after_trade(ticks_per_one, ticks_per_one - 1) == ticks_per_one


@pytest.mark.parametrize(("coarse", "wanted"), FINER_AT_THE_EDGE.items())
def test_the_tick_of_the_edge_is_finer_and_final(coarse: int, wanted: int) -> None:
    check_finer(coarse, wanted)
    assert ticks_after_trade(wanted, 1) == wanted
