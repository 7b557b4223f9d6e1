"""Transactions of a trade that were mined in vain; written by settlement."""

import sqlalchemy as sa

from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.settlement import Settlement, tx_id_of
from foretell.store.database import Transaction
from foretell.store.tables import refused_orders, settlement_txs


async def count_mined_reverts(tx: Transaction, settlement: Settlement) -> int:
    """Return how many transactions of a trade were mined in vain."""
    tries = range(1, settlement.attempts + 2)
    ids = [tx_id_of(settlement.trade_id, number) for number in tries]
    has_reverted = settlement_txs.c.status == TxStatus.FAILED.value
    query = sa.select(sa.func.count()).where(settlement_txs.c.tx_id.in_(ids), has_reverted)
    return int(await tx.scalar(query))


async def is_split(tx: Transaction, settlement: Settlement) -> bool:
    """Return whether fills have left a trade, or are to leave it."""
    query = sa.select(refused_orders.c.order_id).where(
        refused_orders.c.trade_id == settlement.trade_id, refused_orders.c.part > 0
    )
    return await tx.first(query.limit(1)) is not None
