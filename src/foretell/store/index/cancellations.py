"""Cancellations of makers at an exchange: single orders, and all orders below a nonce.

Written by the indexer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import canceled_orders, raised_nonces


class CanceledOrder(NamedTuple):
    """An order that its maker canceled."""

    block_number: int
    log_index: int
    part: int
    exchange: Address
    order_id: Bytes32


class RaisedNonce(NamedTuple):
    """A maker's new nonce; it cancels all orders signed with a lower one."""

    block_number: int
    log_index: int
    part: int
    exchange: Address
    maker: Address
    nonce: int


async def record_canceled_orders(tx: Transaction, canceled: Sequence[CanceledOrder]) -> None:
    """Store canceled orders."""
    if canceled:
        await tx.execute(canceled_orders.insert(), [each._asdict() for each in canceled])


async def record_raised_nonces(tx: Transaction, raised: Sequence[RaisedNonce]) -> None:
    """Store raised nonces."""
    if raised:
        await tx.execute(raised_nonces.insert(), [each._asdict() for each in raised])


async def load_canceled_orders(tx: Transaction, since_block: int) -> Sequence[CanceledOrder]:
    """Return the orders that were canceled after this block, the oldest first."""
    rows = await tx.all(
        sa.select(canceled_orders)
        .where(canceled_orders.c.block_number > since_block)
        .order_by(canceled_orders.c.block_number, canceled_orders.c.log_index)
    )
    return [CanceledOrder._make(row) for row in rows]


async def load_raised_nonces(tx: Transaction, since_block: int) -> Sequence[RaisedNonce]:
    """Return the nonces that were raised after this block, the oldest first."""
    rows = await tx.all(
        sa.select(raised_nonces)
        .where(raised_nonces.c.block_number > since_block)
        .order_by(raised_nonces.c.block_number, raised_nonces.c.log_index)
    )
    return [RaisedNonce._make(row) for row in rows]
