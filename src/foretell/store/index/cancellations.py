"""Cancellations of makers at an exchange: single orders, all orders below a nonce, and stops.

The contract keeps a maker's nonce and its stops in one word, and the table of raised nonces has a row
for each change of it. The `part` of a row is the part of the word: 0 for the nonce, or the kind of the
stop. Written by the indexer.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.signing.stops import StopKind
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import canceled_orders, raised_nonces

NONCE_PART: Final = 0


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


class MakerStop(NamedTuple):
    """A maker's new stop of one kind; 0 ends it."""

    block_number: int
    log_index: int
    part: StopKind
    exchange: Address
    maker: Address
    nonce: int
    """The value of the stop, in the column of the nonce."""


async def record_canceled_orders(tx: Transaction, canceled: Sequence[CanceledOrder]) -> None:
    """Store canceled orders."""
    await tx.insert_rows(canceled_orders, canceled)


async def record_raised_nonces(tx: Transaction, raised: Sequence[RaisedNonce]) -> None:
    """Store raised nonces."""
    await tx.insert_rows(raised_nonces, raised)


async def record_stops(tx: Transaction, stops: Sequence[MakerStop]) -> None:
    """Store stops."""
    await tx.insert_rows(raised_nonces, [(*each[:2], each.part.value, *each[3:]) for each in stops])


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
    rows = await tx.all(_changes_since(since_block).where(raised_nonces.c.part == NONCE_PART))
    return [RaisedNonce._make(row) for row in rows]


async def load_stops(tx: Transaction, since_block: int) -> Sequence[MakerStop]:
    """Return the stops that makers set after this block, the oldest first."""
    rows = await tx.all(_changes_since(since_block).where(raised_nonces.c.part != NONCE_PART))
    return [MakerStop._make(row)._replace(part=StopKind(row.part)) for row in rows]


def _changes_since(block_number: int) -> sa.Select[Any]:
    return (
        sa.select(raised_nonces)
        .where(raised_nonces.c.block_number > block_number)
        .order_by(raised_nonces.c.block_number, raised_nonces.c.log_index)
    )
