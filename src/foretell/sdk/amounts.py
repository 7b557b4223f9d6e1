"""The amounts of an order, from a price and a size in decimal text. Integers alone, never rounded.

`docs/reference/amount-vectors.json` has the published vectors of both functions.
"""

import re
from math import gcd
from typing import Final, NamedTuple

from foretell.domain.errors.families import MalformedAmount
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import (
    AMOUNT_UNITS_MAX,
    UNITS_DECIMALS,
    UNITS_PER_TOKEN,
    decimal_text,
)

_DECIMAL: Final = re.compile(r"(\d{1,20})(?:\.(\d{1,18}))?\Z", re.ASCII)


class OrderAmounts(NamedTuple):
    """The two amounts of an order, in base units."""

    maker_units: int
    taker_units: int


class Ratio(NamedTuple):
    """A decimal number as an exact ratio, in lowest terms."""

    numerator: int
    denominator: int


def parse_decimal(text: str, field: str) -> Ratio:
    """Return the ratio of a decimal number such as `0.40`, or refuse."""
    matched = _DECIMAL.match(text)
    if matched is None:
        raise MalformedAmount(field, f"a decimal number as text, such as '0.4', not {text!r}")
    whole, part = matched[1], matched[2] or ""
    numerator, denominator = int(whole + part), 10 ** len(part)
    shared = gcd(numerator, denominator)
    return Ratio(numerator // shared, denominator // shared)


def parse_base_units(text: str, field: str) -> int:
    """Return the base units of a decimal number of tokens or collateral, or refuse a part of a unit."""
    ratio = parse_decimal(text, field)
    units, rest = divmod(ratio.numerator * UNITS_PER_TOKEN, ratio.denominator)
    if rest or units > AMOUNT_UNITS_MAX:
        raise MalformedAmount(field, f"a number with at most {UNITS_DECIMALS} decimals, not {text}")
    return units


def limit_amounts(side: Side, price: str, size: str) -> OrderAmounts:
    """Return the amounts of an order for a size of tokens at a price.

    A size that costs a part of a base unit at this price is refused; the message has the next lower
    one that does not.
    """
    ratio, size_units = _price(price), parse_base_units(size, "size")
    cost_units, rest = divmod(size_units * ratio.numerator, ratio.denominator)
    if rest or not size_units:
        lot = ratio.denominator // gcd(ratio.numerator, ratio.denominator)
        lower = decimal_text(max(size_units - size_units % lot, lot))
        raise MalformedAmount("size", f"a whole number of base units at {price}, such as {lower}")
    if side is Side.BUY:
        return OrderAmounts(cost_units, size_units)
    return OrderAmounts(size_units, cost_units)


def budget_amounts(price: str, budget: str) -> OrderAmounts:
    """Return the amounts of a BUY that spends a budget at this price or a better one (FOK, FAK).

    The tokens wanted are rounded down, so the limit is never above the price by more than that
    rounding, which the exchange allows.
    """
    ratio, budget_units = _price(price), parse_base_units(budget, "budget")
    size_units = budget_units * ratio.denominator // ratio.numerator
    if not size_units:
        raise MalformedAmount("budget", f"enough for a base unit of tokens at {price}")
    return OrderAmounts(budget_units, size_units)


def _price(text: str) -> Ratio:
    ratio = parse_decimal(text, "price")
    if not 0 < ratio.numerator < ratio.denominator:
        raise MalformedAmount("price", f"between 0 and 1, not {text}")
    return ratio
