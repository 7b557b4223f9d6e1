"""The shares of a fee that the exchange charged on the chain: of the builder and of the referrer of an order.

Every fill is divided alone, in units of what the fee was charged in, and every part is rounded down. What is left stays
with the operator, so the three parts are the fee, to the unit, and nobody gets more than the rates say.
"""

from typing import Final, NamedTuple

BPS: Final = 10_000
REFERRER_SHARE_BPS_MAX: Final = BPS


class FeeShares(NamedTuple):
    """The parts of a fee, in its units."""

    builder_units: int
    referrer_units: int
    operator_units: int


def divide_fee(fee_units: int, builder_share_bps: int, referrer_share_bps: int) -> FeeShares:
    """Return the parts of a fee: the referrer has its share of what the builder leaves."""
    assert fee_units >= 0
    assert 0 <= builder_share_bps <= BPS
    assert 0 <= referrer_share_bps <= REFERRER_SHARE_BPS_MAX
    builder_units = fee_units * builder_share_bps // BPS
    left_units = fee_units - builder_units
    referrer_units = left_units * referrer_share_bps // BPS
    return FeeShares(builder_units, referrer_units, left_units - referrer_units)
