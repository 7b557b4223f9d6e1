"""The volumes of builders, added up fill by fill from the trades and orders of the tables: the chain has no orders that rest."""

from collections.abc import Sequence
from typing import Any, Final

from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.reconciliation.compared_table import ComparedTable
from foretell.store.database import Transaction
from foretell.store.queries.index_tables import load_pages
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import (
    builder_days,
    builder_totals,
    builder_users,
    fills,
    orders,
    trades,
)
from foretell.store.wide_sums import HALF_BITS

DAY_MS: Final = 86_400_000

Days = SpilledRows[tuple[str, int], tuple[str, int, int, int]]
"""By builder and day: the volume as text, the fills, the wallets, and those of them without a later day."""


async def count_builders(tx: Transaction, spill: SpillFile) -> Sequence[ComparedTable]:
    """Return the tables of builders' volumes with their figures."""
    days: Days = spill.mapping("counted_builder_days", 2, tuple[str, int, int, int], ("0", 0, 0, 0))
    users: SpilledRows[tuple[str, str, int], int] = spill.mapping("counted_users", 3, int, 0)
    await _add_fills(tx, spill, days, users)
    totals = spill.mapping("counted_builders", 1, tuple[str, int, int], ("0", 0, 0))
    _add_users(users, days, totals)
    for (builder, _), (units, number, _, _) in days.items():
        volume, counted, wallets = totals[builder]
        totals[builder] = str(int(volume) + int(units)), counted + number, wallets
    return (
        ComparedTable(builder_days, days, lambda row: tuple(row[:2]), lambda row: row[2:], _halved),
        ComparedTable(builder_users, users, lambda row: tuple(row[:3]), lambda row: row.fills),
        ComparedTable(
            builder_totals, totals, lambda row: row.builder_code, lambda row: row[1:], _halved
        ),
    )


def _halved(sums: tuple[Any, ...]) -> tuple[int, ...]:
    volume, *rest = sums
    return (*divmod(int(volume), 1 << HALF_BITS), *rest)


async def _add_fills(
    tx: Transaction,
    spill: SpillFile,
    days: Days,
    users: SpilledRows[tuple[str, str, int], int],
) -> None:
    """Add each fill to the builder of its maker's order, and to that of its taker's."""
    builders = await _load_builders(tx, spill)
    takers: SpilledRows[str, tuple[str, str, bool]] = spill.mapping(
        "takers", 1, tuple[str, str, bool]
    )
    async for page in load_pages(tx, trades, trades.c.status != TradeStatus.FAILED.value):
        for row in page:
            takers[row.trade_id] = row.taker_order_id, row.taker, row.side == Side.BUY.name
    async for page in load_pages(tx, fills):
        for row in page:
            taker = takers.get(row.trade_id)
            if taker is None:
                continue
            taker_order_id, wallet, is_purchase = taker
            is_bid = row.side == Side.BUY.name
            made = row.making_units if is_bid else row.taking_units
            taken = row.size_units - made if is_bid is is_purchase else made
            for order_id, who, units in (
                (row.maker_order_id, row.maker, made),
                (taker_order_id, wallet, taken),
            ):
                builder = builders.get(order_id)
                if builder is not None:
                    day = row.matched_at_ms // DAY_MS
                    volume, number, _, _ = days[builder, day]
                    days[builder, day] = str(int(volume) + units), number + 1, 0, 0
                    users[builder, who, day] += 1


async def _load_builders(tx: Transaction, spill: SpillFile) -> SpilledRows[str, str]:
    """Return the builders of orders that have one."""
    builders: SpilledRows[str, str] = spill.mapping("order_builders", 1, str)
    async for page in load_pages(tx, orders, orders.c.attributed_code.is_not(None)):
        for row in page:
            builders[row.order_id] = row.attributed_code
    return builders


def _add_users(
    users: SpilledRows[tuple[str, str, int], int],
    days: Days,
    totals: SpilledRows[str, tuple[str, int, int]],
) -> None:
    """Count the wallets of each day, those of which it is the last day, and those of each builder.

    The days of a wallet with a builder follow each other, so the one before another wallet's is its last.
    """
    before: tuple[str, str, int] | None = None
    for user in users.items():
        (builder, wallet, day), _ = user
        volume, number, wallets, ended = days[builder, day]
        days[builder, day] = volume, number, wallets + 1, ended
        if before is not None and before[:2] != (builder, wallet):
            _end(before, days, totals)
        before = builder, wallet, day
    if before is not None:
        _end(before, days, totals)


def _end(
    user: tuple[str, str, int], days: Days, totals: SpilledRows[str, tuple[str, int, int]]
) -> None:
    """Count a wallet on its last day with a builder."""
    builder, _, day = user
    volume, number, wallets, ended = days[builder, day]
    days[builder, day] = volume, number, wallets, ended + 1
    units, counted, known = totals[builder]
    totals[builder] = units, counted, known + 1
