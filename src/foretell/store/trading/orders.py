"""Orders, projected from the journal; written by the engine."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.order import (
    OrderStatus,
    OrderType,
    OrderV2Fields,
    Side,
    SignatureType,
    SignedOrder,
    has_budget,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.tables import is_live, orders
from foretell.store.tables.trading import CLOSED_UNASKED


class OrderRow(NamedTuple):
    """An order as it was signed, with its current state."""

    order_id: Bytes32
    sequence: int
    condition_id: Bytes32
    is_yes: bool
    owner: str
    order_type: OrderType
    price_ticks: int
    ticks_per_one: int
    size_units: int
    matched_units: int
    status: OrderStatus
    close_reason: str | None
    placed_at_ms: int
    updated_at_ms: int
    signed: SignedOrder
    builder: Bytes32 | None = None
    """The code of the builder that the order is attributed to."""

    @property
    def has_budget(self) -> bool:
        """Whether it names the collateral to spend, and not a size."""
        return has_budget(self.signed.side, self.order_type)


class OrderChange(NamedTuple):
    """The new state of an order."""

    order_id: Bytes32
    matched_units: int
    status: OrderStatus
    close_reason: str | None
    updated_at_ms: int


class OrderFilter(NamedTuple):
    """A filter for a signer's live orders; None matches every value."""

    order_id: Bytes32 | None = None
    condition_id: Bytes32 | None = None
    token_id: str | None = None


_CHANGE: Final = (
    orders.update()
    .where(orders.c.order_id == sa.bindparam("changed_id"))
    .values(
        matched_units=sa.bindparam("matched"),
        status=sa.bindparam("new_status"),
        close_reason=sa.bindparam("reason"),
        updated_at_ms=sa.bindparam("at_ms"),
    )
)


async def record_orders(tx: Transaction, placed: Sequence[OrderRow]) -> None:
    """Store placed orders."""
    await tx.insert_rows(orders, [_cells(order) for order in placed])


async def forget_delayed(tx: Transaction, order_ids: Sequence[Bytes32]) -> None:
    """Delete the rows of orders that were delayed: they are stored again as their release left them."""
    if order_ids:
        await tx.execute(orders.delete().where(orders.c.order_id.in_(order_ids)))


async def record_changes(tx: Transaction, changes: Sequence[OrderChange]) -> None:
    """Store the new state of orders that were placed before."""
    rows = [
        (
            change.matched_units,
            change.status.value,
            change.close_reason,
            change.updated_at_ms,
            change.order_id,
        )
        for change in changes
    ]
    await tx.execute_rows(_CHANGE, rows)


async def load_order(tx: Transaction, order_id: str) -> OrderRow | None:
    """Return an order that was accepted at any time."""
    row = await tx.first(sa.select(orders).where(orders.c.order_id == order_id))
    return None if row is None else _row(row)


async def load_orders(tx: Transaction, order_ids: Sequence[str]) -> Mapping[str, OrderRow]:
    """Return the orders that were accepted at any time, by id; unknown ids are left out."""
    rows = await load_rows(tx, orders, (orders.c.order_id,), [(each,) for each in order_ids])
    return {row.order_id: _row(row) for row in rows}


async def load_closed_orders(
    tx: Transaction, signer: Address, since_ms: int, limit: int
) -> Sequence[tuple[OrderRow, int]]:
    """Return a signer's orders that left the book without a request, and when; the newest first."""
    rows = await tx.all(
        sa.select(orders)
        .where(orders.c.signer == signer, orders.c.updated_at_ms >= since_ms, CLOSED_UNASKED)
        .order_by(orders.c.updated_at_ms.desc(), orders.c.order_id)
        .limit(limit)
    )
    return [(_row(row), row.updated_at_ms) for row in rows]


async def load_live_orders(
    tx: Transaction, signer: Address, wanted: OrderFilter, offset: int, limit: int
) -> Sequence[OrderRow]:
    """Return a page of a signer's live orders, the newest first.

    Each shard has its own sequence; times never decrease along it.
    """
    query = sa.select(orders).where(orders.c.signer == signer, is_live)
    if wanted.order_id is not None:
        query = query.where(orders.c.order_id == wanted.order_id)
    if wanted.condition_id is not None:
        query = query.where(orders.c.condition_id == wanted.condition_id)
    if wanted.token_id is not None:
        query = query.where(orders.c.token_id == wanted.token_id)
    newest = query.order_by(
        orders.c.placed_at_ms.desc(), orders.c.sequence.desc(), orders.c.order_id
    )
    return [_row(row) for row in await tx.all(newest.offset(offset).limit(limit))]


def _cells(order: OrderRow) -> tuple[Any, ...]:
    """Return the values of the columns in the table's order."""
    signed = order.signed
    added = signed.v2
    return (
        order.order_id,
        order.sequence,
        order.condition_id,
        signed.token_id,
        order.is_yes,
        order.owner,
        signed.maker,
        signed.signer,
        signed.side.name,
        order.order_type.value,
        order.price_ticks,
        order.ticks_per_one,
        order.size_units,
        order.matched_units,
        order.status.value,
        order.close_reason,
        order.placed_at_ms,
        order.updated_at_ms,
        signed.salt,
        signed.taker,
        signed.maker_amount,
        signed.taker_amount,
        signed.expiration_s,
        signed.nonce,
        signed.fee_rate_bps,
        int(signed.signature_type),
        signed.profile,
        signed.signature,
        None if added is None else added.timestamp_ms,
        None if added is None else added.metadata,
        None if added is None else added.builder,
        order.builder,
    )


def _row(row: sa.Row[Any]) -> OrderRow:
    return OrderRow(
        order_id=Bytes32(row.order_id),
        sequence=row.sequence,
        condition_id=Bytes32(row.condition_id),
        is_yes=row.is_yes,
        owner=row.owner,
        order_type=OrderType(row.order_type),
        price_ticks=row.price_ticks,
        ticks_per_one=row.ticks_per_one,
        size_units=row.size_units,
        matched_units=row.matched_units,
        status=OrderStatus(row.status),
        close_reason=row.close_reason,
        placed_at_ms=row.placed_at_ms,
        updated_at_ms=row.updated_at_ms,
        signed=SignedOrder(
            salt=row.salt,
            maker=Address(row.maker),
            signer=Address(row.signer),
            taker=Address(row.taker),
            token_id=row.token_id,
            maker_amount=row.maker_amount,
            taker_amount=row.taker_amount,
            expiration_s=row.expiration_s,
            nonce=row.nonce,
            fee_rate_bps=row.fee_rate_bps,
            side=Side[row.side],
            signature_type=SignatureType(row.signature_type),
            profile=row.profile,
            signature=bytes(row.signature),
            v2=_v2_fields(row),
        ),
        builder=None if row.attributed_code is None else Bytes32(row.attributed_code),
    )


def _v2_fields(row: sa.Row[Any]) -> OrderV2Fields | None:
    if row.timestamp_ms is None:
        return None
    return OrderV2Fields(row.timestamp_ms, Bytes32(row.metadata_word), Bytes32(row.builder_code))
