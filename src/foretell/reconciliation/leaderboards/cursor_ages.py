"""The ages of the cursors of leaderboards and listings, against the newest time that the tables have.

An exchange that is stopped has no cursor behind the others. While it runs, its quotes, its rounds and its chain go on, so
a cursor that stands still falls behind them.
"""

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.leaderboards.marks import UP_TO_NOW
from foretell.reconciliation.leaderboards.standings import LeftChange, PeriodEnd
from foretell.store.database import Transaction
from foretell.store.tables import (
    blocks,
    listing_cursors,
    markets,
    quotes,
    ranking_cursors,
)

CURSOR_LAG_S_MAX: Final = 3_600
"""The longest time that a running exchange's cursor may be behind: a round takes seconds, or minutes after a long stop."""
DAY_S: Final = 86_400


async def compare_cursors(
    tx: Transaction,
    end_by_period: Mapping[int, PeriodEnd],
    oldest_left: Mapping[int, LeftChange],
    report: DataReport,
) -> None:
    """Report the age of each cursor, and those that are too old as differences.

    A loop that has never ended a round has no cursor, and nothing that was computed by it is read.
    """
    listed_s = {row.name: row.at_ms // 1_000 for row in await tx.all(sa.select(listing_cursors))}
    ranked_s = {days: end.at_s + days * DAY_S for days, end in end_by_period.items()}
    block_s = await _newest(tx, blocks.c.timestamp_s)
    quoted_s = await _newest(tx, quotes.c.updated_at_ms) // 1_000
    newest_s = max(0, quoted_s, min(block_s, report.now_s), *listed_s.values(), *ranked_s.values())
    least_s = newest_s - CURSOR_LAG_S_MAX
    for name, at_s in listed_s.items():
        report.cursor_ages_s[name] = newest_s - at_s
        report.add(listing_cursors.name, name, max(at_s, least_s), at_s)
    for days, end in end_by_period.items():
        report.cursor_ages_s[f"rankings {days}"] = newest_s - ranked_s[days]
        key, least = (days, "at_s"), least_s - days * DAY_S
        report.add(ranking_cursors.name, key, max(end.at_s, least), end.at_s)
        until_s = ranked_s[days] - CURSOR_LAG_S_MAX
        wanted = markets.c.created_at_ms < until_s * 1_000
        market_id = max(end.market_id, await _newest(tx, markets.c.market_id, wanted))
        report.add(ranking_cursors.name, (days, "market_id"), market_id, end.market_id)
        left, bound_s = oldest_left.get(days), block_s if days == UP_TO_NOW else end.at_s
        block_number = end.block_number
        if left and block_s >= least_s and left.at_s < bound_s - CURSOR_LAG_S_MAX:
            block_number = max(block_number, left.block_number)
        report.add(ranking_cursors.name, (days, "block_number"), block_number, end.block_number)


async def _newest(
    tx: Transaction, column: sa.Column[int], is_wanted: sa.ColumnElement[bool] | None = None
) -> int:
    """Return the greatest value of a column, 0 without rows."""
    query = sa.select(sa.func.max(column))
    return int(await tx.scalar(query if is_wanted is None else query.where(is_wanted)) or 0)
