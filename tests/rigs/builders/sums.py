"""The volumes of builders in the slowest way: from all orders, trades and fills at once."""

from collections import Counter, defaultdict
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.tables import (
    builder_days,
    builder_totals,
    builder_users,
    fills,
    orders,
    trades,
)

BUILDER_TABLES: Final = (builder_days, builder_users, builder_totals)

Dump = dict[str, list[tuple[Any, ...]]]


def a_code(number: int) -> Bytes32:
    """Return the code of a builder."""
    return Bytes32(f"0x{number:064x}")


async def kept_sums(database: Database) -> Dump:
    """Return the rows of the tables."""
    async with database.reading() as tx:
        return {
            table.name: sorted(map(tuple, await tx.all(sa.select(table))))
            for table in BUILDER_TABLES
        }


async def slow_sums(database: Database) -> Dump:
    """Return the rows that the tables should have."""
    async with database.reading() as tx:
        brought = await tx.all(sa.select(orders.c.order_id, orders.c.attributed_code))
        matched = await tx.all(sa.select(trades).where(trades.c.status != "FAILED"))
        made = await tx.all(sa.select(fills))
    builders = {row.order_id: row.attributed_code for row in brought if row.attributed_code}
    fills_by_trade = defaultdict(list)
    for row in made:
        fills_by_trade[row.trade_id].append(row)
    parts = []
    for trade in matched:
        own = fills_by_trade[trade.trade_id]
        parts.append((trade.taker_order_id, trade.taker, trade.cost_units, len(own), trade))
        for row in own:
            units = row.making_units if row.side == "BUY" else row.taking_units
            parts.append((row.maker_order_id, row.maker, units, 1, trade))
    return _summed(
        [
            (builders[order_id], wallet, trade.matched_at_ms // 86_400_000, units, count)
            for order_id, wallet, units, count, trade in parts
            if order_id in builders
        ]
    )


def _summed(parts: list[tuple[str, str, int, int, int]]) -> Dump:
    volume: Counter[tuple[str, int | None]] = Counter()
    count: Counter[tuple[str, int | None]] = Counter()
    days_by_user: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for builder, wallet, day, units, number in parts:
        for scope in (day, None):
            volume[builder, scope] += units
            count[builder, scope] += number
        days_by_user[builder, wallet][day] += number

    def users(builder: str, day: int | None) -> list[Counter[int]]:
        own = [days for (other, _), days in days_by_user.items() if other == builder]
        return [days for days in own if day is None or day in days]

    day_rows, total_rows = [], []
    for (builder, scope), units in volume.items():
        halves, number = divmod(units, 2**32), count[builder, scope]
        found = users(builder, scope)
        if scope is None:
            total_rows.append((builder, *halves, number, len(found)))
        else:
            ended = sum(max(days) == scope for days in found)
            day_rows.append((builder, scope, *halves, number, len(found), ended))
    user_rows = [
        (*user, day, number) for user, days in days_by_user.items() for day, number in days.items()
    ]
    return {
        "builder_days": sorted(day_rows),
        "builder_users": sorted(user_rows),
        "builder_totals": sorted(total_rows),
    }
