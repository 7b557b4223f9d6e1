"""What markets and their outcomes are called, for answers that are made in memory.

Names never change once a market trades, so each market is read once.
"""

from collections.abc import Iterable
from typing import Final

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.queries.market_listings import Listing, load_market_listings_by_id

LISTINGS_PER_QUERY_MAX: Final = 500

OUTCOMES: Final = ("Yes", "No")
"""What outcomes are called until the names of their market are known."""


class MarketNames:
    """The listings that were asked for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listing_by_id: dict[Bytes32, Listing] = {}

    async def load(self, condition_ids: Iterable[Bytes32], *, again: bool = False) -> None:
        """Read the listings of these conditions: those not known yet, or all of them again."""
        missing = [
            one for one in dict.fromkeys(condition_ids) if again or one not in self._listing_by_id
        ]
        for start in range(0, len(missing), LISTINGS_PER_QUERY_MAX):
            async with self._database.reading() as tx:
                part = missing[start : start + LISTINGS_PER_QUERY_MAX]
                self._listing_by_id.update(await load_market_listings_by_id(tx, part))

    def find(self, condition_id: Bytes32) -> Listing | None:
        """Return a listing that was read."""
        return self._listing_by_id.get(condition_id)

    def outcome(self, condition_id: Bytes32, is_yes: bool) -> str:  # noqa: FBT001 - a callback
        """Return what an outcome is called."""
        listing = self._listing_by_id.get(condition_id)
        if listing is None:
            return OUTCOMES[0 if is_yes else 1]
        return listing.outcome(is_yes=is_yes)
