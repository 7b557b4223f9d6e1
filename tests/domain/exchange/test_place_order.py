"""Placement of an order: checked in full first, then matched, then rested or closed."""

from typing import Any

import msgspec
import pytest
from tests.rigs.digest import digest
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_signed_order,
    a_spending,
    a_state,
    a_trading_state,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_open_market,
    an_owner,
    some_funds,
    some_rules,
)

from foretell.domain.errors.exchange import (
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    InsufficientAllowance,
    InsufficientBalance,
    MarketClosed,
    OrderDuplicated,
    PostOnlyWouldCross,
    ReservedByOpenOrders,
    UnknownMarket,
)
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    CancelOrders,
    ResolveMarket,
)
from foretell.domain.exchange.effects import (
    BookChanged,
    CloseReason,
    LevelChange,
    OrderClosed,
    OrderFilled,
    OrderPlaced,
    TradeMatched,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.matching import MatchType
from foretell.domain.exchange.order import OrderStatus, OrderTerms, OrderType, Side, SignedOrder
from foretell.domain.exchange.place_order import check_order
from foretell.domain.exchange.state import Market, Placement, State
from foretell.domain.exchange.trade import FILLS_PER_TRADE_MAX, Trade, TradeStatus, trade_id_of

ALICE, BOB = an_address("alice"), an_address("bob")
YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
FOK, FAK, GTC = OrderType.FOK, OrderType.FAK, OrderType.GTC


def a_state_with(*orders: SignedOrder) -> State:
    """Return a market in which these orders were placed, with funds for five people."""
    state = a_trading_state("alice", "bob", "carol", "dave", "erin")
    for order in orders:
        apply(state, a_placing(order))
    return state


def place(state: State, order: SignedOrder, order_type: OrderType = GTC, **fields: Any) -> Outcome:
    return apply(state, a_placing(order, order_type, **fields))


def placement(outcome: Outcome) -> Placement:
    assert isinstance(outcome.result, Placement)
    return outcome.result


def trades(outcome: Outcome) -> list[Trade]:
    return [each.trade for each in outcome.effects if isinstance(each, TradeMatched)]


def closed(outcome: Outcome) -> list[tuple[int, CloseReason]]:
    return [
        (each.remaining_units, each.reason)
        for each in outcome.effects
        if isinstance(each, OrderClosed)
    ]


def reason(outcome: Outcome) -> CloseReason | None:
    [placed] = [each for each in outcome.effects if isinstance(each, OrderPlaced)]
    return placed.close_reason


def market_of(state: State) -> Market:
    return state.market_by_id[a_word("market")]


def levels(state: State) -> tuple[list[LevelSize], list[LevelSize]]:
    book = market_of(state).book
    return book.levels(is_bid=True), book.levels(is_bid=False)


def test_an_order_that_crosses_no_other_rests() -> None:
    state, placing = a_state_with(), a_placing(a_buy(price_ticks=40))
    outcome = apply(state, placing)
    assert outcome.result == Placement(
        order_id=placing.order_id,
        condition_id=placing.condition_id,
        owner=an_owner("alice"),
        order_type=GTC,
        leaves_at_s=None,
        status=OrderStatus.LIVE,
        making_units=0,
        taking_units=0,
        trade_ids=(),
    )
    level = LevelSize(40, 10 * TOKEN)
    assert outcome.effects == [
        OrderPlaced(placing, 10 * TOKEN, 0, OrderStatus.LIVE, None),
        BookChanged(
            a_word("market"), (LevelChange(is_bid=True, level=level),), 40, None, 100, NOW_MS
        ),
    ]
    assert outcome.is_change
    assert levels(state) == ([level], [])


def test_a_resting_order_has_the_fields_of_its_command() -> None:
    order = a_sell("bob", 30, 10 * TOKEN, is_yes=False, expiration_s=NOW_S + 100)
    state = a_state_with()
    placing = a_placing(order, OrderType.GTD)
    apply(state, placing)
    resting = state.live_orders[placing.order_id]
    assert (resting.price_ticks, resting.yes_price_ticks, resting.is_bid) == (30, 70, True)
    assert (resting.size_units, resting.remaining_units) == (10 * TOKEN, 10 * TOKEN)
    assert (resting.maker, resting.signer, resting.owner) == (BOB, BOB, an_owner("bob"))
    assert (resting.leaves_at_s, resting.placed_at_ms) == (NOW_S + 40, NOW_MS)
    assert (resting.side, resting.is_yes, resting.order_type) == (Side.SELL, False, OrderType.GTD)


def test_two_orders_of_one_token_trade_at_the_price_of_the_resting_one() -> None:
    state = a_state_with(a_sell("bob", 40))
    outcome = place(state, a_buy("alice", 50))
    assert placement(outcome).status is OrderStatus.MATCHED
    assert (placement(outcome).making_units, placement(outcome).taking_units) == (
        4 * TOKEN,
        10 * TOKEN,
    )
    [trade] = trades(outcome)
    [fill] = trade.fills
    assert (fill.match_type, fill.price_ticks) == (MatchType.COMPLEMENTARY, 40)
    assert (fill.making_units, fill.taking_units) == (10 * TOKEN, 4 * TOKEN)
    assert (trade.size_units, trade.cost_units, trade.taker_fill_units) == (
        10 * TOKEN,
        4 * TOKEN,
        5 * TOKEN,
    )
    assert levels(state) == ([], [])


def test_two_buyers_of_complements_split_one_collateral() -> None:
    """NO at 45 was first; YES at 60 pays 55, not 60."""
    state = a_state_with(a_buy("bob", 45, is_yes=False))
    outcome = place(state, a_buy("alice", 60))
    [trade] = trades(outcome)
    [fill] = trade.fills
    assert (fill.match_type, fill.making_units, fill.taking_units) == (
        MatchType.MINT,
        4_500_000,
        10 * TOKEN,
    )
    assert (trade.size_units, trade.cost_units) == (10 * TOKEN, 5_500_000)


def test_two_sellers_of_complements_share_one_collateral() -> None:
    """NO at 45 was first; YES at 50 gets 55."""
    state = a_state_with(a_sell("bob", 45, is_yes=False))
    outcome = place(state, a_sell("alice", 50))
    [trade] = trades(outcome)
    [fill] = trade.fills
    assert (fill.match_type, fill.making_units, fill.taking_units) == (
        MatchType.MERGE,
        10 * TOKEN,
        4_500_000,
    )
    assert (trade.size_units, trade.cost_units) == (10 * TOKEN, 5_500_000)
    assert trade.taker_fill_units == 10 * TOKEN


@pytest.mark.parametrize(("price_ticks", "meets"), [(54, False), (55, True)])
def test_a_mint_needs_prices_of_one_together(price_ticks: int, *, meets: bool) -> None:
    state = a_state_with(a_buy("bob", 45, is_yes=False))
    assert bool(trades(place(state, a_buy("alice", price_ticks)))) is meets


@pytest.mark.parametrize(("price_ticks", "meets"), [(56, False), (55, True)])
def test_a_merge_needs_prices_of_at_most_one_together(price_ticks: int, *, meets: bool) -> None:
    state = a_state_with(a_sell("bob", 45, is_yes=False))
    assert bool(trades(place(state, a_sell("alice", price_ticks)))) is meets


@pytest.mark.parametrize(
    ("maker", "taker", "moves"),
    [
        (a_sell("bob", 40), a_buy("alice", 40), {(BOB, YES): -10, (BOB, "0"): 4, (ALICE, "0"): -4, (ALICE, YES): 10}),
        (a_buy("bob", 40), a_sell("alice", 40), {(BOB, YES): 10, (BOB, "0"): -4, (ALICE, "0"): 4, (ALICE, YES): -10}),
        (a_buy("bob", 40, is_yes=False), a_buy("alice", 60), {(BOB, NO): 10, (BOB, "0"): -4, (ALICE, "0"): -6, (ALICE, YES): 10}),
        (a_sell("bob", 40, is_yes=False), a_sell("alice", 60), {(BOB, NO): -10, (BOB, "0"): 4, (ALICE, "0"): 6, (ALICE, YES): -10}),
    ],
    ids=["buy", "sell", "mint", "merge"],
)  # fmt: skip
def test_the_moves_of_a_trade_pend_from_the_match_on(
    maker: SignedOrder, taker: SignedOrder, moves: dict[Any, int]
) -> None:
    state = a_state_with(maker)
    [trade] = trades(place(state, taker))
    unsettled = state.unsettled_trades[trade.trade_id]
    assert (unsettled.status, unsettled.tx_hash) == (TradeStatus.MATCHED, "")
    assert {(who, what): units for who, what, units in unsettled.moves} == {
        account: units * TOKEN for account, units in moves.items()
    }
    accounts = {account: state.ledger.look_up(*account) for account in moves}
    assert {
        account: each.credit_units - each.debit_units for account, each in accounts.items()
    } == {account: units * TOKEN for account, units in moves.items()}
    assert {each.reserved_units for each in accounts.values()} == {0}


def test_the_unmatched_remainder_rests() -> None:
    state = a_state_with(a_sell("bob", 40, 5 * TOKEN))
    outcome = place(state, a_buy("alice", 50, 12 * TOKEN))
    assert (reason(outcome), placement(outcome).status) == (None, OrderStatus.LIVE)
    assert placement(outcome).taking_units == 5 * TOKEN
    assert levels(state) == ([LevelSize(50, 7 * TOKEN)], [])
    assert state.ledger.look_up(ALICE, COLLATERAL).reserved_units == 3_500_000


def test_a_partly_filled_maker_keeps_its_place() -> None:
    state = a_state_with(a_sell("bob", 40, 20 * TOKEN), a_sell("carol", 40, 20 * TOKEN))
    outcome = place(state, a_buy("alice", 40, 5 * TOKEN))
    [filled] = [each for each in outcome.effects if isinstance(each, OrderFilled)]
    assert (filled.remaining_units, filled.status) == (15 * TOKEN, OrderStatus.LIVE)
    second = trades(place(state, a_buy("alice", 40, 20 * TOKEN, salt="2")))
    assert [(fill.maker, fill.size_units) for fill in second[0].fills] == [
        (BOB, 15 * TOKEN),
        (an_address("carol"), 5 * TOKEN),
    ]


def test_effects_are_in_the_order_of_the_steps() -> None:
    state = a_state_with(a_sell("alice", 39), a_sell("bob", 40))
    outcome = place(state, a_buy("alice", 50))
    kinds = [type(each) for each in outcome.effects]
    assert kinds == [OrderPlaced, OrderClosed, TradeMatched, OrderFilled, BookChanged]


@pytest.mark.parametrize(
    ("maker", "taker", "last_price", "last_side"),
    [
        (a_sell("bob", 40), a_buy("alice", 50), 40, Side.BUY),
        (a_buy("bob", 40, is_yes=False), a_buy("alice", 70), 60, Side.BUY),
        (a_sell("bob", 40, is_yes=False), a_sell("alice", 50), 60, Side.SELL),
        (a_buy("bob", 40, is_yes=False), a_sell("alice", 30, is_yes=False), 60, Side.BUY),
    ],
)
def test_the_last_price_and_side_are_in_terms_of_yes(
    maker: SignedOrder, taker: SignedOrder, last_price: int, last_side: Side
) -> None:
    state = a_state_with(maker)
    place(state, taker)
    market = market_of(state)
    assert (market.last_price_ticks, market.last_side) == (last_price, last_side)


@pytest.mark.parametrize("size", [10 * TOKEN, 9 * TOKEN])
def test_a_fok_order_of_a_size_is_filled_whole(size: int) -> None:
    state = a_state_with(a_buy("bob", 40, 6 * TOKEN), a_buy("carol", 39, 5 * TOKEN))
    outcome = place(state, a_sell("alice", 30, size), FOK)
    assert (reason(outcome), placement(outcome).making_units) == (CloseReason.FILLED, size)


@pytest.mark.parametrize(
    "makers",
    [
        [],
        [a_buy("bob", 29, 10 * TOKEN)],
        [a_buy("bob", 40, 10 * TOKEN - 10)],
        [a_buy("bob", 40, 5 * TOKEN), a_buy("alice", 40, 5 * TOKEN)],
    ],
    ids=["empty book", "beyond the limit", "a lot too few", "its own"],
)
def test_a_fok_order_that_cannot_be_filled_whole_is_refused(makers: list[SignedOrder]) -> None:
    state = a_state_with(*makers)
    before = digest(state)
    with pytest.raises(FillOrKillUnfilled):
        place(state, a_sell("alice", 30), FOK)
    assert digest(state) == before


def test_a_fok_order_with_a_budget_is_filled_by_a_larger_order() -> None:
    """Two collateral at 33 buy 6.060600 tokens for 1.999998: the rest is below a lot."""
    state = a_state_with(a_sell("bob", 33, 10 * TOKEN))
    outcome = place(state, a_spending("alice", 33, 2 * TOKEN), FOK)
    assert reason(outcome) is CloseReason.FILLED
    assert (placement(outcome).making_units, placement(outcome).taking_units) == (
        1_999_998,
        6_060_600,
    )
    assert trades(outcome)[0].taker_fill_units == 1_999_998


def test_a_fok_order_with_a_budget_receives_more_tokens_where_they_are_cheaper() -> None:
    state = a_state_with(a_sell("bob", 20, 20 * TOKEN))
    outcome = place(state, a_spending("alice", 40, 4 * TOKEN), FOK)
    assert (placement(outcome).making_units, placement(outcome).taking_units) == (
        4 * TOKEN,
        20 * TOKEN,
    )


def test_a_fok_order_with_a_budget_larger_than_the_book_is_refused() -> None:
    state = a_state_with(a_sell("bob", 20, 20 * TOKEN))
    before = digest(state)
    with pytest.raises(FillOrKillUnfilled):
        place(state, a_spending("alice", 40, 4 * TOKEN + 1), FOK)
    assert digest(state) == before


def test_a_fak_order_takes_what_the_book_has_and_is_killed() -> None:
    state = a_state_with(a_sell("bob", 20, 20 * TOKEN))
    outcome = place(state, a_spending("alice", 40, 40 * TOKEN), FAK)
    assert (reason(outcome), placement(outcome).status) == (CloseReason.KILLED, OrderStatus.MATCHED)
    assert (placement(outcome).making_units, placement(outcome).taking_units) == (
        4 * TOKEN,
        20 * TOKEN,
    )
    assert levels(state) == ([], [])
    [placed] = [each for each in outcome.effects if isinstance(each, OrderPlaced)]
    assert (placed.size_units, placed.matched_units) == (20 * TOKEN, 20 * TOKEN)


@pytest.mark.parametrize(
    "makers",
    [[], [a_sell("bob", 51)], [a_sell("alice", 40)]],
    ids=["empty book", "beyond", "its own"],
)
def test_a_fak_order_without_a_match_is_refused(makers: list[SignedOrder]) -> None:
    state = a_state_with(*makers)
    before = digest(state)
    with pytest.raises(FillAndKillUnmatched):
        place(state, a_spending("alice", 50), FAK)
    assert digest(state) == before


@pytest.mark.parametrize(
    ("maker", "taker"),
    [
        (a_sell("bob", 40), a_buy("alice", 40)),
        (a_buy("bob", 40), a_sell("alice", 40)),
        (a_buy("bob", 40, is_yes=False), a_buy("alice", 60)),
        (a_sell("bob", 40, is_yes=False), a_sell("alice", 60)),
        (a_buy("alice", 40, is_yes=False), a_buy("alice", 60)),
    ],
    ids=["buy", "sell", "mint", "merge", "its own"],
)
def test_a_post_only_order_that_would_match_is_refused(
    maker: SignedOrder, taker: SignedOrder
) -> None:
    state = a_state_with(maker)
    before = digest(state)
    with pytest.raises(PostOnlyWouldCross):
        place(state, taker, is_post_only=True)
    assert digest(state) == before


def test_a_post_only_order_that_would_not_match_rests() -> None:
    state = a_state_with(a_buy("bob", 40, is_yes=False))
    outcome = place(state, a_buy("alice", 59), is_post_only=True)
    assert (reason(outcome), placement(outcome).status) == (None, OrderStatus.LIVE)


@pytest.mark.case("B-06")
@pytest.mark.parametrize(
    "own", [a_sell("alice", 40), a_buy("alice", 60, is_yes=False)], ids=["same token", "complement"]
)
def test_a_crossed_order_of_the_same_wallet_is_canceled(own: SignedOrder) -> None:
    state = a_state_with(own, a_sell("bob", 41, 5 * TOKEN))
    outcome = place(state, a_buy("alice", 45))
    assert closed(outcome) == [(10 * TOKEN, CloseReason.SELF_TRADE)]
    assert [fill.maker for fill in trades(outcome)[0].fills] == [BOB]
    assert levels(state) == ([LevelSize(45, 5 * TOKEN)], [])


@pytest.mark.case("B-06")
def test_one_wallet_does_not_trade_with_itself_through_two_signers() -> None:
    """Both sign for the same Safe."""
    safe = an_address("a safe")
    state = a_state(an_open_market(), some_funds("a safe"))
    place(state, a_sell("bob", 40, maker=safe))
    outcome = place(state, a_buy("alice", 50, maker=safe))
    assert (trades(outcome), closed(outcome)) == ([], [(10 * TOKEN, CloseReason.SELF_TRADE)])


def test_a_remainder_of_a_taker_below_a_lot_is_closed_and_never_crosses_the_book() -> None:
    """Fifty units at 50 are a lot, but the order at 33 still rests."""
    state = a_state_with(a_sell("bob", 33, 10 * TOKEN))
    outcome = place(state, a_buy("alice", 50, 5 * TOKEN + 50))
    assert (reason(outcome), placement(outcome).taking_units) == (CloseReason.DUST, 5 * TOKEN)
    assert levels(state) == ([], [LevelSize(33, 5 * TOKEN)])
    assert state.ledger.look_up(ALICE, COLLATERAL).reserved_units == 0


def test_a_remainder_of_a_taker_below_a_lot_at_its_own_price_is_closed() -> None:
    """At 33 of 100 a lot is 100 units; at 40 of 100 it is 5."""
    state = a_state_with(a_buy("bob", 40, 5 * TOKEN + 5))
    outcome = place(state, a_sell("alice", 33, 5 * TOKEN + 100))
    assert (reason(outcome), placement(outcome).making_units) == (CloseReason.DUST, 5 * TOKEN + 5)
    assert levels(state) == ([], [])


def test_a_remainder_of_a_maker_below_a_lot_is_closed_and_never_crosses_the_book() -> None:
    """Carol's bid takes an odd part of Bob's order, whose last 90 units can never trade."""
    state = a_state_with(a_buy("carol", 40, 5 * TOKEN + 10), a_sell("bob", 33, 10 * TOKEN))
    assert levels(state) == ([], [LevelSize(33, 5 * TOKEN - 10)])
    outcome = place(state, a_buy("alice", 50, 20 * TOKEN))
    assert placement(outcome).taking_units == 5 * TOKEN - 100
    assert closed(outcome) == [(90, CloseReason.DUST)]
    assert levels(state) == ([LevelSize(50, 15 * TOKEN + 100)], [])
    assert state.ledger.look_up(BOB, YES).reserved_units == 0
    kinds = [type(each) for each in outcome.effects]
    assert kinds == [OrderPlaced, TradeMatched, OrderFilled, OrderClosed, BookChanged]


def test_an_unknown_market_accepts_no_order() -> None:
    with pytest.raises(UnknownMarket, match=a_word("market")):
        place(a_state(some_funds("alice")), a_buy())


def test_a_resolved_market_accepts_no_order() -> None:
    state = a_state_with()
    apply(state, ResolveMarket(NOW_MS, a_word("market")))
    before = digest(state)
    with pytest.raises(MarketClosed, match="is resolved"):
        place(state, a_buy())
    assert digest(state) == before


@pytest.mark.parametrize("order_type", [GTC, FOK])
def test_a_repeated_order_is_placed_once(order_type: OrderType) -> None:
    state = a_state_with(a_buy("bob", 50, 10 * TOKEN))
    first = place(state, a_sell("alice"), order_type)
    before = digest(state)
    again = place(state, a_sell("alice"), order_type, at_ms=NOW_MS + 1)
    assert again == Outcome(first.result, [], is_change=False)
    assert digest(state) == before


def test_an_order_repeated_after_it_was_closed_is_not_placed_again() -> None:
    state, placing = a_state_with(), a_placing(a_buy())
    first = apply(state, placing)
    apply(state, CancelOrders(NOW_MS, ALICE, (placing.order_id,)))
    assert apply(state, placing) == Outcome(first.result, [], is_change=False)
    assert state.live_orders == {}


def test_an_order_repeated_after_the_resolution_has_its_first_placement() -> None:
    state, placing = a_state_with(), a_placing(a_buy())
    first = apply(state, placing)
    apply(state, ResolveMarket(NOW_MS, a_word("market")))
    assert apply(state, placing).result == first.result


@pytest.mark.parametrize("changed", [{"owner": "another key"}, {"order_type": FAK}])
def test_an_order_repeated_with_another_type_or_owner_is_refused(changed: dict[str, Any]) -> None:
    state = a_state_with(a_buy())
    before = digest(state)
    with pytest.raises(OrderDuplicated) as refusal:
        apply(state, msgspec.structs.replace(a_placing(a_buy()), **changed))
    assert refusal.value.details == {"order_id": a_placing(a_buy()).order_id}
    assert digest(state) == before


def test_an_order_that_was_refused_may_be_placed_later() -> None:
    state, order = a_state_with(), a_sell("alice")
    with pytest.raises(FillOrKillUnfilled):
        place(state, order, FOK)
    place(state, a_buy("bob"))
    assert reason(place(state, order, FOK)) is CloseReason.FILLED


def a_poor_state(collateral: int = 0, yes: int = 0, allowance: int = 10**12) -> State:
    return a_state(
        an_open_market(),
        some_funds("bob"),
        an_observation(
            [BalanceSeen(ALICE, COLLATERAL, collateral), BalanceSeen(ALICE, YES, yes)],
            [
                AllowanceSeen(ALICE, EXCHANGE, is_collateral, allowance)
                for is_collateral in (True, False)
            ],
        ),
    )


@pytest.mark.parametrize(
    ("order", "order_type", "funds", "met"),
    [
        (a_buy(price_ticks=40), GTC, {"collateral": 4 * TOKEN}, a_sell("bob", 40)),
        (a_spending("alice", 40, 4 * TOKEN), FAK, {"collateral": 4 * TOKEN}, a_sell("bob", 40)),
        (a_sell("alice", 40), GTC, {"yes": 10 * TOKEN}, a_buy("bob", 40)),
        (a_sell("alice", 40), FAK, {"yes": 10 * TOKEN}, a_buy("bob", 40)),
    ],
    ids=["buy", "spend", "sell", "sell at any price"],
)
def test_funds_of_exactly_the_need_are_enough(
    order: SignedOrder, order_type: OrderType, funds: dict[str, int], met: SignedOrder
) -> None:
    state = a_poor_state(**funds)
    place(state, met)
    assert reason(place(state, order, order_type)) is CloseReason.FILLED


@pytest.mark.parametrize(
    ("order", "order_type", "funds"),
    [
        (a_buy(price_ticks=40), GTC, {"collateral": 4 * TOKEN - 1}),
        (a_spending(price_ticks=40, budget_units=4 * TOKEN), FAK, {"collateral": 4 * TOKEN - 1}),
        (a_sell("alice", 40), GTC, {"yes": 10 * TOKEN - 1}),
        (a_sell("alice", 40), FAK, {"yes": 10 * TOKEN - 1}),
    ],
    ids=["buy", "spend", "sell", "sell at any price"],
)
def test_funds_of_one_unit_less_are_refused(
    order: SignedOrder, order_type: OrderType, funds: dict[str, int]
) -> None:
    state = a_poor_state(**funds)
    before = digest(state)
    with pytest.raises(InsufficientBalance):
        place(state, order, order_type)
    assert digest(state) == before


def test_tokens_of_the_other_outcome_do_not_cover_a_sale() -> None:
    with pytest.raises(InsufficientBalance):
        place(a_poor_state(yes=10 * TOKEN), a_sell("alice", 40, is_yes=False))


def test_an_order_beyond_the_allowance_is_refused() -> None:
    state = a_poor_state(collateral=4 * TOKEN, allowance=4 * TOKEN - 1)
    with pytest.raises(InsufficientAllowance):
        place(state, a_buy(price_ticks=40))


def test_an_allowance_for_one_exchange_does_not_count_for_another() -> None:
    other = an_open_market("other", exchange=NEG_RISK_EXCHANGE)
    state = a_poor_state(collateral=10 * TOKEN)
    apply(state, other)
    order = a_buy(price_ticks=40, market="other", exchange=NEG_RISK_EXCHANGE)
    with pytest.raises(InsufficientAllowance):
        apply(state, a_placing(order, market=other))


@pytest.mark.case("B-02")
def test_the_last_unit_is_reserved_once_across_markets_and_tokens() -> None:
    other = an_open_market("other")
    state = a_poor_state(collateral=4 * TOKEN)
    apply(state, other)
    place(state, a_buy(price_ticks=20))
    apply(state, a_placing(a_buy(price_ticks=10, market="other"), market=other))
    place(state, a_buy(price_ticks=10, is_yes=False))
    with pytest.raises(ReservedByOpenOrders) as refusal:
        place(state, a_buy(price_ticks=1, size_units=5 * TOKEN, is_yes=False))
    assert refusal.value.details["reserved"] == 4 * TOKEN


def test_tokens_just_bought_can_be_sold_at_once_and_only_once() -> None:
    state = a_poor_state(collateral=4 * TOKEN)
    place(state, a_sell("bob", 40))
    place(state, a_buy("alice", 40))
    place(state, a_sell("alice", 60))
    with pytest.raises(ReservedByOpenOrders):
        place(state, a_sell("alice", 60, 5 * TOKEN, salt="2"))


def test_collateral_just_paid_cannot_be_spent_again() -> None:
    state = a_poor_state(collateral=4 * TOKEN)
    place(state, a_sell("bob", 40))
    place(state, a_buy("alice", 40))
    with pytest.raises(InsufficientBalance):
        place(state, a_buy("alice", 1, 5 * TOKEN))


def test_a_taker_with_more_fills_than_a_transaction_settles_has_several_trades() -> None:
    count = 2 * FILLS_PER_TRADE_MAX + 1
    state = a_state_with(
        *[a_sell("bob", 40, 5 * TOKEN, salt=f"{number}") for number in range(count)]
    )
    order = a_buy("alice", 40, count * 5 * TOKEN)
    outcome = place(state, order)
    matched = trades(outcome)
    assert [len(trade.fills) for trade in matched] == [FILLS_PER_TRADE_MAX, FILLS_PER_TRADE_MAX, 1]
    ids = [trade_id_of(a_placing(order).order_id, index) for index in range(3)]
    assert [trade.trade_id for trade in matched] == ids == list(placement(outcome).trade_ids)
    assert list(state.unsettled_trades) == ids
    assert sum(trade.size_units for trade in matched) == order.size_units
    assert sum(trade.taker_fill_units for trade in matched) == order.maker_amount
    assert placement(outcome).making_units == order.maker_amount


@pytest.mark.parametrize(
    ("size_units", "limit_ticks"), [(5 * TOKEN + 7, 30), (7 * TOKEN + 3, 41), (6 * TOKEN + 1, 99)]
)
def test_an_odd_size_trades_in_whole_lots(size_units: int, limit_ticks: int) -> None:
    """A resting size is always in whole lots; a SELL that only takes may have any size."""
    state = a_state_with(a_buy("bob", 99, 5 * TOKEN), a_buy("carol", 98, 5 * TOKEN))
    cost = size_units * limit_ticks // 100
    order = a_signed_order(
        "alice", side=Side.SELL, maker_amount=size_units, taker_amount=cost, token_id=YES
    )
    outcome = place(state, order, FAK)
    [trade] = trades(outcome)
    lots = [fill.size_units * fill.price_ticks % 100 for fill in trade.fills]
    assert set(lots) == {0}
    assert trade.size_units <= size_units
    assert trade.cost_units * 100 >= trade.size_units * limit_ticks


def test_terms_in_a_coarser_tick_are_converted_to_the_ticks_of_the_book() -> None:
    """The market's tick became finer after the order was checked."""
    market = an_open_market(rules=some_rules(ticks_per_one=1_000))
    state = a_state(market, some_funds("alice"))
    terms = OrderTerms(40, 100, 10 * TOKEN, None)
    place(state, a_buy(price_ticks=40), terms=terms)
    assert market_of(state).book.best_bid() == 400


def test_terms_in_a_finer_tick_are_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="finer"):
        place(a_state_with(), a_buy(), terms=OrderTerms(400, 1_000, 10 * TOKEN, None))


