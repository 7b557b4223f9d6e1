"""The signed order: its own validity and its statuses."""

import itertools
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from py_clob_client.order_builder.builder import ROUNDING_CONFIG, OrderBuilder
from py_clob_client.signer import Signer
from tests.rigs.values import (
    CHAIN_ID,
    NOW_S,
    TOKEN,
    a_buy,
    a_key,
    a_sell,
    a_signed_order,
    a_spending,
    an_order_id,
    some_rules,
)

from foretell.domain.errors.exchange import (
    BudgetBelowMinimum,
    InvalidExpiration,
    InvalidFeeRate,
    MalformedOrder,
    PriceOffTick,
    SizeBelowMinimum,
)
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.exchange.order import (
    EXPIRATION_MARGIN_S,
    ORDER_TRANSITIONS,
    SERVED_SIGNATURE_TYPES,
    MarketRules,
    OrderStatus,
    OrderTerms,
    OrderTrigger,
    OrderType,
    Side,
    SignatureType,
    SignedOrder,
    advance_order,
    check_expiration,
    has_budget,
    leaves_book_at_s,
    order_terms,
)
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX

TICKS = ["0.1", "0.01", "0.001", "0.0001"]
RESTING = [OrderType.GTC, OrderType.GTD]
TAKING = [OrderType.FOK, OrderType.FAK]
UNBOUND = some_rules(size_units_min=0)


def terms_of(
    order: SignedOrder, order_type: OrderType = OrderType.GTC, rules: MarketRules | None = None
) -> OrderTerms:
    return order_terms(order, order_type, rules or some_rules(), an_order_id(order))


def with_amounts(side: Side, collateral: int, size: int) -> SignedOrder:
    maker, taker = (collateral, size) if side is Side.BUY else (size, collateral)
    return a_signed_order(side=side, maker_amount=maker, taker_amount=taker)


def test_sides_and_signature_types_have_the_numbers_that_clients_sign() -> None:
    assert {side.name: side.value for side in Side} == {"BUY": 0, "SELL": 1}
    numbers = {kind.name: kind.value for kind in SignatureType}
    assert numbers == {"EOA": 0, "PROXY": 1, "SAFE": 2, "CONTRACT": 3}


