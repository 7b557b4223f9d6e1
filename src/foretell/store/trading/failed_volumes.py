"""Sums of what has failed to settle of the volume of each market, by the minute and by the day of the match.

Written by the engine, which cannot know how long ago a trade was matched that fails now: the points of the history
(`quote_points.py`) count it for ever, and readers take these sums off (`valuation.py`).
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.failed_volumes import SumPeriod, periods_of
from foretell.domain.portfolio.price_history import MINUTE_S
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import failed_volumes, trades

MINUTE_MS: Final = 1000 * MINUTE_S


class FailedTrade(NamedTuple):
    """A trade that has failed to settle."""

    condition_id: Bytes32
    matched_at_ms: int
    cost_units: int


async def load_failing_trades(tx: Transaction, trade_ids: Sequence[str]) -> Sequence[FailedTrade]:
    """Return those of these trades that have not failed yet."""
    rows = await tx.all(
        sa.select(trades.c.condition_id, trades.c.matched_at_ms, trades.c.cost_units).where(
            trades.c.trade_id.in_(trade_ids), trades.c.status != TradeStatus.FAILED.value
        )
    )
    return [FailedTrade._make(row) for row in rows]


async def add_failed(tx: Transaction, failed: Sequence[FailedTrade]) -> None:
    """Add trades that have failed to the sums of their minutes and days: at most two rows for each of them."""
    sums: Counter[tuple[Bytes32, SumPeriod]] = Counter()
    for each in failed:
        for period in periods_of(each.matched_at_ms // MINUTE_MS):
            sums[each.condition_id, period] += each.cost_units
    rows = [
        (condition_id, *period, min(units, AMOUNT_UNITS_MAX))
        for (condition_id, period), units in sorted(sums.items())
    ]
    await tx.execute_rows(_addition(is_sqlite=tx.dialect == "sqlite"), rows)


@lru_cache(maxsize=2)
def _addition(*, is_sqlite: bool) -> sa.Insert:
    """Return the statement that adds to a sum, which ends at what its column holds."""
    new = sqlite.insert(failed_volumes) if is_sqlite else postgresql.insert(failed_volumes)
    most = sa.literal_column(str(AMOUNT_UNITS_MAX), sa.BigInteger)
    kept_units, added_units = failed_volumes.c.units, new.excluded.units
    units = sa.case((kept_units > most - added_units, most), else_=kept_units + added_units)
    return new.on_conflict_do_update(
        index_elements=list(failed_volumes.primary_key.columns), set_={"units": units}
    )
