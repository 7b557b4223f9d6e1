"""Orders that keep a trade from settling; written by settlement, read by the engine."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from foretell.domain.exchange.settlement import RefusedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.outbox.settlements import TOPIC
from foretell.store.tables import markets, orders, refused_orders


async def record_refused_orders(tx: Transaction, refused: Sequence[RefusedOrder]) -> None:
    """Store refused orders; an earlier row of the same order in the same trade is replaced."""
    for each in refused:
        same = sa.and_(
            refused_orders.c.trade_id == each.trade_id, refused_orders.c.order_id == each.order_id
        )
        await tx.execute(refused_orders.delete().where(same))
    if refused:
        await tx.execute(refused_orders.insert(), [each._asdict() for each in refused])
        await tx.announce(TOPIC)


async def load_refused_orders(tx: Transaction, trade_ids: Sequence[str]) -> Sequence[RefusedOrder]:
    """Return the refused orders of these trades, part by part."""
    keys = [(each,) for each in trade_ids]
    rows = await load_rows(tx, refused_orders, (refused_orders.c.trade_id,), keys)
    found = [RefusedOrder._make(row) for row in rows]
    return sorted(found, key=lambda each: (each.trade_id, each.part, each.order_id))


async def load_blamed_of(tx: Transaction, wallet: Address) -> tuple[Bytes32, Address] | None:
    """Return the newest order of a wallet that is to blame, and its exchange."""
    row = await tx.first(
        sa.select(orders.c.order_id, markets.c.exchange)
        .join(refused_orders, refused_orders.c.order_id == orders.c.order_id)
        .join(markets, markets.c.condition_id == orders.c.condition_id)
        .where(orders.c.maker == wallet, refused_orders.c.is_blamed.is_(sa.true()))
        .order_by(orders.c.placed_at_ms.desc(), orders.c.order_id)
        .limit(1)
    )
    return None if row is None else (Bytes32(row.order_id), Address(row.exchange))


async def load_blamed(tx: Transaction, order_ids: Collection[Bytes32]) -> frozenset[Bytes32]:
    """Return which of these orders are to blame, in any trade."""
    rows = await tx.all(
        sa.select(refused_orders.c.order_id).where(
            refused_orders.c.order_id.in_(sorted(order_ids)),
            refused_orders.c.is_blamed.is_(sa.true()),
        )
    )
    return frozenset(row.order_id for row in rows)
