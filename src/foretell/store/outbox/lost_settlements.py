"""Settlements that were final and whose blocks the chain has lost. Nothing changes them any more."""

import sqlalchemy as sa

from foretell.domain.evm.transaction import TxStatus
from foretell.store.database import Transaction
from foretell.store.tables import settlement_txs


async def count_confirmed_above(tx: Transaction, block_number: int) -> int:
    """Return how many confirmed transactions of settlement are in blocks above this one."""
    lost = sa.and_(
        settlement_txs.c.status == TxStatus.CONFIRMED.value,
        settlement_txs.c.block_number > block_number,
    )
    count = await tx.scalar(sa.select(sa.func.count()).select_from(settlement_txs).where(lost))
    return int(count or 0)
