"""Notifications that their readers have acknowledged, and resolutions of markets that wallets hold.

An address has an acknowledgement for each newer notification, and a time for each type, up to which all are
acknowledged. Written by trading.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import acknowledged_times, acknowledgements, payouts, positions


class Acknowledged(NamedTuple):
    """What an address has acknowledged: single notifications, and times by type."""

    ids: Collection[str]
    until_ms: Mapping[int, int]


class AcknowledgedNotification(NamedTuple):
    """A notification that is acknowledged, with its type and its time."""

    notification_id: str
    type: int
    at_ms: int


class MarketPayout(NamedTuple):
    """A payout of a condition that a wallet has or had tokens of."""

    condition_id: str
    payout_yes: int
    payout_no: int
    timestamp_s: int
    tx_hash: str


async def load_acknowledged(tx: Transaction, address: Address) -> Acknowledged:
    """Return what an address has acknowledged."""
    single = await tx.all(
        sa.select(acknowledgements.c.notification_id).where(acknowledgements.c.address == address)
    )
    times = await tx.all(
        sa.select(acknowledged_times).where(acknowledged_times.c.address == address)
    )
    return Acknowledged(
        frozenset(row.notification_id for row in single), {row.type: row.until_ms for row in times}
    )


async def record_acknowledged(
    tx: Transaction, address: Address, noted: Sequence[AcknowledgedNotification], kept_max: int
) -> None:
    """Acknowledge notifications; beyond a number the oldest become a time of their type."""
    for each in noted:
        await tx.insert_new(acknowledgements, address=address, **each._asdict())
    own = acknowledgements.c.address == address
    surplus = await tx.all(
        sa.select(acknowledgements)
        .where(own)
        .order_by(acknowledgements.c.at_ms.desc(), acknowledgements.c.notification_id)
        .offset(kept_max)
    )
    for row in surplus:
        await record_acknowledged_until(tx, address, row.type, row.at_ms)
        await tx.execute(
            acknowledgements.delete().where(
                own, acknowledgements.c.notification_id == row.notification_id
            )
        )


async def record_acknowledged_until(
    tx: Transaction, address: Address, kind: int, until_ms: int
) -> None:
    """Acknowledge all notifications of a type up to a time."""
    is_new = await tx.insert_new(acknowledged_times, address=address, type=kind, until_ms=until_ms)
    if not is_new:
        await tx.execute(
            acknowledged_times.update()
            .where(
                acknowledged_times.c.address == address,
                acknowledged_times.c.type == kind,
                acknowledged_times.c.until_ms < until_ms,
            )
            .values(until_ms=until_ms)
        )


async def load_resolutions(
    tx: Transaction, wallets: Sequence[Address], since_s: int, limit: int
) -> Sequence[MarketPayout]:
    """Return the payouts since a time of what wallets hold or held, the newest first."""
    held = sa.select(positions.c.condition_id).where(positions.c.wallet.in_(wallets))
    rows = await tx.all(
        sa.select(
            payouts.c.condition_id,
            payouts.c.payout_yes,
            payouts.c.payout_no,
            payouts.c.timestamp_s,
            payouts.c.tx_hash,
        )
        .where(payouts.c.condition_id.in_(held), payouts.c.timestamp_s >= since_s)
        .order_by(payouts.c.timestamp_s.desc(), payouts.c.condition_id)
        .limit(limit)
    )
    return [MarketPayout._make(row) for row in rows]