def test_an_order_is_checked_without_being_placed() -> None:
    state = a_state_with(a_sell("bob", 40))
    before = digest(state)
    check_order(state, a_placing(a_buy("alice", 50, 15 * TOKEN)))
    assert digest(state) == before


def test_a_check_of_a_repeated_order_takes_it_and_with_another_owner_refuses_it() -> None:
    placing = a_placing(a_buy())
    state = a_state_with(a_buy())
    check_order(state, placing)
    with pytest.raises(OrderDuplicated):
        check_order(state, msgspec.structs.replace(placing, owner="another"))


@pytest.mark.parametrize(
    ("order", "fields", "refusal"),
    [
        (a_buy("unfunded"), {}, InsufficientBalance),
        (a_buy("alice", 50), {"is_post_only": True}, PostOnlyWouldCross),
        (a_buy("alice", 30), {"order_type": FAK}, FillAndKillUnmatched),
        (a_buy(), {"condition_id": a_word("unknown")}, UnknownMarket),
    ],
)
def test_a_check_of_an_order_that_would_be_refused_refuses_it(
    order: SignedOrder, fields: dict[str, Any], refusal: type[Exception]
) -> None:
    state = a_state_with(a_sell("bob", 40))
    before = digest(state)
    with pytest.raises(refusal):
        check_order(state, msgspec.structs.replace(a_placing(order), **fields))
    assert digest(state) == before