@pytest.mark.parametrize("kind", [SignedOrder, OrderTerms, MarketRules])
def test_orders_terms_and_rules_are_immutable(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert kind.__struct_config__.array_like


def test_a_buy_gives_collateral_for_tokens() -> None:
    order = a_buy(price_ticks=40, size_units=10 * TOKEN)
    assert (order.maker_amount, order.taker_amount) == (4 * TOKEN, 10 * TOKEN)
    assert (order.collateral_units, order.size_units) == (4 * TOKEN, 10 * TOKEN)


def test_a_sell_gives_tokens_for_collateral() -> None:
    order = a_sell(price_ticks=40, size_units=10 * TOKEN)
    assert (order.maker_amount, order.taker_amount) == (10 * TOKEN, 4 * TOKEN)
    assert (order.collateral_units, order.size_units) == (4 * TOKEN, 10 * TOKEN)


@pytest.mark.parametrize("order_type", RESTING)
@pytest.mark.parametrize("maker", [a_buy, a_sell])
def test_an_order_that_may_rest_names_its_size(maker: Any, order_type: OrderType) -> None:
    expiration = NOW_S if order_type is OrderType.GTD else 0
    order = maker(price_ticks=37, expiration_s=expiration)
    assert terms_of(order, order_type) == OrderTerms(37, 100, 10 * TOKEN, None)
    assert order_type.may_rest


@pytest.mark.parametrize("order_type", TAKING)
def test_a_sell_that_only_takes_names_its_size(order_type: OrderType) -> None:
    assert terms_of(a_sell(price_ticks=37), order_type) == OrderTerms(37, 100, 10 * TOKEN, None)
    assert not order_type.may_rest


@pytest.mark.parametrize("order_type", TAKING)
def test_a_buy_that_only_takes_has_a_budget(order_type: OrderType) -> None:
    order = a_spending(price_ticks=37, budget_units=10 * TOKEN)
    assert terms_of(order, order_type) == OrderTerms(37, 100, None, 10 * TOKEN)


@pytest.mark.parametrize("order_type", OrderType)
@pytest.mark.parametrize("side", Side)
def test_only_a_buy_that_may_not_rest_has_a_budget(side: Side, order_type: OrderType) -> None:
    is_budgeted = (side, order_type.may_rest) == (Side.BUY, False)
    assert has_budget(side, order_type) is is_budgeted
    expiration = NOW_S if order_type is OrderType.GTD else 0
    order = msgspec.structs.replace(
        with_amounts(side, 5 * TOKEN, 10 * TOKEN), expiration_s=expiration
    )
    assert terms_of(order, order_type).has_budget is is_budgeted


def test_the_served_signature_types_are_those_of_own_keys_and_the_three_wallets() -> None:
    assert dict(SERVED_SIGNATURE_TYPES) == {
        SignatureType.EOA: "EOA",
        SignatureType.PROXY: "proxy wallet",
        SignatureType.SAFE: "Safe",
        SignatureType.CONTRACT: "deposit wallet",
    }


@pytest.mark.case("B-04")
@pytest.mark.parametrize("order_type", OrderType)
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(("maker_amount", "taker_amount"), [(0, 5 * TOKEN), (5 * TOKEN, 0), (0, 0)])
def test_an_amount_of_zero_is_refused(
    side: Side, maker_amount: int, taker_amount: int, order_type: OrderType
) -> None:
    order = a_signed_order(side=side, maker_amount=maker_amount, taker_amount=taker_amount)
    with pytest.raises(MalformedOrder, match="greater than zero"):
        terms_of(order, order_type)


@pytest.mark.case("B-04")
@pytest.mark.parametrize("order_type", [OrderType.GTC, OrderType.FOK, OrderType.FAK])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("collateral", "size"),
    [
        (5 * TOKEN, 5 * TOKEN),
        (5 * TOKEN + 1, 5 * TOKEN),
        (AMOUNT_UNITS_MAX, 5 * TOKEN),
        (AMOUNT_UNITS_MAX, AMOUNT_UNITS_MAX),
        (AMOUNT_UNITS_MAX, 1),
        (10 * TOKEN, 5 * TOKEN),
        (40_000, 5 * TOKEN),
    ],
    ids=["one", "just above one", "huge", "huge at one", "huge for a unit", "two", "below a tick"],
)
def test_a_price_that_is_not_between_zero_and_one_is_refused(
    side: Side, collateral: int, size: int, order_type: OrderType
) -> None:
    with pytest.raises(PriceOffTick, match="strictly between 0 and 1"):
        terms_of(with_amounts(side, collateral, size), order_type, UNBOUND)


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("collateral", [499_999, 500_001, 500_999, 504_999, 505_000])
def test_an_order_that_may_rest_is_exactly_on_its_tick(side: Side, collateral: int) -> None:
    with pytest.raises(PriceOffTick) as refusal:
        terms_of(with_amounts(side, collateral, TOKEN), rules=UNBOUND)
    assert refusal.value.details["collateral_units"] == collateral
    assert refusal.value.details["size_units"] == TOKEN


@pytest.mark.parametrize(
    ("side", "collateral", "price_ticks"),
    [
        (Side.BUY, 500_000, 50),
        (Side.BUY, 500_500, 50),
        (Side.BUY, 499_500, 49),
        (Side.BUY, 999_999, 99),
        (Side.SELL, 500_000, 50),
        (Side.SELL, 500_500, 51),
        (Side.SELL, 499_500, 50),
        (Side.SELL, 1, 1),
    ],
)
def test_the_limit_of_an_order_that_only_takes_is_the_tighter_of_two_ticks(
    side: Side, collateral: int, price_ticks: int
) -> None:
    terms = terms_of(with_amounts(side, collateral, TOKEN), OrderType.FAK, UNBOUND)
    assert terms.price_ticks == price_ticks


@pytest.mark.parametrize(
    ("side", "collateral"),
    [
        (Side.BUY, 500_501),
        (Side.BUY, 499_499),
        (Side.BUY, 505_000),
        (Side.BUY, 9_999),
        (Side.BUY, 1),
        (Side.SELL, 500_501),
        (Side.SELL, 499_499),
        (Side.SELL, 505_000),
        (Side.SELL, 990_001),
        (Side.SELL, 999_999),
    ],
)
def test_an_order_that_only_takes_far_from_a_tick_or_without_a_tighter_one_is_refused(
    side: Side, collateral: int
) -> None:
    with pytest.raises(PriceOffTick):
        terms_of(with_amounts(side, collateral, TOKEN), OrderType.FOK, UNBOUND)


