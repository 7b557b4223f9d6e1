"""The bounds on preparations: how many run, and how many bytes they hold until they end.

A preparation waits up to a quarter of an hour for its creator's whitelist and collateral, and anyone can begin one
with a wallet made for it. So those of a creator, of a client address, and of all are bounded. A creator with a
whitelist has places that those without one cannot take.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.errors.creation import PreparationsBusy, TooManyPreparations

MIB: Final = 1024 * 1024


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


def _wait_s(use: PreparationUse, since_ms: int) -> int:
    """Return the seconds until the first preparation ends at the latest, rounded up, and at least one."""
    first_at_ms = since_ms if use.first_at_ms is None else use.first_at_ms
    return max(1, -(-(first_at_ms - since_ms) // 1000))
