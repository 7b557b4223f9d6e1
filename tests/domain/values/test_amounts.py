"""Prices and sizes as integers."""

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.families import MalformedAmount
from foretell.domain.values.amounts import (
    AMOUNT_UNITS_MAX,
    affordable_size_units,
    decimal_text,
    exact_cost_units,
    lot_units,
    parse_units,
    price_text,
    ratio_text,
    reserve_units,
    tick_text,
    whole_lots_units,
)

TICKS_PER_ONE = st.sampled_from([10, 100, 200, 400, 1_000, 10_000])
SIZES = st.integers(0, 10**15)


@st.composite
def prices(draw: st.DrawFn) -> tuple[int, int]:
    """A price in ticks, and the ticks of one."""
    ticks_per_one = draw(TICKS_PER_ONE)
    return draw(st.integers(1, ticks_per_one - 1)), ticks_per_one


@given(prices(), st.integers(1, 10_000))
def test_a_lot_is_the_smallest_size_of_whole_cost(price: tuple[int, int], size: int) -> None:
    ratio = Fraction(*price)
    lot = lot_units(*price)
    assert (lot * ratio).denominator == 1
    assert ((size * ratio).denominator == 1) == (size % lot == 0)


@given(prices())
def test_a_token_and_its_complement_have_one_lot(price: tuple[int, int]) -> None:
    ticks, ticks_per_one = price
    assert lot_units(ticks, ticks_per_one) == lot_units(ticks_per_one - ticks, ticks_per_one)


@given(SIZES, prices())
def test_whole_lots_leave_less_than_a_lot(size: int, price: tuple[int, int]) -> None:
    lots = whole_lots_units(size, *price)
    assert lots % lot_units(*price) == 0
    assert 0 <= size - lots < lot_units(*price)


@pytest.mark.case("B-03")
@given(SIZES, prices())
def test_both_sides_of_a_complete_set_cost_its_collateral(
    size: int, price: tuple[int, int]
) -> None:
    ticks, ticks_per_one = price
    lots = whole_lots_units(size, ticks, ticks_per_one)
    yes = exact_cost_units(lots, ticks, ticks_per_one)
    no = exact_cost_units(lots, ticks_per_one - ticks, ticks_per_one)
    assert yes + no == lots


@given(SIZES, prices())
def test_a_reserve_is_the_cost_rounded_up(size: int, price: tuple[int, int]) -> None:
    cost = size * Fraction(*price)
    assert cost <= reserve_units(size, *price) < cost + 1


@given(SIZES, SIZES, prices())
def test_parts_of_a_size_reserve_no_less_than_the_whole(
    first: int, second: int, price: tuple[int, int]
) -> None:
    whole = reserve_units(first + second, *price)
    assert whole <= reserve_units(first, *price) + reserve_units(second, *price) <= whole + 1


@given(SIZES, prices())
def test_the_affordable_size_is_the_largest_that_the_collateral_covers(
    collateral: int, price: tuple[int, int]
) -> None:
    size = affordable_size_units(collateral, *price)
    assert reserve_units(size, *price) <= collateral
    assert (size + 1) * Fraction(*price) > collateral


def test_a_size_that_is_not_whole_lots_has_no_exact_cost() -> None:
    with pytest.raises(AssertionError):
        exact_cost_units(101, 33, 100)


@pytest.mark.parametrize("price", [-1, 0, 100, 101])
def test_a_price_is_strictly_between_zero_and_one(price: int) -> None:
    with pytest.raises(AssertionError):
        lot_units(price, 100)
    with pytest.raises(AssertionError):
        reserve_units(1, price, 100)
    with pytest.raises(AssertionError):
        affordable_size_units(1, price, 100)


def test_no_size_is_negative() -> None:
    with pytest.raises(AssertionError):
        whole_lots_units(-1, 50, 100)
    with pytest.raises(AssertionError):
        reserve_units(-1, 50, 100)
    with pytest.raises(AssertionError):
        affordable_size_units(-1, 50, 100)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("0", 0),
        ("1", 1),
        ("0001", 1),
        ("9223372036854775807", AMOUNT_UNITS_MAX),
        ("0" * 59 + "9223372036854775807", AMOUNT_UNITS_MAX),
    ],
)
def test_base_units_are_parsed_from_decimal_digits(text: str, units: int) -> None:
    assert parse_units(text, "makerAmount") == units


