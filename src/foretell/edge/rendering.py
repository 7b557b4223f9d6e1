"""How exact values look on the wire: integers and fractions become decimals here, and only here."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from foretell.domain.values.amounts import UNITS_DECIMALS, UNITS_PER_TOKEN

PERCENT_DECIMALS: Final = 4

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def amount(units: int) -> Decimal:
    """Return base units as a number of whole ones, exact."""
    return Decimal(units) / UNITS_PER_TOKEN


def rounded(value: Fraction, decimals: int = UNITS_DECIMALS) -> Decimal:
    """Return a fraction to so many decimals, half to even."""
    scale: int = 10**decimals
    return Decimal(round(value * scale)) / scale


def percent(value: Fraction) -> Decimal:
    """Return a number of percents as the APIs round them."""
    return rounded(value, PERCENT_DECIMALS)


def decimal_string(value: Decimal) -> str:
    """Return a number as digits without an exponent, for fields that are strings."""
    return f"{value:f}"


def iso_time(at_ms: int) -> str:
    """Return a moment as ISO 8601 in UTC, with its milliseconds where it has any."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    precision = "milliseconds" if at_ms % 1000 else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def blob_url(base_url: str, blob_id: str) -> str:
    """Return where a stored image is fetched from; nothing when there is none."""
    return f"{base_url.rstrip('/')}/blobs/{blob_id}" if blob_id else ""
