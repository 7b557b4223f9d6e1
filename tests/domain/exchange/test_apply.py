"""Application of commands to the state."""

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.exchange.reference.engine_machine import EngineMachine, check_trade
from tests.rigs.digest import digest, picture
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_signed_order,
    a_state,
    a_trading_state,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_open_market,
    some_funds,
    some_rules,
)

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.apply import NOT_CANCELED, Cancellation, Outcome, apply
from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.commands import (
    CancelOrders,
    Command,
    ExpireOrders,
    OpenMarket,
    PlaceOrder,
    ResolveMarket,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.effects import (
    BookChanged,
    CloseReason,
    Effect,
    MarketOpened,
    MarketResolved,
    OrderClosed,
    TradeMatched,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import EXPIRATION_MARGIN_S, OrderStatus, OrderType, Side
from foretell.domain.exchange.state import State
from foretell.domain.values.amounts import lot_units
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32

TestEngine = pytest.mark.case("B-01")(EngineMachine.TestCase)
TestEngine.settings = settings(max_examples=4 * settings().max_examples)

ALICE = an_address("alice")


def closed(effects: list[Effect]) -> list[tuple[Bytes32, CloseReason]]:
    return [(each.order_id, each.reason) for each in effects if isinstance(each, OrderClosed)]


def some_orders() -> tuple[State, list[PlaceOrder]]:
    """Return a market with three bids of alice and one of bob."""
    state = a_trading_state()
    orders = [a_buy(salt="1"), a_buy(salt="2"), a_buy(price_ticks=40), a_buy("bob")]
    placings = [a_placing(order) for order in orders]
    for placing in placings:
        apply(state, placing)
    return state, placings


def test_a_new_state_is_empty_and_has_observed_no_block() -> None:
    state = State()
    assert (state.market_by_id, state.live_orders, state.unsettled_trades) == ({}, {}, {})
    assert (state.observed_block, state.observed_hash) == (0, ZERO_BYTES32)


def test_a_failed_cancel_has_the_words_that_clients_match() -> None:
    assert NOT_CANCELED == "order can't be found - already canceled or matched"


def test_a_market_opens_once() -> None:
    state, market = State(), an_open_market()
    first = apply(state, market)
    assert first == Outcome(None, [MarketOpened(market)], is_change=True)
    assert state.market_by_id[market.condition_id].opened == market


def test_opening_an_open_market_changes_nothing() -> None:
    state, _ = some_orders()
    before = digest(state)
    again = apply(state, an_open_market(rules=some_rules(ticks_per_one=1_000)))
    assert again == Outcome(None, [], is_change=False)
    assert digest(state) == before


def test_a_canceled_order_leaves_the_book_and_frees_its_funds() -> None:
    state, placings = some_orders()
    outcome = apply(state, CancelOrders(NOW_MS, ALICE, (placings[1].order_id,)))
    assert outcome.result == Cancellation((placings[1].order_id,), {})
    assert closed(outcome.effects) == [(placings[1].order_id, CloseReason.CANCELED)]
    assert placings[1].order_id not in state.live_orders
    assert state.ledger.look_up(ALICE, COLLATERAL).reserved_units == 9 * TOKEN


def test_several_orders_are_canceled_in_the_requested_order() -> None:
    state, placings = some_orders()
    ids = (placings[2].order_id, placings[0].order_id)
    outcome = apply(state, CancelOrders(NOW_MS, ALICE, ids))
    assert outcome.result == Cancellation(ids, {})
    assert [order_id for order_id, _ in closed(outcome.effects)] == list(ids)
    [change] = [each for each in outcome.effects if isinstance(each, BookChanged)]
    assert [each.level for each in change.changes] == [LevelSize(40, 0), LevelSize(50, 20 * TOKEN)]


def test_a_signer_cannot_cancel_the_order_of_another() -> None:
    state, placings = some_orders()
    before = digest(state)
    outcome = apply(state, CancelOrders(NOW_MS, ALICE, (placings[3].order_id, a_word("unknown"))))
    assert outcome.result == Cancellation(
        (), {placings[3].order_id: NOT_CANCELED, a_word("unknown"): NOT_CANCELED}
    )
    assert (outcome.effects, outcome.is_change) == ([], False)
    assert digest(state) == before


def test_a_signer_cancels_orders_that_its_safe_pays_for() -> None:
    """The maker is a Safe; the cancel comes from the signer."""
    safe = an_address("a safe")
    state = a_state(an_open_market(), some_funds("a safe"))
    placing = a_placing(a_signed_order("alice", maker=safe))
    apply(state, placing)
    assert apply(state, CancelOrders(NOW_MS, safe, (placing.order_id,))).effects == []
    outcome = apply(state, CancelOrders(NOW_MS, ALICE, (placing.order_id,)))
    assert closed(outcome.effects) == [(placing.order_id, CloseReason.CANCELED)]


def test_an_order_listed_twice_is_canceled_once() -> None:
    state, placings = some_orders()
    ids = (placings[0].order_id, placings[0].order_id)
    assert apply(state, CancelOrders(NOW_MS, ALICE, ids)).result == Cancellation(ids[:1], {})


def test_a_closed_order_is_not_canceled_again() -> None:
    state, placings = some_orders()
    command = CancelOrders(NOW_MS, ALICE, (placings[0].order_id,))
    apply(state, command)
    outcome = apply(state, command)
    assert outcome.result == Cancellation((), {placings[0].order_id: NOT_CANCELED})
    assert not outcome.is_change


def gtd(expires_at_s: int) -> PlaceOrder:
    return a_placing(a_buy(expiration_s=expires_at_s), OrderType.GTD)


def test_an_order_expires_in_its_second_and_not_before() -> None:
    placing = gtd(NOW_S + EXPIRATION_MARGIN_S + 5)
    state = a_trading_state()
    apply(state, placing)
    assert apply(state, ExpireOrders((NOW_S + 5) * 1000 - 1)) == Outcome(None, [], is_change=False)
    outcome = apply(state, ExpireOrders((NOW_S + 5) * 1000))
    assert closed(outcome.effects) == [(placing.order_id, CloseReason.EXPIRED)]
    assert outcome.is_change
    assert state.ledger.look_up(ALICE, COLLATERAL).reserved_units == 0


def test_orders_that_expire_together_leave_the_earliest_first() -> None:
    late, soon = gtd(NOW_S + 90), gtd(NOW_S + 80)
    state = a_trading_state()
    apply(state, late)
    apply(state, soon)
    outcome = apply(state, ExpireOrders((NOW_S + 3600) * 1000))
    assert [order_id for order_id, _ in closed(outcome.effects)] == [soon.order_id, late.order_id]


def test_a_resolution_empties_the_book_and_ends_trading() -> None:
    state, placings = some_orders()
    outcome = apply(state, ResolveMarket(NOW_MS + 1, a_word("market")))
    reasons = dict(closed(outcome.effects))
    assert reasons == {placing.order_id: CloseReason.MARKET_RESOLVED for placing in placings}
    assert outcome.effects[-1] == MarketResolved(a_word("market"), NOW_MS + 1)
    assert not state.market_by_id[a_word("market")].is_open
    assert state.live_orders == {}
    assert state.ledger.look_up(ALICE, COLLATERAL).reserved_units == 0


@pytest.mark.parametrize("condition", ["market", "unknown"])
def test_a_market_is_not_resolved_twice_or_before_it_opened(condition: str) -> None:
    state = a_trading_state()
    apply(state, ResolveMarket(NOW_MS, a_word("market")))
    assert apply(state, ResolveMarket(NOW_MS, a_word(condition))) == Outcome(
        None, [], is_change=False
    )


def test_a_resolved_market_does_not_open_again() -> None:
    state = a_state(an_open_market(), ResolveMarket(NOW_MS, a_word("market")))
    assert apply(state, an_open_market()) == Outcome(None, [], is_change=False)
    assert not state.market_by_id[a_word("market")].is_open


def test_a_trade_of_a_resolved_market_still_pends_until_it_settles() -> None:
    state = a_trading_state()
    apply(state, a_placing(a_sell()))
    apply(state, a_placing(a_buy()))
    apply(state, ResolveMarket(NOW_MS, a_word("market")))
    assert len(state.unsettled_trades) == 1
    assert state.ledger.look_up(ALICE, an_asset(is_yes=True)).credit_units == 10 * TOKEN


def test_an_observation_is_always_a_change() -> None:
    state = State()
    seen = an_observation(block_number=7, block_hash=a_word("block 7"))
    assert apply(state, seen) == Outcome(None, [], is_change=True)
    assert (state.observed_block, state.observed_hash) == (7, a_word("block 7"))


@st.composite
def orders(draw: st.DrawFn) -> list[PlaceOrder]:
    """Real signed orders of sizes up to millions of tokens, as clients may send them."""
    ticks_per_one = draw(st.sampled_from([10, 100, 1_000, 10_000]))
    market = an_open_market(rules=some_rules(ticks_per_one))
    placings = []
    for number in range(draw(st.integers(2, 12))):
        side, order_type = draw(st.sampled_from(Side)), draw(st.sampled_from(OrderType))
        near = ticks_per_one // 2 + draw(st.integers(-2, 2))
        anywhere = draw(st.integers(1, ticks_per_one - 1))
        price_ticks = draw(st.sampled_from([near, anywhere]))
        lots = draw(st.integers(3 * 10**6, 10**9))
        expiration_s = NOW_S + 100 + number if order_type is OrderType.GTD else 0
        order = (a_buy if side is Side.BUY else a_sell)(
            draw(st.sampled_from(["alice", "bob", "carol"])),
            price_ticks,
            lots * lot_units(price_ticks, ticks_per_one),
            is_yes=draw(st.booleans()),
            ticks_per_one=ticks_per_one,
            salt=str(number),
            expiration_s=expiration_s,
        )
        placings.append(a_placing(order, order_type, market))
    return placings


def submit(state: State, command: Command) -> list[Effect]:
    """Return the effects, none for a refusal, which must change nothing."""
    before = digest(state)
    try:
        return apply(state, command).effects
    except ForetellError:
        assert digest(state) == before
        return []


def a_rich_state(market: OpenMarket) -> State:
    return a_state(market, some_funds("alice", "bob", "carol", units=10**15))


@given(orders())
def test_trades_of_millions_conserve_every_unit(placings: list[PlaceOrder]) -> None:
    market = an_open_market(rules=some_rules(placings[0].terms.ticks_per_one))
    state = a_rich_state(market)
    for placing in placings:
        for effect in submit(state, placing):
            if isinstance(effect, TradeMatched):
                check_trade(state, effect.trade, placing)
        book = state.market_by_id[market.condition_id].book
        bid, ask = book.best_bid(), book.best_ask()
        assert bid is None or ask is None or bid < ask
    check_reserved(state)


def check_reserved(state: State) -> None:
    """Assert that reservations are what the resting orders may still cost."""
    wanted: Counter[tuple[Address, AssetId]] = Counter()
    for order in state.live_orders.values():
        market = state.market_by_id[order.condition_id]
        cost = Fraction(order.remaining_units * order.price_ticks, market.book.ticks_per_one)
        units = math.ceil(cost) if order.side is Side.BUY else order.remaining_units
        wanted[order.maker, market.asset_given(order.side, is_yes=order.is_yes)] += units
    reserved = {
        (wallet, asset): state.ledger.account(wallet, asset).reserved_units
        for wallet, asset in state.ledger.accounts_held()
    }
    assert {account: units for account, units in reserved.items() if units} == wanted


@given(orders())
def test_a_replay_of_the_journal_ends_in_the_same_state(placings: list[PlaceOrder]) -> None:
    rules = some_rules(placings[0].terms.ticks_per_one)
    commands: list[Command] = [
        an_open_market(rules=rules),
        some_funds("alice", "bob", "carol", units=10**15),
        *placings,
        CancelOrders(NOW_MS, ALICE, tuple(placing.order_id for placing in placings)),
        ExpireOrders((NOW_S + 45) * 1000),
    ]
    state, again = State(), State()
    effects = [submit(state, command) for command in commands]
    journal = [encode_command(command) for command in commands]
    repeated = [submit(again, decode_command(raw)) for raw in journal]
    assert repeated == effects
    assert picture(again) == picture(state)


@pytest.mark.case("B-12")
@given(orders())
def test_a_resolution_cancels_the_resting_orders_and_frees_their_funds(
    placings: list[PlaceOrder],
) -> None:
    """Orders of other markets and unsettled trades stay as they were."""
    market = an_open_market(rules=some_rules(placings[0].terms.ticks_per_one))
    other = an_open_market("other")
    state = a_state(
        market,
        other,
        some_funds("alice", "bob", "carol", units=10**15),
        a_placing(a_buy("alice", market="other"), market=other),
    )
    for placing in placings:
        submit(state, placing)
    resting = [order for order in state.live_orders.values() if order.order_id in ids(placings)]
    coming, at_ms = pending(state), state.latest_ms + 1
    effects = apply(state, ResolveMarket(at_ms, market.condition_id)).effects
    gone = [each for each in effects if isinstance(each, OrderClosed)]
    assert {(each.order_id, each.remaining_units) for each in gone} == {
        (order.order_id, order.remaining_units) for order in resting
    }
    assert {(each.reason, each.status, each.at_ms) for each in gone} <= {
        (CloseReason.MARKET_RESOLVED, OrderStatus.CANCELED, at_ms)
    }
    assert effects[-1] == MarketResolved(market.condition_id, at_ms)
    assert [order.condition_id for order in state.live_orders.values()] == [other.condition_id]
    assert list(state.market_by_id[market.condition_id].book.orders()) == []
    assert pending(state) == coming
    check_reserved(state)
    assert submit(state, a_placing(a_buy("bob", salt="99"), market=an_open_market())) == []


def ids(placings: list[PlaceOrder]) -> set[Bytes32]:
    return {placing.order_id for placing in placings}


def pending(state: State) -> dict[tuple[Address, AssetId], tuple[int, int]]:
    """Return what unsettled trades will credit to and debit from each account."""
    return {
        (wallet, asset): (account.credit_units, account.debit_units)
        for wallet, asset, account in state.ledger.accounts()
    }
