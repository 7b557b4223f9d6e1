"""The wins of each period: closed positions with a gain."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.gains import Held
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.generations import sums_of
from foretell.store.index.positions import PositionRow, load_positions
from foretell.store.index.rankings.progress import (
    MarkState,
    RankingCursor,
    load_cursors,
    load_marks,
)
from foretell.store.lookups import load_rows
from foretell.store.tables import wins

_DELETION: Final = wins.delete().where(
    wins.c.period == sa.bindparam("of_period"),
    wins.c.wallet == sa.bindparam("of_wallet"),
    wins.c.token_id == sa.bindparam("of_token"),
)

WinKey = tuple[int, Address, AssetId]
"""A period, a wallet and a token."""


async def refresh_wins(
    tx: Transaction, generation: int, holdings: Collection[tuple[Address, AssetId]]
) -> None:
    """Add or delete the wins of these positions, in every period of a generation.

    Their category is that of the sum up to now: an earlier sum may not have come to the condition yet.
    """
    if not holdings:
        return
    sums, cursors = sums_of(generation), await load_cursors(tx, generation)
    held = await load_positions(tx, holdings)
    wanted: dict[WinKey, tuple[Any, ...]] = {}
    marks = await load_marks(tx, sums[Period.ALL], {row.condition_id for row in held})
    for period, of_sum in sums.items():
        for row in held:
            if _is_win(row, period, cursors):
                state = marks.get(row.condition_id, MarkState(row.condition_id))
                cells = (state.of(row.wallet).category, row.realized_units)
                wanted[of_sum.key, row.wallet, row.token_id] = cells
    keys = [(of_sum.key, *each) for of_sum in sums.values() for each in holdings]
    known: dict[WinKey, tuple[Any, ...]] = {
        (row.period, row.wallet, row.token_id): (row.category, row.realized_units)
        for row in await load_rows(tx, wins, wins.primary_key, keys)
    }
    lost = [key for key in known if key not in wanted]
    await tx.execute_rows(_DELETION, lost)
    changed = [key for key, cells in wanted.items() if known.get(key) != cells]
    await tx.upsert_rows(wins, [(*key, *wanted[key]) for key in changed])


def _is_win(row: PositionRow, period: Period, cursors: Mapping[Period, RankingCursor]) -> bool:
    """Return whether a position was closed with a gain in the period, as far as the sums have come."""
    if not Held(row.size_units, row.cost_units, row.realized_units).is_win:
        return False
    if row.block_number > cursors[Period.ALL].block_number:
        return False
    return period is Period.ALL or row.block_number > cursors[period].block_number
