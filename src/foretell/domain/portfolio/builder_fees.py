"""Fees of the trades that a builder brought, and the builder's part of them, exact to the unit.

They are accounts: the exchange settles trades without fees, so nothing of them is taken from a trader or paid
on the chain. The operator pays builders from its own funds, by these figures.

All amounts are base units of collateral with 6 decimals, and a fee has 5 decimals: a multiple of 10 units.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

BPS: Final = 10_000
TAKER_SHARE_BPS_MAX: Final = 9_999
"""A share of all would need an endless fee."""
MAKER_FLAT_BPS_MAX: Final = 100
FEE_STEP_UNITS: Final = 10


class BuilderRates(NamedTuple):
    """A builder's share of the taker's fee, and its flat fee of a maker's collateral, from a time on."""

    from_ms: int
    taker_share_bps: int
    maker_flat_bps: int


class BuilderFee(NamedTuple):
    """The whole fee of a trade's part, and the builder's part of it."""

    fee_units: int
    builder_units: int


NO_RATES: Final = BuilderRates(0, 0, 0)
NO_FEE: Final = BuilderFee(0, 0)


def rates_at(rates: Sequence[BuilderRates], at_ms: int) -> BuilderRates:
    """Return the rates that were in force at a time; `rates` are in order of their times."""
    return next((each for each in reversed(rates) if each.from_ms <= at_ms), NO_RATES)


def base_fee_units(size_units: int, price_ticks: int, ticks_per_one: int, rate_bps: int) -> int:
    """Return size x rate x price x (1 - price), rounded half up to 5 decimals."""
    assert 0 <= price_ticks <= ticks_per_one
    numerator = size_units * rate_bps * price_ticks * (ticks_per_one - price_ticks)
    step = BPS * ticks_per_one**2 * FEE_STEP_UNITS
    if numerator < step:  # less than 0.00001
        return 0
    return (2 * numerator + step) // (2 * step) * FEE_STEP_UNITS


def taker_fee(base_units: int, share_bps: int) -> BuilderFee:
    """Return the fee that leaves the whole base beside the builder's part, and that part.

    The fee is rounded up to 5 decimals, so that the operator keeps at least the base; the builder's part is
    rounded down.
    """
    assert 0 <= share_bps <= TAKER_SHARE_BPS_MAX
    step = (BPS - share_bps) * FEE_STEP_UNITS
    fee_units = -(-base_units * BPS // step) * FEE_STEP_UNITS
    return BuilderFee(fee_units, fee_units * share_bps // BPS)


def maker_fee(collateral_units: int, flat_bps: int) -> BuilderFee:
    """Return the builder's flat fee of a maker's collateral, rounded down; there is no other fee of makers."""
    assert 0 <= flat_bps <= MAKER_FLAT_BPS_MAX
    units = collateral_units * flat_bps // BPS
    return BuilderFee(units, units)
