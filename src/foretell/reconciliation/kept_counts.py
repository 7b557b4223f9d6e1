"""Counts and totals that the tables keep of each other's rows, added up from those rows one by one.

The totals of series and tags are added up from the catalogue.
"""

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.reconciliation.chain_figures import CASH, ChainFigures
from foretell.store.database import Transaction
from foretell.store.queries.index_tables import load_pages
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import (
    event_tags,
    market_totals,
    sports_events,
)

SportTag = tuple[int, int]
"""The numbers of a sport and of a tag that one of its events has."""


def count_supplies(figures: ChainFigures, spill: SpillFile) -> SpilledRows[str, str]:
    """Return what the wallets together hold of each token, as text."""
    counted = spill.mapping("counted_supplies", 1, str, "0")
    for (_, token), units in figures.balances.now.items():
        if token != CASH:
            counted[token] = str(int(counted[token]) + units)
    return counted


async def count_series(tx: Transaction, spill: SpillFile) -> SpilledRows[int, tuple[str, int]]:
    """Return the volume of each series, as text, and its open events, from the totals of its markets."""
    series_by_event: SpilledRows[int, int] = spill.mapping("series_by_event", 1, int)
    async for page in load_pages(tx, sports_events):
        for row in page:
            if row.series_id is not None:
                series_by_event[row.event_id] = row.series_id
    volumes: SpilledRows[int, int] = spill.mapping("event_volumes", 1, int, 0)
    is_open: SpilledRows[int, bool] = spill.mapping("open_events", 1, bool)
    async for page in load_pages(tx, market_totals):
        for row in page:
            if row.event_id in series_by_event:
                volume = volumes[row.event_id] + row.volume_units
                volumes[row.event_id] = min(volume, AMOUNT_UNITS_MAX)
                is_open[row.event_id] = is_open.get(row.event_id, False) or row.closed_at_s is None
    series = spill.mapping("counted_series", 1, tuple[str, int], ("0", 0))
    for event_id, units in volumes.items():
        series_id = series_by_event[event_id]
        volume_text, open_events = series[series_id]
        series[series_id] = str(int(volume_text) + units), open_events + is_open[event_id]
    return series


async def count_tags(tx: Transaction, spill: SpillFile) -> SpilledRows[int, int]:
    """Return the number of events of each tag."""
    counted: SpilledRows[int, int] = spill.mapping("counted_tags", 1, int, 0)
    async for page in load_pages(tx, event_tags):
        for row in page:
            counted[row.tag_id] += 1
    return counted


async def tag_sports(tx: Transaction, spill: SpillFile) -> SpilledRows[SportTag, bool]:
    """Return the tags that the events of each sport have."""
    sport_by_event: SpilledRows[int, int] = spill.mapping("sport_by_event", 1, int)
    async for page in load_pages(tx, sports_events):
        for row in page:
            if row.sport_id is not None:
                sport_by_event[row.event_id] = row.sport_id
    tagged: SpilledRows[SportTag, bool] = spill.mapping("counted_sport_tags", 2, bool)
    async for page in load_pages(tx, event_tags):
        for row in page:
            sport_id = sport_by_event.get(row.event_id)
            if sport_id is not None:
                tagged[sport_id, row.tag_id] = True
    return tagged
