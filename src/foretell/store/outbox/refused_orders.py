"""Orders that keep a trade from settling, as settlement found out: what the engine is told of them."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.outbox.settlements import TOPIC
from foretell.store.tables import refused_orders


class RefusedOrder(NamedTuple):
    """An order of a trade that the chain refuses, and why.

    Orders of one `part` leave the trade together; in part 0 are those that stay. One that
    `is_blamed` would be refused whatever it meets.
    """

    trade_id: str
    order_id: Bytes32
    part: int
    cause: str
    is_blamed: bool


async def record_refused_orders(tx: Transaction, refused: Sequence[RefusedOrder]) -> None:
    """Store what was found out; what was known of the same order in the same trade is replaced."""
    for each in refused:
        same = sa.and_(
            refused_orders.c.trade_id == each.trade_id, refused_orders.c.order_id == each.order_id
        )
        await tx.execute(refused_orders.delete().where(same))
    if refused:
        await tx.execute(refused_orders.insert(), [each._asdict() for each in refused])
        await tx.announce(TOPIC)


async def load_refused_orders(tx: Transaction, trade_ids: Sequence[str]) -> Sequence[RefusedOrder]:
    """Return what was found out about these trades, part by part."""
    rows = await tx.all(
        sa.select(refused_orders)
        .where(refused_orders.c.trade_id.in_(trade_ids))
        .order_by(refused_orders.c.trade_id, refused_orders.c.part, refused_orders.c.order_id)
    )
    return [RefusedOrder._make(row) for row in rows]
