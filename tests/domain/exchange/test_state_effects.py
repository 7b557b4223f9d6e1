"""Effects that restore a state for a new subscriber."""

from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_state,
    a_trading_state,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_open_market,
    an_order_id,
    an_owner,
    some_rules,
)

from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.commands import Command, ResolveMarket, TradeSeen
from foretell.domain.exchange.effects import (
    LevelChange,
    MarketRestored,
    OrderRestored,
    TradeRestored,
)
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.exchange.state import State
from foretell.domain.exchange.state_effects import restored_effects
from foretell.domain.exchange.trade import TradeStatus, trade_id_of

MAKER = a_sell("bob", price_ticks=40, expiration_s=NOW_S + 100)
TAKER = a_buy("alice", price_ticks=41, size_units=6 * TOKEN)


def a_busy_state() -> State:
    state = a_trading_state("alice", "bob")
    apply(state, a_placing(MAKER, OrderType.GTD))
    apply(state, a_placing(TAKER, at_ms=NOW_MS + 7))
    return state


def test_an_empty_state_has_no_effects() -> None:
    assert list(restored_effects(State())) == []


def test_a_market_is_restored_with_its_book_and_its_last_price() -> None:
    (market, *_) = restored_effects(a_busy_state())
    assert market == MarketRestored(
        market=an_open_market(),
        rules=some_rules(),
        is_open=True,
        levels=(LevelChange(is_bid=False, level=LevelSize(40, 4 * TOKEN)),),
        best_bid_ticks=None,
        best_ask_ticks=40,
        last_price_ticks=40,
        last_side=Side.BUY,
        changed_at_ms=NOW_MS + 7,
    )


def test_a_resolved_market_is_restored_as_closed() -> None:
    state = a_state(an_open_market(), ResolveMarket(NOW_MS + 9, a_word("market")))
    (market,) = restored_effects(state)
    assert isinstance(market, MarketRestored)
    assert (market.is_open, market.changed_at_ms, market.levels) == (False, NOW_MS + 9, ())


def test_a_resting_order_is_restored_with_its_matched_size() -> None:
    (_, order, _) = restored_effects(a_busy_state())
    assert order == OrderRestored(
        order_id=an_order_id(MAKER),
        condition_id=a_word("market"),
        token_id=an_asset(is_yes=True),
        owner=an_owner("bob"),
        signer=an_address("bob"),
        maker=an_address("bob"),
        side=Side.SELL,
        is_yes=True,
        price_ticks=40,
        ticks_per_one=100,
        size_units=10 * TOKEN,
        matched_units=6 * TOKEN,
        order_type=OrderType.GTD,
        expiration_s=NOW_S + 100,
        placed_at_ms=NOW_MS,
        trade_ids=(trade_id_of(an_order_id(TAKER), 0),),
    )


def test_an_order_without_an_expiration_is_restored_with_zero() -> None:
    state = a_trading_state("alice")
    apply(state, a_placing(a_buy()))
    (_, order) = restored_effects(state)
    assert isinstance(order, OrderRestored)
    assert order.expiration_s == 0


def test_an_unsettled_trade_is_restored_with_its_signers() -> None:
    (_, _, trade) = restored_effects(a_busy_state())
    assert isinstance(trade, TradeRestored)
    assert trade.trade.trade_id == trade_id_of(an_order_id(TAKER), 0)
    assert trade.signer_by_order == {
        an_order_id(TAKER): an_address("alice"),
        an_order_id(MAKER): an_address("bob"),
    }
    assert (trade.status, trade.tx_hash) == (TradeStatus.MATCHED, "")


def test_the_effects_show_the_state_at_the_call_even_if_it_changes_later() -> None:
    state = a_busy_state()
    expected = list(restored_effects(state))
    effects = restored_effects(state)
    first = next(effects)
    (trade,) = state.unsettled_trades
    commands: list[Command] = [
        a_placing(a_buy("alice", price_ticks=40, size_units=5 * TOKEN, salt="2")),
        an_observation(trades=[TradeSeen(trade, TradeStatus.MINED, "0x1")]),
        ResolveMarket(NOW_MS + 9, a_word("market")),
    ]
    for command in commands:
        assert apply(state, command).is_change
    assert [first, *effects] == expected
