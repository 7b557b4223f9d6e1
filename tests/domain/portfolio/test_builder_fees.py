"""Fees of builders: exact to the unit, for all sizes, prices and shares."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.builder_fees import (
    FEE_STEP_UNITS,
    MAKER_FLAT_BPS_MAX,
    NO_RATES,
    TAKER_SHARE_BPS_MAX,
    BuilderFee,
    BuilderRates,
    base_fee_units,
    maker_fee,
    rates_at,
    taker_fee,
)

UNITS = st.integers(0, 10**18)
FEES = UNITS.map(lambda units: units * FEE_STEP_UNITS)


@pytest.mark.parametrize(
    ("size_units", "price_ticks", "rate_bps", "fee_units"),
    [
        (100_000_000, 50, 0, 0),
        (100_000_000, 50, 441, 1_102_500),  # 100 x 0.0441 x 0.25
        (10_000_000, 30, 1000, 210_000),
        (1_000, 1, 1, 0),  # less than 0.00001
        (160_000, 50, 3, 10),  # 0.000012 is rounded to 0.00001
        (200_000, 50, 3, 20),  # 0.000015 is rounded up
    ],
)
def test_the_base_is_size_x_rate_x_price_x_its_complement(
    size_units: int, price_ticks: int, rate_bps: int, fee_units: int
) -> None:
    assert base_fee_units(size_units, price_ticks, 100, rate_bps) == fee_units


@given(size=UNITS, price=st.integers(0, 10_000), rate=st.integers(0, 10_000))
def test_the_base_is_rounded_to_the_nearest_step(size: int, price: int, rate: int) -> None:
    exact = Fraction(size * rate * price * (10_000 - price), 10_000**3)
    fee = base_fee_units(size, price, 10_000, rate)
    assert fee % FEE_STEP_UNITS == 0
    assert fee == 0 if exact < FEE_STEP_UNITS else 2 * abs(fee - exact) <= FEE_STEP_UNITS


@given(size=UNITS, price=st.integers(0, 1_000), rate=st.integers(0, 10_000))
def test_both_tokens_of_a_market_have_one_base(size: int, price: int, rate: int) -> None:
    assert base_fee_units(size, price, 1_000, rate) == base_fee_units(
        size, 1_000 - price, 1_000, rate
    )


@given(base=FEES, share=st.integers(0, TAKER_SHARE_BPS_MAX))
def test_the_operator_keeps_the_base_and_less_than_a_step_more(base: int, share: int) -> None:
    fee, builder = taker_fee(base, share)
    assert fee % FEE_STEP_UNITS == 0
    assert 0 <= builder <= Fraction(fee * share, 10_000) < builder + 1
    assert fee - builder >= base
    assert (fee - FEE_STEP_UNITS) * (10_000 - share) < base * 10_000


@pytest.mark.parametrize(
    ("base", "share", "fee"),
    [
        (1_102_500, 3000, BuilderFee(1_575_000, 472_500)),
        (10, 3000, BuilderFee(20, 6)),
        (1_102_500, 0, BuilderFee(1_102_500, 0)),
        (0, 3000, BuilderFee(0, 0)),
    ],
)
def test_the_fee_is_the_base_grossed_up(base: int, share: int, fee: BuilderFee) -> None:
    assert taker_fee(base, share) == fee


@given(collateral=UNITS, flat=st.integers(0, MAKER_FLAT_BPS_MAX))
def test_a_maker_s_fee_is_all_the_builder_s(collateral: int, flat: int) -> None:
    fee = maker_fee(collateral, flat)
    assert fee.fee_units == fee.builder_units
    assert 0 <= Fraction(collateral * flat, 10_000) - fee.builder_units < 1


@pytest.mark.parametrize(("at_ms", "share"), [(9, 0), (10, 1), (19, 1), (20, 2), (10**13, 2)])
def test_a_trade_has_the_rates_of_its_time(at_ms: int, share: int) -> None:
    rates = [BuilderRates(10, 1, 0), BuilderRates(20, 2, 0)]
    assert rates_at(rates, at_ms).taker_share_bps == share
    assert rates_at([], at_ms) == NO_RATES
