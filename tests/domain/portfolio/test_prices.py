from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.prices import (
    ONE_HALF,
    BookTop,
    competitiveness,
    current_price,
    last_price,
    listed_price,
    midpoint,
    payout_fraction,
    spread,
    value_units,
)

TICKS = 100


@st.composite
def tops(draw: st.DrawFn) -> BookTop:
    """Yield books that do not cross; either side may be empty."""
    ticks_per_one = draw(st.sampled_from([10, 100, 1000, 10_000]))
    prices = st.none() | st.integers(1, ticks_per_one - 1)
    bid, ask, last = draw(prices), draw(prices), draw(prices)
    if bid is not None and ask is not None and bid >= ask:
        bid, ask = (ask, bid) if ask < bid else (bid, None)
    return BookTop(ticks_per_one, bid, ask, last)


payouts = st.none() | st.builds(Payout, st.integers(0, 10**6), st.integers(1, 10**6))


@pytest.mark.parametrize(
    ("top", "current", "listed"),
    [
        (BookTop(TICKS, 40, 45, 90), Fraction(85, 200), Fraction(85, 200)),
        (BookTop(TICKS, 40, 50, 90), Fraction(45, 100), Fraction(45, 100)),
        (BookTop(TICKS, 40, 51, 90), Fraction(90, 100), Fraction(91, 200)),
        (BookTop(TICKS, 40, 51, None), ONE_HALF, Fraction(91, 200)),
        (BookTop(TICKS, 40, None, 90), Fraction(90, 100), Fraction(90, 100)),
        (BookTop(TICKS, None, 45, 90), Fraction(90, 100), Fraction(90, 100)),
        (BookTop(TICKS, None, 45, None), ONE_HALF, ONE_HALF),
        (BookTop(TICKS), ONE_HALF, ONE_HALF),
        (None, ONE_HALF, ONE_HALF),
    ],
)
def test_a_price_is_the_midpoint_of_a_narrow_book_else_the_last_trade_else_one_half(
    top: BookTop | None, current: Fraction, listed: Fraction
) -> None:
    assert current_price(top, None, is_yes=True) == current
    assert current_price(top, None, is_yes=False) == 1 - current
    assert listed_price(top, None, is_yes=True) == listed
    assert listed_price(top, None, is_yes=False) == 1 - listed


@pytest.mark.parametrize(
    ("payout", "yes", "no"),
    [
        (Payout(1, 0), Fraction(1), Fraction(0)),
        (Payout(0, 1), Fraction(0), Fraction(1)),
        (Payout(1, 1), ONE_HALF, ONE_HALF),
        (Payout(1, 2), Fraction(1, 3), Fraction(2, 3)),
    ],
)
def test_a_resolved_token_is_worth_its_payout_with_any_book(
    payout: Payout, yes: Fraction, no: Fraction
) -> None:
    top = BookTop(TICKS, 40, 45, 90)
    assert payout_fraction(payout, is_yes=True) == yes
    assert current_price(top, payout, is_yes=True) == listed_price(top, payout, is_yes=True) == yes
    assert current_price(top, payout, is_yes=False) == listed_price(top, payout, is_yes=False) == no


@given(tops(), payouts)
def test_a_complete_set_is_always_worth_one(top: BookTop, payout: Payout | None) -> None:
    assert current_price(top, payout, is_yes=True) + current_price(top, payout, is_yes=False) == 1
    assert listed_price(top, payout, is_yes=True) + listed_price(top, payout, is_yes=False) == 1


@given(top=tops(), payout=payouts, is_yes=st.booleans())
def test_a_price_lies_between_nothing_and_one(
    *, top: BookTop, payout: Payout | None, is_yes: bool
) -> None:
    assert 0 <= current_price(top, payout, is_yes=is_yes) <= 1
    assert 0 <= listed_price(top, payout, is_yes=is_yes) <= 1


@given(tops())
def test_the_other_token_sees_the_same_book_from_the_other_side(top: BookTop) -> None:
    other = top.seen_from(is_yes=False)
    assert other.seen_from(is_yes=False) == top.seen_from(is_yes=True) == top
    assert spread(other) == spread(top)
    assert current_price(other, None, is_yes=True) == current_price(top, None, is_yes=False)
    assert listed_price(other, None, is_yes=True) == listed_price(top, None, is_yes=False)


def test_a_bid_for_no_is_an_ask_for_yes() -> None:
    assert BookTop(TICKS, 40, None, 42).seen_from(is_yes=False) == BookTop(TICKS, None, 60, 58)


@given(tops().filter(lambda top: None not in top))
def test_the_midpoint_lies_half_a_spread_from_both_sides(top: BookTop) -> None:
    middle, width = midpoint(top), spread(top)
    assert middle is not None
    assert width is not None
    assert middle - width / 2 == Fraction(top.best_bid_ticks or 0, top.ticks_per_one)
    assert middle + width / 2 == Fraction(top.best_ask_ticks or 0, top.ticks_per_one)


@pytest.mark.parametrize("top", [BookTop(TICKS, 40), BookTop(TICKS, None, 40), BookTop(TICKS)])
def test_a_book_with_an_empty_side_has_neither_midpoint_nor_spread(top: BookTop) -> None:
    assert midpoint(top) is None
    assert spread(top) is None


def test_there_is_no_last_price_before_the_first_trade() -> None:
    assert last_price(BookTop(TICKS)) is None
    assert last_price(BookTop(TICKS, last_price_ticks=7)) == Fraction(7, 100)


@given(st.integers(0, 10**15), st.fractions(0, 1))
def test_a_value_is_off_by_half_a_base_unit_at_most(size_units: int, price: Fraction) -> None:
    assert abs(value_units(size_units, price) - size_units * price) <= ONE_HALF


def test_a_value_half_way_between_two_units_goes_to_the_even_one() -> None:
    assert value_units(1, ONE_HALF) == 0
    assert value_units(3, ONE_HALF) == 2


def test_even_odds_are_the_most_competitive() -> None:
    assert competitiveness(ONE_HALF) == 1
    assert competitiveness(Fraction(1)) == competitiveness(Fraction(0)) == Fraction(4, 5)
    assert competitiveness(Fraction(3, 4)) == Fraction(16, 17)


@given(top=tops(), factor=st.integers(1, 100))
def test_a_book_in_finer_ticks_has_the_same_prices(top: BookTop, factor: int) -> None:
    finer = top.refined(top.ticks_per_one * factor)
    assert finer.ticks_per_one == top.ticks_per_one * factor
    assert (midpoint(finer), spread(finer), last_price(finer)) == (
        midpoint(top),
        spread(top),
        last_price(top),
    )
    assert [ticks is None for ticks in finer] == [ticks is None for ticks in top]
