"""Sums of relay requests by the hour, from which the budgets of 24 hours are checked.

An account has what it submitted for other owners, and the zero address what everybody submitted. A sum changes in
the transaction that changes its request. Written by the relayer.
"""

from collections.abc import Collection, Sequence
from typing import Final

import sqlalchemy as sa

from foretell.domain.relay.budgets import HourlyUse, first_hour, hour_of
from foretell.domain.relay.request import RelayRequest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address
from foretell.store.database import Transaction
from foretell.store.tables import relay_hours

EVERYBODY: Final = ZERO_ADDRESS
_LOCK: Final = 0x72656C61


async def lock_budgets(tx: Transaction) -> None:
    """Have other processes wait with their checks until this transaction has ended; SQLite has one writer."""
    if tx.dialect == "postgresql":
        await tx.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


async def add_relay(tx: Transaction, request: RelayRequest) -> None:
    """Count a new request."""
    hour = hour_of(request.created_at_ms)
    for account in _accounts(request):
        await tx.insert_new(relay_hours, account=account, hour=hour, relays=0, gas=0)
        await _change(tx, account, hour, relays=1, gas=request.gas)


async def remove_relay(tx: Transaction, request: RelayRequest) -> None:
    """Take a request off that was counted and was never sent."""
    hour = hour_of(request.created_at_ms)
    for account in _accounts(request):
        await _change(tx, account, hour, relays=-1, gas=-request.gas)


async def load_builder_hours(tx: Transaction, builder: Address, now_ms: int) -> Sequence[HourlyUse]:
    """Return what an account submitted for other owners in the hours that count."""
    columns = relay_hours.c
    rows = await tx.all(
        sa.select(columns.hour, columns.relays, columns.gas).where(
            columns.account == builder, columns.hour >= first_hour(now_ms)
        )
    )
    return [HourlyUse._make(row) for row in rows]


async def load_all_hours(
    tx: Transaction, without: Collection[Address], now_ms: int
) -> Sequence[HourlyUse]:
    """Return what everybody submitted in the hours that count, without what some accounts did for others."""
    columns = relay_hours.c
    sign = sa.case((columns.account == EVERYBODY, 1), else_=-1)
    counted = (columns.relays, columns.gas)
    sums = [sa.func.sum(sign * column).label(column.name) for column in counted]
    is_counted = columns.account.in_([EVERYBODY, *sorted(without)])
    rows = await tx.all(
        sa.select(columns.hour, *sums)
        .where(is_counted, columns.hour >= first_hour(now_ms))
        .group_by(columns.hour)
    )
    return [HourlyUse(row.hour, int(row.relays), int(row.gas)) for row in rows]


async def _change(tx: Transaction, account: Address, hour: int, *, relays: int, gas: int) -> None:
    columns = relay_hours.c
    await tx.execute(
        relay_hours.update()
        .where(columns.account == account, columns.hour == hour)
        .values(relays=columns.relays + relays, gas=columns.gas + gas)
    )


def _accounts(request: RelayRequest) -> Sequence[Address]:
    """Return whose sums have a request: that of everybody comes last, so that no two writers wait for each other."""
    if request.submitter == request.owner:
        return [EVERYBODY]
    return [request.submitter, EVERYBODY]
