"""Trades that are on the chain although no transaction that this database knows carries them.

A database that was restored from an older copy lacks the transactions since. A taker's order meets each
maker's order in one match alone, so the two in one transaction are their trade.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import exchange_fills, fills, trades


class Landing(NamedTuple):
    """A transaction in which fills of a trade are, by their makers' orders, and its block."""

    tx_hash: Bytes32
    block_number: int
    maker_order_ids: frozenset[Bytes32]


async def load_landings(
    tx: Transaction, trade_ids: Sequence[str]
) -> Mapping[str, Sequence[Landing]]:
    """Return where fills of these trades are on the chain, as of the last indexed block."""
    taken, made = exchange_fills.alias(), exchange_fills.alias()
    is_taken = sa.and_(taken.c.order_id == trades.c.taker_order_id, taken.c.is_taker)
    is_made = sa.and_(
        made.c.tx_hash == taken.c.tx_hash,
        made.c.order_id == fills.c.maker_order_id,
        made.c.is_taker.is_(sa.false()),
    )
    rows = await tx.all(
        sa.select(trades.c.trade_id, taken.c.tx_hash, taken.c.block_number, fills.c.maker_order_id)
        .join(fills, fills.c.trade_id == trades.c.trade_id)
        .join(taken, is_taken)
        .join(made, is_made)
        .where(trades.c.trade_id.in_(trade_ids))
        .order_by(taken.c.block_number, taken.c.tx_hash)
    )
    makers: dict[tuple[str, Bytes32, int], set[Bytes32]] = {}
    for row in rows:
        place = row.trade_id, row.tx_hash, row.block_number
        makers.setdefault(place, set()).add(row.maker_order_id)
    landings: dict[str, list[Landing]] = {}
    for (trade_id, tx_hash, block_number), order_ids in makers.items():
        landing = Landing(tx_hash, block_number, frozenset(order_ids))
        landings.setdefault(trade_id, []).append(landing)
    return landings


async def load_whole_landings(tx: Transaction, trade_ids: Sequence[str]) -> Mapping[str, Landing]:
    """Return the transactions that have all fills of a trade, for those of these trades that are in one."""
    landings = await load_landings(tx, trade_ids)
    if not landings:
        return {}
    rows = await tx.all(
        sa.select(fills.c.trade_id, sa.func.count().label("fills"))
        .where(fills.c.trade_id.in_(list(landings)))
        .group_by(fills.c.trade_id)
    )
    count_by_trade = {row.trade_id: row.fills for row in rows}
    return {
        trade_id: landing
        for trade_id, found in landings.items()
        for landing in found
        if len(landing.maker_order_ids) == count_by_trade[trade_id]
    }


async def load_settled_in(
    tx: Transaction, trade_ids: Sequence[str], tx_hashes: Collection[Bytes32]
) -> frozenset[tuple[str, Bytes32]]:
    """Return which of these trades which of these transactions settled, as of the last indexed block."""
    is_own_fill = sa.and_(
        exchange_fills.c.order_id == trades.c.taker_order_id, exchange_fills.c.is_taker
    )
    rows = await tx.all(
        sa.select(trades.c.trade_id, exchange_fills.c.tx_hash)
        .join(exchange_fills, is_own_fill)
        .where(trades.c.trade_id.in_(trade_ids))
    )
    found = {(row.trade_id, Bytes32(row.tx_hash)) for row in rows}
    return frozenset(each for each in found if each[1] in tx_hashes)
