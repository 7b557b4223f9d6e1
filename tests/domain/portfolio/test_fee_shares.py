import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.fee_shares import divide_fee

BPS = st.integers(0, 10_000)


@given(st.integers(0, 10**18), BPS, BPS)
def test_the_parts_are_the_fee_and_nobody_gets_more_than_its_rate(
    fee_units: int, builder_bps: int, referrer_bps: int
) -> None:
    shares = divide_fee(fee_units, builder_bps, referrer_bps)
    assert sum(shares) == fee_units
    assert min(shares) >= 0
    assert shares.builder_units * 10_000 <= fee_units * builder_bps
    left_units = fee_units - shares.builder_units
    assert shares.referrer_units * 10_000 <= left_units * referrer_bps
    assert (shares.builder_units + 1) * 10_000 > fee_units * builder_bps
    assert (shares.referrer_units + 1) * 10_000 > left_units * referrer_bps


@pytest.mark.parametrize(
    ("fee_units", "rates", "expected"),
    [
        (0, (3_000, 2_000), (0, 0, 0)),
        (101, (0, 0), (0, 0, 101)),
        (101, (3_000, 0), (30, 0, 71)),
        (101, (3_000, 2_000), (30, 14, 57)),
        (101, (0, 10_000), (0, 101, 0)),
        (1, (9_999, 9_999), (0, 0, 1)),
    ],
)
def test_a_fee_is_divided_by_hand(
    fee_units: int, rates: tuple[int, int], expected: tuple[int, int, int]
) -> None:
    assert divide_fee(fee_units, *rates) == expected