@pytest.mark.parametrize(
    "text",
    [
        None,
        5,
        5.0,
        True,
        "",
        " 1",
        "1 ",
        "1\n",
        "+1",
        "-1",
        "-0",
        "1.0",
        "1e6",
        "0x10",
        "1_000",
        "\u0661",
        "\u00b2",
        "NaN",
        "Infinity",
        "9223372036854775808",
        str(2**256),
        "0" * 79,
        pytest.param("9" * 10_000, id="ten thousand digits"),
    ],
)
def test_a_malformed_amount_is_refused_with_the_name_of_the_field(text: object) -> None:
    with pytest.raises(MalformedAmount) as refusal:
        parse_units(text, "makerAmount")
    assert refusal.value.details["field"] == "makerAmount"


@pytest.mark.parametrize(
    ("units", "text"),
    [
        (0, "0"),
        (1, "0.000001"),
        (10, "0.00001"),
        (500_000, "0.5"),
        (1_000_000, "1"),
        (10_000_000, "10"),
        (1_000_001, "1.000001"),
        (123_450_000, "123.45"),
        (AMOUNT_UNITS_MAX, "9223372036854.775807"),
    ],
)
def test_tokens_are_written_without_exponent_or_trailing_zeros(units: int, text: str) -> None:
    assert decimal_text(units) == text


@given(SIZES)
def test_the_text_of_an_amount_is_exact(units: int) -> None:
    assert Decimal(decimal_text(units)) * 10**6 == units


def test_negative_units_have_no_text() -> None:
    with pytest.raises(AssertionError):
        decimal_text(-1)


@pytest.mark.parametrize(
    ("ticks", "ticks_per_one", "text"),
    [
        (0, 100, "0"),
        (1, 100, "0.01"),
        (50, 100, "0.5"),
        (99, 100, "0.99"),
        (100, 100, "1"),
        (1, 10, "0.1"),
        (1, 200, "0.005"),
        (1, 400, "0.0025"),
        (999, 1_000, "0.999"),
        (1, 10_000, "0.0001"),
    ],
)
def test_prices_are_written_exactly(ticks: int, ticks_per_one: int, text: str) -> None:
    assert price_text(ticks, ticks_per_one) == text


@pytest.mark.parametrize("ticks", [-1, 101])
def test_a_price_above_one_or_below_zero_has_no_text(ticks: int) -> None:
    with pytest.raises(AssertionError):
        price_text(ticks, 100)


@pytest.mark.parametrize(
    ("ticks_per_one", "text"),
    [
        (10, "0.1"),
        (100, "0.01"),
        (200, "0.005"),
        (400, "0.0025"),
        (1_000, "0.001"),
        (10_000, "0.0001"),
    ],
)
def test_ticks_are_written_as_clients_expect_them(ticks_per_one: int, text: str) -> None:
    assert tick_text(ticks_per_one) == text


@given(st.integers(0, 10**15), st.integers(1, 10**12))
def test_a_ratio_is_rounded_half_to_even_at_six_decimals(numerator: int, denominator: int) -> None:
    millionths = round(Fraction(numerator * 10**6, denominator))
    assert Decimal(ratio_text(numerator, denominator)) * 10**6 == millionths


@pytest.mark.parametrize(
    ("numerator", "text"),
    [(1, "0"), (3, "0.000002"), (5, "0.000002"), (7, "0.000004")],
)
def test_an_exact_half_goes_to_the_even_neighbour(numerator: int, text: str) -> None:
    exact = Decimal(numerator) / Decimal(2 * 10**6)
    assert ratio_text(numerator, 2 * 10**6) == text
    assert Decimal(text) == exact.quantize(Decimal("0.000001"), ROUND_HALF_EVEN)
