"""Readings of wallets: what they held and allowed at a block, whatever logs show; written by the indexer.

A wallet may have collateral and approvals from before the first indexed block. A reading sets its rows as
of a block, and the logs of later blocks change them. A reorg that removes the block leaves the wallet to be
read again.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.balances import Allowance, Balance, load_allowances, load_balances
from foretell.store.index.history_tables import ALLOWANCES, BALANCES, VersionedTable, record_states
from foretell.store.tables import asked_wallets, wallet_readings

TO_READ_AGAIN: Final = -1
"""The block of a reading that a reorg has removed."""


class WalletReading(NamedTuple):
    """The collateral of a wallet, and its allowances by spender: of collateral, and of tokens."""

    wallet: Address
    collateral_units: int
    allowances_units: Sequence[tuple[Address, bool, int]]


async def load_to_read_again(tx: Transaction, limit: int) -> Sequence[Address]:
    """Return wallets whose reading a reorg has removed, in the order of their addresses."""
    removed = wallet_readings.c.block_number == TO_READ_AGAIN
    rows = await tx.all(
        sa.select(wallet_readings.c.wallet)
        .where(removed)
        .order_by(wallet_readings.c.wallet)
        .limit(limit)
    )
    return [Address(row.wallet) for row in rows]


async def load_unread(tx: Transaction, since_ms: int, limit: int) -> Sequence[Address]:
    """Return the wallets that were asked for since then and were never read, the oldest first."""
    read = wallet_readings.c.wallet == asked_wallets.c.wallet
    rows = await tx.all(
        sa.select(asked_wallets.c.wallet)
        .where(asked_wallets.c.asked_at_ms >= since_ms, ~sa.exists().where(read))
        .order_by(asked_wallets.c.asked_at_ms)
        .limit(limit)
    )
    return [Address(row.wallet) for row in rows]


async def is_read(tx: Transaction, wallet: Address) -> bool:
    """Return whether the tables contain a reading of the wallet."""
    is_there = wallet_readings.c.wallet == wallet, wallet_readings.c.block_number != TO_READ_AGAIN
    return await tx.first(sa.select(wallet_readings.c.wallet).where(*is_there)) is not None


async def record_readings(
    tx: Transaction, readings: Collection[WalletReading], block_number: int
) -> None:
    """Store what the wallets held and allowed after the newest block that is indexed."""
    if not readings:
        return
    balances = [
        Balance(each.wallet, COLLATERAL, each.collateral_units, block_number) for each in readings
    ]
    allowances = [
        Allowance(each.wallet, *allowed, block_number)
        for each in readings
        for allowed in each.allowances_units
    ]
    held = await load_balances(tx, [each[:2] for each in balances])
    allowed_before = await load_allowances(tx, [each[:3] for each in allowances])
    await _correct(tx, BALANCES, balances, {row[:2]: row.units for row in held})
    await _correct(tx, ALLOWANCES, allowances, {row[:3]: row.units for row in allowed_before})
    wallets = [each.wallet for each in readings]
    await tx.execute(wallet_readings.delete().where(wallet_readings.c.wallet.in_(wallets)))
    await tx.execute(
        wallet_readings.insert(),
        [{"wallet": wallet, "block_number": block_number} for wallet in wallets],
    )


async def unwind_readings(tx: Transaction, block_number: int) -> None:
    """Leave the wallets that were read above this block to be read again."""
    removed = wallet_readings.c.block_number > block_number
    await tx.execute(wallet_readings.update().where(removed).values(block_number=TO_READ_AGAIN))


async def _correct(
    tx: Transaction,
    table: VersionedTable,
    rows: Sequence[Balance] | Sequence[Allowance],
    units_before: dict[tuple[Any, ...], int],
) -> None:
    """Store the values that differ, over those that logs of the same block gave."""
    changed = [row for row in rows if units_before.get(row[:-2], 0) != row.units]
    if not changed:
        return
    names = [column.name for column in table.history.primary_key]
    same = [table.history.c[name] == sa.bindparam(f"key_{name}") for name in names]
    keys = [{f"key_{name}": getattr(row, name) for name in names} for row in changed]
    await tx.execute(table.history.delete().where(*same), keys)
    await record_states(tx, table, changed)
