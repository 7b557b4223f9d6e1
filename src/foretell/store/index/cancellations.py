"""What makers ended at an exchange: single orders, and all that they had signed with a nonce."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import canceled_orders, raised_nonces


class CanceledOrder(NamedTuple):
    """An order that its maker ended."""

    block_number: int
    log_index: int
    part: int
    exchange: Address
    order_id: Bytes32


class RaisedNonce(NamedTuple):
    """A maker's new nonce: what it signed with a lower one is over."""

    block_number: int
    log_index: int
    part: int
    exchange: Address
    maker: Address
    nonce: int


async def record_canceled_orders(tx: Transaction, canceled: Sequence[CanceledOrder]) -> None:
    """Store orders that were ended."""
    if canceled:
        await tx.execute(canceled_orders.insert(), [each._asdict() for each in canceled])


async def record_raised_nonces(tx: Transaction, raised: Sequence[RaisedNonce]) -> None:
    """Store nonces that were raised."""
    if raised:
        await tx.execute(raised_nonces.insert(), [each._asdict() for each in raised])


async def load_canceled_orders(tx: Transaction, since_block: int) -> Sequence[CanceledOrder]:
    """Return the orders that were ended in a later block than this, the first one first."""
    rows = await tx.all(
        sa.select(canceled_orders)
        .where(canceled_orders.c.block_number > since_block)
        .order_by(canceled_orders.c.block_number, canceled_orders.c.log_index)
    )
    return [CanceledOrder._make(row) for row in rows]


async def load_raised_nonces(tx: Transaction, since_block: int) -> Sequence[RaisedNonce]:
    """Return the nonces that were raised in a later block than this, the last one last."""
    rows = await tx.all(
        sa.select(raised_nonces)
        .where(raised_nonces.c.block_number > since_block)
        .order_by(raised_nonces.c.block_number, raised_nonces.c.log_index)
    )
    return [RaisedNonce._make(row) for row in rows]
