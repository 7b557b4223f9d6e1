"""Wire forms of exact values: the only place where integers and fractions become decimals."""

from decimal import Decimal
from fractions import Fraction
from typing import Final

from foretell.domain.values.amounts import UNITS_DECIMALS, UNITS_PER_TOKEN, nearest

PERCENT_DECIMALS: Final = 4
LINK_SCHEMES: Final = ("https://", "http://")


def amount(units: int) -> Decimal:
    """Return base units as an exact number of whole tokens."""
    return Decimal(units) / UNITS_PER_TOKEN


def rounded(value: Fraction, decimals: int = UNITS_DECIMALS) -> Decimal:
    """Return a fraction rounded to a number of decimals, half to even."""
    return rounded_ratio(value.numerator, value.denominator, decimals)


def rounded_ratio(part: int, whole: int, decimals: int = UNITS_DECIMALS) -> Decimal:
    """Return a part of a positive whole rounded to a number of decimals, half to even.

    It is `rounded` of their fraction, for values that need no fraction otherwise.
    """
    scale: int = 10**decimals
    return Decimal(nearest(part * scale, whole)) / scale


def percentage(part: int, whole: int) -> Decimal:
    """Return a part in percent of a whole, rounded as the APIs do, or zero when the whole is zero."""
    return rounded_ratio(100 * part, whole, PERCENT_DECIMALS) if whole else Decimal(0)


def decimal_string(value: Decimal) -> str:
    """Return a number as digits without an exponent, for string fields."""
    return f"{value:f}"


def blob_url(base_url: str, blob_id: str) -> str:
    """Return the URL of an image, or an empty text without one.

    An image is stored, or it is a link that a creator gave, such as a team's logo.
    """
    if blob_id.startswith(LINK_SCHEMES):
        return blob_id
    return f"{base_url.rstrip('/')}/blobs/{blob_id}" if blob_id else ""
