"""Totals of listings, computed again a few rows at a time, whatever they were: by the indexer's `foretell index rebuild`.

A market's totals come from its own quote, orders and payout alone, so its row is right once it is written. An event's come
from the rows of its markets, a series' from those of its events: they are right once all below them are. The loop of the
totals may be within a round, whose totals are of a later time than its cursor, so a row is marked as one that the next
round computes once more.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.index.listing_totals import (
    UNSETTLED,
    hold_listing_totals,
    load_market_totals,
    record_market_totals,
)
from foretell.store.tables import (
    event_totals,
    market_totals,
    markets,
    series_totals,
    sports_events,
)

BEFORE_ALL_IDS: Final = -1
OF_MARKETS: Final = (market_totals, event_totals)
"""Tables of totals that a market has."""


async def recount_markets(
    tx: Transaction, after_id: int, at_ms: int, rows_max: int
) -> Sequence[int]:
    """Compute the totals of the next markets, and of their events, at a time; return their ids.

    They are marked: a point may have left a window between that time and the one that a round is about to store.
    """
    rows = await tx.all(
        sa.select(markets.c.market_id)
        .where(markets.c.market_id > after_id)
        .order_by(markets.c.market_id)
        .limit(rows_max)
    )
    market_ids = [row.market_id for row in rows]
    if market_ids:
        totals = await load_market_totals(tx, market_ids, at_ms)
        await record_market_totals(tx, [each._replace(seen_ms=UNSETTLED) for each in totals])
    return market_ids


async def remove_orphans(
    tx: Transaction, totals: sa.Table, after_id: int, rows_max: int
) -> Sequence[int]:
    """Delete those of the next totals of markets or of events that have no market; return the ids of all of them."""
    await hold_listing_totals(tx)
    [own] = totals.primary_key.columns
    rows = await tx.all(sa.select(own).where(own > after_id).order_by(own).limit(rows_max))
    ids = [int(row[0]) for row in rows]
    of_market = markets.c[own.name]
    listed = await tx.all(sa.select(of_market).where(of_market.in_(ids)).distinct())
    orphans = set(ids).difference(row[0] for row in listed)
    if orphans:
        await tx.execute(totals.delete().where(own.in_(orphans)))
    return ids


async def recount_series(tx: Transaction, after_id: int, rows_max: int) -> Sequence[int]:
    """Compute the totals of the next series from those of their events; return their ids."""
    await hold_listing_totals(tx)
    series_ids = await _next_series(tx, after_id, rows_max)
    games = await tx.all(
        sa.select(
            sports_events.c.series_id, event_totals.c.volume_units, event_totals.c.closed_at_s
        )
        .join(event_totals, event_totals.c.event_id == sports_events.c.event_id)
        .where(sports_events.c.series_id.in_(series_ids))
    )
    volumes: defaultdict[int, int] = defaultdict(int)
    open_events: defaultdict[int, int] = defaultdict(int)
    for game in games:
        volumes[game.series_id] += game.volume_units
        open_events[game.series_id] += game.closed_at_s is None
    empty = [each for each in series_ids if each not in volumes]
    await tx.execute(series_totals.delete().where(series_totals.c.series_id.in_(empty)))
    rows = [(each, str(units), open_events[each]) for each, units in volumes.items()]
    await tx.upsert_rows(series_totals, rows)
    return series_ids


async def _next_series(tx: Transaction, after_id: int, rows_max: int) -> Sequence[int]:
    """Return the next series that have games or totals."""
    found: set[int] = set()
    for column in (sports_events.c.series_id, series_totals.c.series_id):
        query = sa.select(column).where(column > after_id).distinct().order_by(column)
        found |= {row.series_id for row in await tx.all(query.limit(rows_max))}
    return sorted(found)[:rows_max]
