"""Balances and allowances of the tables that differ from an engine's, compared in parts between which the loop turns.

All rows are compared at a start and whenever the tables were taken back, and a wallet has several: in one part, no order
would be taken for seconds. Commands that are applied between two parts change nothing that is compared: confirmed
balances and allowances follow from observations alone, which the reader submits itself, except for collateral from a
treasury, which is left out.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final, TypeVar

from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import AssetId, Ledger
from foretell.domain.exchange.observation import (
    AllowanceKey,
    allowances_gone,
    allowances_seen,
    balances_gone,
    balances_seen,
)
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.balances import allowances_changed, balances_changed
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS

ROWS_PER_PART_MAX: Final = 2_000

Row = TypeVar("Row")


async def read_balances(
    tx: Transaction, since_block: int, ledger: Ledger, foreign_assets: Collection[AssetId]
) -> list[BalanceSeen]:
    """Return the balances that changed after a block, or of all, and differ from the ledger's."""
    seen: list[BalanceSeen] = []
    accounts: set[tuple[Address, AssetId]] = set()
    async for part in balances_changed(tx, since_block, ROWS_PER_PART_MAX):
        rows = [BalanceSeen(each.wallet, each.asset, each.units) for each in part]
        seen += balances_seen(ledger, rows, foreign_assets)
        if since_block == BEFORE_ALL_BLOCKS:
            accounts.update([(each.wallet, each.asset) for each in part])
        await asyncio.sleep(0)
    if since_block == BEFORE_ALL_BLOCKS:
        async for wallets in _parts(list(ledger.accounts_by_wallet)):
            seen += balances_gone(ledger, wallets, accounts, foreign_assets)
    return seen


async def read_allowances(
    tx: Transaction, since_block: int, ledger: Ledger, exchanges: Collection[Address]
) -> list[AllowanceSeen]:
    """Return the allowances that changed after a block, or of all, and differ from the ledger's."""
    seen: list[AllowanceSeen] = []
    keys: set[AllowanceKey] = set()
    async for part in allowances_changed(tx, since_block, ROWS_PER_PART_MAX):
        rows = [
            AllowanceSeen(each.wallet, each.spender, each.is_collateral, each.units)
            for each in part
        ]
        seen += allowances_seen(ledger, rows, exchanges)
        if since_block == BEFORE_ALL_BLOCKS:
            keys.update([(each.wallet, each.exchange, each.is_collateral) for each in rows])
        await asyncio.sleep(0)
    if since_block == BEFORE_ALL_BLOCKS:
        async for held in _parts(ledger.allowances_held()):
            seen += allowances_gone(held, keys)
    return seen


async def _parts(rows: Sequence[Row]) -> AsyncIterator[Sequence[Row]]:
    """Yield the rows in parts; the loop turns after each."""
    for start in range(0, len(rows), ROWS_PER_PART_MAX):
        yield rows[start : start + ROWS_PER_PART_MAX]
        await asyncio.sleep(0)
