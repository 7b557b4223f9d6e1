"""Trades and their statuses."""

import itertools
import uuid
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import (
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_spending,
    a_state,
    a_word,
    an_address,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.families import IllegalTransition
from foretell.domain.exchange.matching import Fill, MatchType
from foretell.domain.exchange.order import Side, SignedOrder
from foretell.domain.exchange.trade import (
    TRADE_TRANSITIONS,
    LastTrade,
    TradeStatus,
    TradeTrigger,
    advance_trade,
    last_trade_of,
    taker_fill_units,
    total_cost_units,
    trade_id_of,
    trade_path,
    trade_steps,
)
from foretell.domain.values.hexadecimal import keccak256, word_of

MATCHED, MINED, CONFIRMED = TradeStatus.MATCHED, TradeStatus.MINED, TradeStatus.CONFIRMED
RETRYING, FAILED = TradeStatus.RETRYING, TradeStatus.FAILED
MINE, CONFIRM, RETRY, FAIL = (
    TradeTrigger.MINE,
    TradeTrigger.CONFIRM,
    TradeTrigger.RETRY,
    TradeTrigger.FAIL,
)

LIFE = {
    (MATCHED, MINE): MINED,
    (MATCHED, RETRY): RETRYING,
    (MATCHED, FAIL): FAILED,
    (RETRYING, MINE): MINED,
    (RETRYING, RETRY): RETRYING,
    (RETRYING, FAIL): FAILED,
    (MINED, CONFIRM): CONFIRMED,
    (MINED, RETRY): RETRYING,
}

PATHS = {
    (MATCHED, MINED): (MINE,),
    (MATCHED, RETRYING): (RETRY,),
    (MATCHED, FAILED): (FAIL,),
    (MATCHED, CONFIRMED): (MINE, CONFIRM),
    (RETRYING, MINED): (MINE,),
    (RETRYING, RETRYING): (RETRY,),
    (RETRYING, FAILED): (FAIL,),
    (RETRYING, CONFIRMED): (MINE, CONFIRM),
    (MINED, MINED): (RETRY, MINE),
    (MINED, RETRYING): (RETRY,),
    (MINED, CONFIRMED): (CONFIRM,),
    (MINED, FAILED): (RETRY, FAIL),
}


@pytest.mark.parametrize(("pair", "end"), list(LIFE.items()))
def test_a_trade_moves_along_its_transitions(
    pair: tuple[TradeStatus, TradeTrigger], end: TradeStatus
) -> None:
    assert advance_trade(*pair) is end


@pytest.mark.parametrize(
    "pair", [pair for pair in itertools.product(TradeStatus, TradeTrigger) if pair not in LIFE]
)
def test_a_trade_moves_no_other_way(pair: tuple[TradeStatus, TradeTrigger]) -> None:
    with pytest.raises(IllegalTransition, match=f"trade is {pair[0]} and cannot {pair[1]}"):
        advance_trade(*pair)


def test_a_trade_has_no_other_transitions() -> None:
    assert dict(TRADE_TRANSITIONS) == LIFE


@pytest.mark.parametrize("pair", list(itertools.product(TradeStatus, TradeStatus)))
def test_a_path_includes_the_missed_statuses(
    pair: tuple[TradeStatus, TradeStatus],
) -> None:
    assert trade_path(*pair) == PATHS.get(pair, ())


@pytest.mark.parametrize(("pair", "triggers"), list(PATHS.items()))
def test_every_path_leads_along_the_transitions_to_its_target(
    pair: tuple[TradeStatus, TradeStatus], triggers: tuple[TradeTrigger, ...]
) -> None:
    status, end = pair
    for trigger in triggers:
        status = advance_trade(status, trigger)
    assert status is end


@pytest.mark.parametrize("end", [CONFIRMED, FAILED])
def test_a_final_status_has_no_path(end: TradeStatus) -> None:
    assert {trade_path(end, status) for status in TradeStatus} == {()}


@given(st.binary(min_size=32, max_size=32), st.integers(0, 5))
def test_a_trade_id_is_a_uuid_of_version_4_made_of_the_hash(order: bytes, index: int) -> None:
    digest = keccak256(b"trade" + order + index.to_bytes(4, "big"))
    assert trade_id_of(word_of(order), index) == str(uuid.UUID(bytes=digest[:16], version=4))


@pytest.mark.parametrize("pair", list(itertools.product(TradeStatus, TradeStatus)))
def test_the_steps_of_a_trade_are_the_statuses_on_its_path(
    pair: tuple[TradeStatus, TradeStatus],
) -> None:
    path = trade_path(*pair)
    steps = trade_steps(*pair)
    walked = list(itertools.accumulate(path, advance_trade, initial=pair[0]))
    assert list(steps) == walked[1:]


def test_a_trade_id_depends_on_its_order_and_index() -> None:
    ids = [trade_id_of(a_word(order), index) for order in ("a", "b") for index in range(3)]
    assert len(set(ids)) == 6
    assert trade_id_of(a_word("b"), 2) == ids[-1]
    assert {uuid.UUID(trade_id).version for trade_id in ids} == {4}


def a_fill(name: str) -> Fill:
    """Return a sale of two tokens at half of the collateral."""
    return Fill(
        maker_order_id=a_word(name),
        maker=an_address("alice"),
        owner="key",
        side=Side.SELL,
        is_yes=True,
        price_ticks=50,
        size_units=2 * TOKEN,
        making_units=2 * TOKEN,
        taking_units=TOKEN,
        match_type=MatchType.COMPLEMENTARY,
    )


def test_the_cost_of_a_trade_is_that_of_its_fills() -> None:
    assert total_cost_units([a_fill(name) for name in "abc"]) == 3 * TOKEN
    assert total_cost_units([]) == 0


@pytest.mark.parametrize(
    ("taker", "maker", "last"),
    [
        (a_buy("alice", 40), a_sell("bob", 40), LastTrade(40, Side.BUY)),
        (a_sell("alice", 40), a_buy("bob", 40), LastTrade(40, Side.SELL)),
        (
            a_buy("alice", 40, is_yes=False),
            a_sell("bob", 40, is_yes=False),
            LastTrade(60, Side.SELL),
        ),
        (
            a_sell("alice", 40, is_yes=False),
            a_buy("bob", 40, is_yes=False),
            LastTrade(60, Side.BUY),
        ),
        (a_buy("alice", 40), a_buy("bob", 60, is_yes=False), LastTrade(40, Side.BUY)),
        (a_sell("alice", 40, is_yes=False), a_sell("bob", 60), LastTrade(60, Side.BUY)),
    ],
    ids=["buy yes", "sell yes", "buy no", "sell no", "mint", "merge"],
)
def test_the_last_trade_of_a_market_is_in_terms_of_yes_for_takers_of_no_too(
    taker: SignedOrder, maker: SignedOrder, last: LastTrade
) -> None:
    state = a_state(
        an_open_market(), some_funds("alice", "bob"), a_placing(maker), a_placing(taker)
    )
    (unsettled,) = state.unsettled_trades.values()
    assert last_trade_of(unsettled.trade) == last
    market = state.market_by_id[unsettled.trade.condition_id]
    assert (market.last_price_ticks, market.last_side) == (last.price_ticks, last.side)


def test_a_seller_uses_the_tokens_that_it_sells() -> None:
    assert taker_fill_units(a_sell(), 7 * TOKEN, 3 * TOKEN, has_budget=False) == 7 * TOKEN


def test_a_buyer_with_a_budget_uses_the_collateral_that_it_pays() -> None:
    order = a_spending(price_ticks=50, budget_units=10 * TOKEN)
    assert taker_fill_units(order, 20 * TOKEN, 9 * TOKEN, has_budget=True) == 9 * TOKEN


@given(
    price_ticks=st.integers(1, 99),
    better_by=st.integers(0, 98),
    lots=st.integers(1, 10**6),
    part=st.integers(1, 100),
)
def test_a_buyer_of_a_size_uses_its_own_limit_and_at_least_what_it_pays(
    price_ticks: int, better_by: int, lots: int, part: int
) -> None:
    order = a_buy(price_ticks=price_ticks, size_units=lots * 100)
    size_units = max(100, order.taker_amount * part // 100 // 100 * 100)
    cost_units = size_units * max(1, price_ticks - better_by) // 100
    used = taker_fill_units(order, size_units, cost_units, has_budget=False)
    at_limit = Fraction(order.maker_amount, order.taker_amount) * size_units
    assert cost_units <= used <= at_limit < used + 1


@given(st.integers(1, 99), st.lists(st.integers(1, 10**9), min_size=1, max_size=5))
def test_parts_of_a_buyers_order_use_no_more_than_the_whole(
    price_ticks: int, sizes: list[int]
) -> None:
    whole = sum(sizes) * 100
    order = a_buy(price_ticks=price_ticks, size_units=whole)
    parts = [size * 100 - 1 for size in sizes]
    used = sum(taker_fill_units(order, part, 0, has_budget=False) for part in parts)
    assert used <= order.maker_amount
