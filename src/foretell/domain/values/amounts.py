"""Prices and sizes as integers.

A price counts ticks and a size counts base units of an outcome token; one token and one unit of
collateral are both 10^6 base units. Nothing here is a float: two nodes that replay the same fills
must agree to the last unit.

No fill is ever rounded. A fill is a whole number of *lots*, the smallest size whose cost at the
maker's price is a whole number of base units, so that what one side pays the other receives.
"""

from functools import lru_cache
from math import gcd
from typing import Final

from foretell.domain.errors.families import MalformedAmount

UNITS_PER_TOKEN: Final = 10**6
UNITS_DECIMALS: Final = 6
AMOUNT_UNITS_MAX: Final = 2**63 - 1

TICK_SCALES_KEPT_MAX: Final = 16

DIGITS_MAX: Final = 78
"""The digits of the largest 256-bit number."""


def lot_units(price_ticks: int, ticks_per_one: int) -> int:
    """Return the smallest size, in token units, that costs a whole number of base units."""
    assert 0 < price_ticks < ticks_per_one
    return ticks_per_one // gcd(price_ticks, ticks_per_one)


@lru_cache(maxsize=TICK_SCALES_KEPT_MAX)
def lots_by_price(ticks_per_one: int) -> tuple[int, ...]:
    """Return the lot at each price of a tick size, by the price in ticks; index zero is unused."""
    return (0, *(lot_units(ticks, ticks_per_one) for ticks in range(1, ticks_per_one)))


def whole_lots_units(size_units: int, price_ticks: int, ticks_per_one: int) -> int:
    """Return the size rounded down to whole lots."""
    assert size_units >= 0
    assert 0 < price_ticks < ticks_per_one
    return size_units - size_units % lots_by_price(ticks_per_one)[price_ticks]


def exact_cost_units(size_units: int, price_ticks: int, ticks_per_one: int) -> int:
    """Return the collateral that whole lots cost, without rounding."""
    assert size_units * price_ticks % ticks_per_one == 0
    return size_units * price_ticks // ticks_per_one


def reserve_units(size_units: int, price_ticks: int, ticks_per_one: int) -> int:
    """Return the collateral to set aside for the size, rounded up.

    Rounding up may reserve a unit too much, never one too little.
    """
    assert size_units >= 0
    assert 0 < price_ticks < ticks_per_one
    return -(-size_units * price_ticks // ticks_per_one)


def affordable_size_units(collateral_units: int, price_ticks: int, ticks_per_one: int) -> int:
    """Return the size that the collateral buys at the price, rounded down."""
    assert collateral_units >= 0
    assert 0 < price_ticks < ticks_per_one
    return collateral_units * ticks_per_one // price_ticks


def parse_units(text: object, field: str) -> int:
    """Return the base units in a decimal-integer string, at most 2^63 - 1, or refuse."""
    if text == "0":  # the usual expiration, nonce and fee
        return 0
    if not (
        isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    ):
        raise MalformedAmount(field, "a decimal integer in a string")
    units = int(text)
    if units > AMOUNT_UNITS_MAX:
        raise MalformedAmount(field, f"at most {AMOUNT_UNITS_MAX}")
    return units


def decimal_text(units: int) -> str:
    """Return base units as a decimal number of tokens, no exponent, no trailing zeros."""
    assert units >= 0
    whole, part = divmod(units, UNITS_PER_TOKEN)
    return f"{whole}.{part:0{UNITS_DECIMALS}d}".rstrip("0").rstrip(".")


def price_text(price_ticks: int, ticks_per_one: int) -> str:
    """Return a price as a decimal number, exact, no trailing zeros."""
    assert 0 <= price_ticks <= ticks_per_one
    return ratio_text(price_ticks, ticks_per_one)


def tick_text(ticks_per_one: int) -> str:
    """Return the tick itself as a decimal number."""
    return ratio_text(1, ticks_per_one)


def ratio_text(numerator: int, denominator: int) -> str:
    """Return numerator over denominator to 6 decimals, rounded half to even, no trailing zeros."""
    quotient, rest = divmod(numerator * UNITS_PER_TOKEN, denominator)
    is_over_half = 2 * rest > denominator or (2 * rest == denominator and quotient % 2 == 1)
    return decimal_text(quotient + is_over_half)


def nearest(part: int, whole: int) -> int:
    """Return a part of a positive whole as the nearest integer, half to even: the rounding of their fraction."""
    found, rest = divmod(part, whole)
    return found + (2 * rest > whole or (2 * rest == whole and found % 2 == 1))
