"""The bounds on preparations: how many run, and how many bytes they hold until they end.

A preparation waits up to a quarter of an hour for its creator's whitelist and collateral, and anyone can begin one
with a wallet made for it. So those of a creator, of a client address, and of all are bounded. A creator with a
whitelist has places that those without one cannot take.

The plan of a preparation costs its creator nothing until it sends the transactions, and its images and documents are
stored for ever. So plans that wait for them are bounded as well, by creator and by client address, for a day each.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.errors.creation import PreparationsBusy, TooManyPreparations, TooManyUnpaid

MIB: Final = 1024 * 1024
UNPAID_COUNTED_MS: Final = 24 * 60 * 60 * 1000
"""How long a plan counts that waits for its transactions, from its challenge on."""
UNPAID_OF_CREATOR_MAX: Final = 250
UNPAID_OF_SOURCE_MAX: Final = 500


class PreparationUse(NamedTuple):
    """The preparations that run: their number, the bytes that they hold, and when the first of them began."""

    number: int = 0
    size_bytes: int = 0
    first_at_ms: int | None = None


class PreparationUses(NamedTuple):
    """The use of a creator, of a client address, and of all."""

    of_creator: PreparationUse
    of_source: PreparationUse
    of_all: PreparationUse


class UnpaidUse(NamedTuple):
    """The plans of a day that wait for their transactions: their number, and when the first challenge was issued."""

    number: int = 0
    first_at_ms: int = 0


class UnpaidUses(NamedTuple):
    """The unpaid plans of a creator, and of a client address."""

    of_creator: UnpaidUse = UnpaidUse()
    of_source: UnpaidUse = UnpaidUse()


class PreparationBound(NamedTuple):
    """The most preparations that run, and the most bytes that they hold."""

    count_max: int
    bytes_max: int

    def admits(self, use: PreparationUse, size_bytes: int) -> bool:
        """Return whether one more preparation of a size is within the bound."""
        return use.number < self.count_max and use.size_bytes + size_bytes <= self.bytes_max


@dataclass(frozen=True, slots=True)
class PreparationBounds:
    """The bounds for a creator, for a client address, and for all."""

    of_creator: PreparationBound
    of_source: PreparationBound
    of_all: PreparationBound


WITHOUT_WHITELIST: Final = PreparationBounds(
    PreparationBound(25, 32 * MIB), PreparationBound(50, 32 * MIB), PreparationBound(500, 256 * MIB)
)
WITH_WHITELIST: Final = PreparationBounds(
    PreparationBound(100, 64 * MIB),
    PreparationBound(100, 64 * MIB),
    PreparationBound(750, 512 * MIB),
)


def check_preparations(
    bounds: PreparationBounds, uses: PreparationUses, size_bytes: int, since_ms: int
) -> None:
    """Refuse one more preparation of a size that would exceed a bound: its creator's, its address's, or that of all.

    A preparation that began at `since_ms` ends now, so the refusal says when the first of those counted ends.
    """
    for whose, bound, use in (
        ("creator", bounds.of_creator, uses.of_creator),
        ("address", bounds.of_source, uses.of_source),
    ):
        if not bound.admits(use, size_bytes):
            raise TooManyPreparations(
                whose, bound.count_max, bound.bytes_max, _wait_s(use, since_ms)
            )
    if not bounds.of_all.admits(uses.of_all, size_bytes):
        raise PreparationsBusy(_wait_s(uses.of_all, since_ms))


def check_unpaid(uses: UnpaidUses, now_ms: int) -> None:
    """Refuse one more plan of a creator or an address that has too many unpaid ones."""
    for whose, count_max, use in (
        ("creator", UNPAID_OF_CREATOR_MAX, uses.of_creator),
        ("address", UNPAID_OF_SOURCE_MAX, uses.of_source),
    ):
        if use.number >= count_max:
            wait_ms = use.first_at_ms + UNPAID_COUNTED_MS - now_ms
            raise TooManyUnpaid(whose, count_max, max(1, -(-wait_ms // 1000)))


def _wait_s(use: PreparationUse, since_ms: int) -> int:
    """Return the seconds until the first preparation ends at the latest, rounded up, and at least one."""
    first_at_ms = since_ms if use.first_at_ms is None else use.first_at_ms
    return max(1, -(-(first_at_ms - since_ms) // 1000))
