"""Fees of transactions of settlement whose bytes the node refused, and which are in no block yet."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.evm.transaction import WAITING
from foretell.store.database import Transaction
from foretell.store.tables import settlement_tx_attempts, settlement_txs


class RefusedFee(NamedTuple):
    """The most that the first attempt of a transaction would have cost, and the words of the refusal."""

    fee_wei: int
    words: str


async def load_refused_fees(tx: Transaction) -> Sequence[RefusedFee]:
    """Return the fees of all waiting transactions of which only the nonce is used up."""
    columns = settlement_txs.c
    price = sa.func.min(settlement_tx_attempts.c.max_fee_wei).label("price")
    rows = await tx.all(
        sa.select(columns.gas, columns.failure, price)
        .join(settlement_tx_attempts, settlement_tx_attempts.c.tx_id == columns.tx_id)
        .where(columns.status.in_(sorted(WAITING)), columns.failure.is_not(None))
        .group_by(columns.tx_id, columns.gas, columns.failure)
    )
    return [RefusedFee(row.gas * row.price, row.failure) for row in rows]
