import pytest
from tests.rigs.values import TOKEN, a_buy, a_placing, a_sell, a_trading_state, an_open_market

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.state import Placement
from foretell.domain.exchange.trade import Trade
from foretell.domain.exchange.trade_references import (
    trade_ids_after_split,
    trade_order_ids,
    trade_tokens,
)

RESTING = [
    a_placing(a_sell("bob", 40, 10 * TOKEN)),
    a_placing(a_buy("carol", 60, 10 * TOKEN, is_yes=False)),
]
TAKING = a_placing(a_buy("alice", 40, 20 * TOKEN))


@pytest.fixture
def trade() -> Trade:
    """A trade of a buyer of Yes with a seller of Yes and a buyer of No."""
    state = a_trading_state("alice", "bob", "carol")
    for placing in RESTING:
        apply(state, placing)
    placement = apply(state, TAKING).result
    assert isinstance(placement, Placement)
    (trade_id,) = placement.trade_ids
    return state.unsettled_trades[trade_id].trade


def test_every_fill_names_the_token_of_its_own_order(trade: Trade) -> None:
    market = an_open_market()
    yes, no = market.token_yes, market.token_no
    assert trade_tokens(market, trade) == (yes, (yes, no))


def test_the_takers_order_comes_before_those_of_the_makers(trade: Trade) -> None:
    assert trade_order_ids(trade) == (TAKING.order_id, *[each.order_id for each in RESTING])


def test_a_taker_has_the_part_in_addition_to_the_trade_that_it_left(trade: Trade) -> None:
    ids = trade_ids_after_split(("before", "whole"), trade.taker_order_id, trade, "whole")
    assert ids == ("before", "whole", trade.trade_id)


def test_a_maker_has_the_part_in_place_of_the_trade_that_it_left(trade: Trade) -> None:
    maker_id = trade.fills[0].maker_order_id
    ids = trade_ids_after_split(("before", "whole", "after"), maker_id, trade, "whole")
    assert ids == ("before", trade.trade_id, "after")