@given(
    st.sampled_from(Side),
    st.sampled_from([10, 100, 200, 400, 1_000, 10_000]),
    st.integers(1, 10**13),
    st.integers(1, 10**13),
)
def test_no_limit_is_worse_than_the_signed_price(
    side: Side, ticks_per_one: int, collateral: int, size: int
) -> None:
    signed = Fraction(collateral, size)
    rules = some_rules(ticks_per_one, size_units_min=0)
    order = with_amounts(side, collateral, size)
    assume(signed < 1)
    try:
        limit = Fraction(terms_of(order, OrderType.FAK, rules).price_ticks, ticks_per_one)
    except PriceOffTick:
        return
    tighter = signed - limit if side is Side.BUY else limit - signed
    assert 0 <= tighter < Fraction(1, ticks_per_one)
    assert 0 < limit < 1


@given(st.sampled_from(TICKS), st.integers(500, 10**7), st.data())
def test_limit_orders_of_clients_are_on_their_tick(
    tick: str, hundredths: int, data: st.DataObject
) -> None:
    """The client computes in floats with its own rounding."""
    ticks_per_one = round(1 / float(tick))
    price_ticks = data.draw(st.integers(1, ticks_per_one - 1))
    side = data.draw(st.sampled_from(Side))
    _, maker, taker = a_client().get_order_amounts(
        side.name, hundredths / 100, price_ticks / ticks_per_one, ROUNDING_CONFIG[tick]
    )
    order = a_signed_order(side=side, maker_amount=maker, taker_amount=taker)
    terms = terms_of(order, OrderType.GTC, some_rules(ticks_per_one))
    assert (terms.price_ticks, terms.size_units) == (price_ticks, order.size_units)


@given(st.sampled_from(TICKS), st.integers(500, 10**7), st.data())
def test_market_orders_of_clients_have_the_intended_price(
    tick: str, hundredths: int, data: st.DataObject
) -> None:
    ticks_per_one = round(1 / float(tick))
    price_ticks = data.draw(st.integers(1, ticks_per_one - 1))
    side = data.draw(st.sampled_from(Side))
    _, maker, taker = a_client().get_market_order_amounts(
        side.name, hundredths / 100, price_ticks / ticks_per_one, ROUNDING_CONFIG[tick]
    )
    order = a_signed_order(side=side, maker_amount=maker, taker_amount=taker)
    terms = terms_of(order, OrderType.FOK, some_rules(ticks_per_one))
    assert terms.price_ticks == price_ticks


def a_client() -> Any:
    return OrderBuilder(Signer("0x" + a_key("alice").hex(), CHAIN_ID))


@pytest.mark.parametrize("order_type", [OrderType.GTC, OrderType.FAK])
@pytest.mark.parametrize("side", Side)
def test_the_minimum_size_is_accepted(side: Side, order_type: OrderType) -> None:
    terms_of(with_amounts(side, 2_500_000, 5 * TOKEN), order_type)


@pytest.mark.parametrize("order_type", TAKING)
def test_an_order_that_only_takes_has_no_minimum_in_shares(order_type: OrderType) -> None:
    sale = terms_of(with_amounts(Side.SELL, 1, 2), order_type)
    assert (sale.size_units, sale.budget_units) == (2, None)
    bid = terms_of(with_amounts(Side.BUY, TOKEN, 2 * TOKEN), order_type)
    assert (bid.size_units, bid.budget_units) == (None, TOKEN)


@pytest.mark.parametrize("order_type", TAKING)
def test_an_order_that_only_takes_spends_at_least_one(order_type: OrderType) -> None:
    with pytest.raises(BudgetBelowMinimum) as refusal:
        terms_of(with_amounts(Side.BUY, TOKEN - 1, 2 * TOKEN - 2), order_type)
    assert refusal.value.details["budget_units"] == TOKEN - 1
    assert refusal.value.details["budget_units_min"] == TOKEN


