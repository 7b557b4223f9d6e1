"""Totals of markets and events, by which lists of them are filtered, sorted and shown; written by the indexer.

Volumes are within the windows that end at `listing_cursors.at_ms`, each from the beginning of a minute. `evenness` is 0 at
even odds and -0.5 when a market is decided; an event has that of its most even market, and is closed with its last
one. A series has the sum of its events' volumes, as a decimal text since a column might not hold it, and the number of
those that are open. A market's `seen_ms` and `failed_units` are of the quote that its totals are from; its `title` is the question.
"""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from foretell.store.tables.columns import integer, key, metadata, sorted_text, text

ROLLING: Final = ("day_units", "week_units", "month_units", "year_units")
AMOUNTS: Final = ("volume_units", *ROLLING, "liquidity_units")
SORTED: Final = (*AMOUNTS, "evenness", "slug", "title")
"""The columns that both tables have, and an index for each."""
PRICES: Final = ("best_bid", "last_price")
"""Those that a market has besides; null where there is none."""

IS_OPEN: Final = sa.text("closed_at_s IS NULL")
IS_CLOSED: Final = sa.text("closed_at_s IS NOT NULL")


def _totals(row_id: str) -> tuple[sa.Column[Any] | sa.Index, ...]:
    amounts = [integer(name) for name in AMOUNTS]
    texts = sorted_text("slug"), sorted_text("title")
    times = integer("ends_at_ms"), integer("closed_at_s", nullable=True)
    indexes = [sa.Index(None, name, row_id) for name in SORTED]
    return *amounts, sa.Column("evenness", sa.Double, nullable=False), *texts, *times, *indexes


def _price(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Double, nullable=True)


def _while_open_or_closed(table: str, row_id: str, columns: Sequence[str]) -> list[sa.Index]:
    """Return indexes of the open rows, and one of the closed ones: most rows of a long history are closed."""
    wanted = [(f"open_{name}", name, IS_OPEN) for name in (*columns, "ends_at_ms")]
    wanted.append(("closed", "closed_at_s", IS_CLOSED))
    return [
        sa.Index(f"ix_{table}_{name}", column, row_id, sqlite_where=which, postgresql_where=which)
        for name, column, which in wanted
    ]


market_totals: Final = sa.Table(
    "market_totals",
    metadata,
    key("market_id", sa.BigInteger),
    integer("event_id"),
    *_totals("market_id"),
    *map(_price, PRICES),
    *map(_price, ("hour_price", "day_price", "week_price", "month_price")),
    integer("seen_ms"),
    integer("failed_units"),
    sa.Index(None, "event_id"),
    *(sa.Index(None, name, "market_id") for name in PRICES),
    *_while_open_or_closed("market_totals", "market_id", (*SORTED, *PRICES)),
)

event_totals: Final = sa.Table(
    "event_totals",
    metadata,
    key("event_id", sa.BigInteger),
    *_totals("event_id"),
    *_while_open_or_closed("event_totals", "event_id", SORTED),
)

series_totals: Final = sa.Table(
    "series_totals",
    metadata,
    key("series_id", sa.BigInteger),
    text("volume_units"),
    integer("open_events"),
)

listing_cursors: Final = sa.Table(
    "listing_cursors",
    metadata,
    key("name"),
    integer("at_ms"),
)
