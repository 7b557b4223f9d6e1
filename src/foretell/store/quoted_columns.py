"""The columns of a quote and a payout in queries, and the values in their rows."""

from typing import Any, Final

from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.prices import BookTop
from foretell.store.tables import payouts, quotes

QUOTED: Final = (
    quotes.c.ticks_per_one,
    quotes.c.best_bid_ticks,
    quotes.c.best_ask_ticks,
    quotes.c.last_price_ticks,
)
SETTLED_MS: Final = 10_000
"""A quote that was younger when it was read may have changed again within its millisecond: it is read once more."""
REPORTED: Final = (payouts.c.payout_yes, payouts.c.payout_no)


def book_top(row: Any) -> BookTop | None:
    """Return the quote in a row that selected `QUOTED`, or None without one."""
    if row.ticks_per_one is None:
        return None
    return BookTop(row.ticks_per_one, row.best_bid_ticks, row.best_ask_ticks, row.last_price_ticks)


def payout(row: Any) -> Payout | None:
    """Return the payout in a row that selected `REPORTED`, or None before it."""
    return None if row.payout_yes is None else Payout(row.payout_yes, row.payout_no)