@pytest.mark.parametrize("side", Side)
def test_a_size_below_the_minimum_is_refused(side: Side) -> None:
    order = msgspec.structs.replace(with_amounts(side, 2_499_999, 4_999_998), expiration_s=0)
    with pytest.raises(SizeBelowMinimum) as refusal:
        terms_of(order, OrderType.GTC)
    assert refusal.value.details["size_units"] == 4_999_998
    assert refusal.value.details["size_units_min"] == 5 * TOKEN


@pytest.mark.parametrize(("signed", "wanted"), [(0, 10), (10, 0), (9, 10), (11, 10)])
def test_a_fee_rate_other_than_the_markets_is_refused(signed: int, wanted: int) -> None:
    with pytest.raises(InvalidFeeRate, match=f"is {signed}, and must be the market's {wanted}"):
        terms_of(a_buy(fee_rate_bps=signed), rules=some_rules(fee_rate_bps=wanted))


def test_the_fee_rate_of_the_market_is_accepted() -> None:
    assert terms_of(a_buy(fee_rate_bps=10), rules=some_rules(fee_rate_bps=10)).price_ticks == 50


@pytest.mark.parametrize("order_type", [OrderType.GTC, OrderType.FOK, OrderType.FAK])
def test_an_expiration_is_refused_for_all_types_but_gtd(order_type: OrderType) -> None:
    with pytest.raises(InvalidExpiration, match="GTD orders need an expiration"):
        terms_of(a_buy(expiration_s=NOW_S + 3600), order_type)


def test_gtd_needs_an_expiration() -> None:
    with pytest.raises(InvalidExpiration, match="GTD orders need an expiration"):
        terms_of(a_buy(), OrderType.GTD)


@pytest.mark.parametrize("expires_in_s", [-1, 0, 1, EXPIRATION_MARGIN_S - 1, EXPIRATION_MARGIN_S])
def test_an_order_that_could_not_settle_in_time_is_refused(expires_in_s: int) -> None:
    message = f"it is {NOW_S}, and the expiration must be later than {NOW_S + 60}"
    with pytest.raises(InvalidExpiration, match=message):
        check_expiration(a_buy(expiration_s=NOW_S + expires_in_s), NOW_S)


def test_a_second_above_the_margin_is_enough() -> None:
    order = a_buy(expiration_s=NOW_S + EXPIRATION_MARGIN_S + 1)
    check_expiration(order, NOW_S)
    assert leaves_book_at_s(order) == NOW_S + 1


def test_an_order_without_expiration_does_not_expire() -> None:
    check_expiration(a_buy(), NOW_S)
    assert leaves_book_at_s(a_buy()) is None


LIFE = {
    (OrderStatus.LIVE, OrderTrigger.FILL_PART): OrderStatus.LIVE,
    (OrderStatus.LIVE, OrderTrigger.FILL_ALL): OrderStatus.MATCHED,
    (OrderStatus.LIVE, OrderTrigger.CLOSE_DUST): OrderStatus.MATCHED,
    (OrderStatus.LIVE, OrderTrigger.CANCEL): OrderStatus.CANCELED,
    (OrderStatus.DELAYED, OrderTrigger.RELEASE): OrderStatus.LIVE,
    (OrderStatus.DELAYED, OrderTrigger.FILL_ALL): OrderStatus.MATCHED,
    (OrderStatus.DELAYED, OrderTrigger.CLOSE_DUST): OrderStatus.MATCHED,
    (OrderStatus.DELAYED, OrderTrigger.CANCEL): OrderStatus.CANCELED,
}


@pytest.mark.parametrize(("pair", "end"), list(LIFE.items()))
def test_a_live_order_moves_along_its_transitions(
    pair: tuple[OrderStatus, OrderTrigger], end: OrderStatus
) -> None:
    assert advance_order(*pair) is end


@pytest.mark.parametrize(
    "pair", [pair for pair in itertools.product(OrderStatus, OrderTrigger) if pair not in LIFE]
)
def test_an_order_moves_no_other_way(pair: tuple[OrderStatus, OrderTrigger]) -> None:
    with pytest.raises(IllegalTransition, match=f"order is {pair[0]} and cannot {pair[1]}"):
        advance_order(*pair)


def test_an_order_has_no_other_transitions() -> None:
    assert dict(ORDER_TRANSITIONS) == LIFE
