"""The treasury's feed from the chain: collateral as of a block that every shard has observed.

The shards read the same tables whenever a block is indexed, so they and the treasury agree on most
blocks. When they do not, the next block serves as well: an observation holds all changes since the
last block that the treasury observed.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from foretell.domain.errors.families import Unavailable
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.treasury.treasury import Treasury
from foretell.domain.values.hexadecimal import Address
from foretell.engine.allocations.coordinator import AllocationCoordinator
from foretell.engine.writer.lower_head import LowerHead
from foretell.engine.writer.seen_tables import SeenTables, TablesEnd
from foretell.engine.writer.treasury_engine import TreasuryEngine
from foretell.runtime.worker import PollIntervals, run_watching_worker
from foretell.store.database import Database, Transaction
from foretell.store.index.balances import (
    Allowance,
    Balance,
    load_allowances_changed,
    load_collateral_changed,
)
from foretell.store.index.blocks import (
    BEFORE_ALL_BLOCKS,
    TOPIC,
    Block,
    load_last_block,
)

PACE: Final = PollIntervals(busy_s=0.05, idle_s=1.0)
"""Shards that are not at the block yet are asked again soon."""
OVERDRAWN_MS_MAX: Final = 30_000
"""How long a wallet may have less than its shards hold before its orders are closed.

A sale that settles some blocks after the purchase that it pays for causes this for a while.
"""


class CollateralChanges(NamedTuple):
    """Balances and allowances of collateral that changed up to a block."""

    block: Block
    balances: list[BalanceSeen]
    allowances: list[AllowanceSeen]


@dataclass(slots=True)
class CollateralFeed:
    """A loop that submits indexed collateral to the treasury."""

    engine: TreasuryEngine
    coordinator: AllocationCoordinator
    database: Database
    exchanges: Collection[Address]
    lower_head: LowerHead | None = None
    """The watch of a chain that went back; None where the engine does not follow it then."""
    tables: SeenTables = field(default_factory=SeenTables)
    _overdrawn_since_ms: dict[Address, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Run once per announced block and once per idle interval, until cancelled."""
        watch = partial(self.database.watching, TOPIC)
        await run_watching_worker(
            "collateral feed", self.run_once, PACE, watch, expected=(Unavailable,)
        )

    async def run_once(self) -> bool:
        """Submit the last block and call back uncovered allocations.

        Return whether shards are still behind that block.
        """
        treasury = self.engine.state
        async with self.database.reading() as tx:
            last = await load_last_block(tx)
            end = await self.tables.find_end(tx, treasury.observed_block, treasury.observed_hash)
            changes = None if end is None else await self._load_changes(tx, end)
        lower = await self._load_lower(last)
        changes = lower or changes
        has_met = changes is None or await self.coordinator.observe(
            changes.block.block_number,
            changes.block.block_hash,
            changes.balances,
            changes.allowances,
        )
        if has_met and lower is None and end is not None:
            self.tables.note(end)
        await self._call_back()
        return not has_met

    async def _call_back(self) -> None:
        """Have uncovered allocations returned, by force once that lasts."""
        now_ms, before = self.engine.now_ms(), self._overdrawn_since_ms
        self._overdrawn_since_ms = {
            wallet: before.get(wallet, now_ms) for wallet in self.engine.state.overdrawn
        }
        if self._overdrawn_since_ms:
            since_ms = now_ms - OVERDRAWN_MS_MAX
            forced = [wallet for wallet, at in self._overdrawn_since_ms.items() if at <= since_ms]
            await self.coordinator.call_back(forced=forced)

    async def _load_changes(self, tx: Transaction, end: TablesEnd) -> CollateralChanges | None:
        """Return the changes that the treasury does not know; None for the observed block without any."""
        changes = await self._read(tx, end.last, end.since)
        is_same = end.last.block_hash == self.engine.state.observed_hash
        if is_same and not (changes.balances or changes.allowances):
            return None
        return changes

    async def _load_lower(self, last: Block | None) -> CollateralChanges | None:
        """Return everything in tables that end below the observed block if the chain itself went back; else None."""
        if last is None or self.lower_head is None:
            return None
        if not await self.lower_head.is_end_of(last, self.engine.state.observed_block):
            return None
        async with self.database.reading() as tx:
            if await load_last_block(tx) != last:
                return None
            return await self._read(tx, last, BEFORE_ALL_BLOCKS)

    async def _read(self, tx: Transaction, last: Block, since: int) -> CollateralChanges:
        """Return what changed after a block, or everything, as of the last block."""
        treasury, is_complete = self.engine.state, since == BEFORE_ALL_BLOCKS
        balances = await load_collateral_changed(tx, since)
        allowances = await load_allowances_changed(tx, since)
        return CollateralChanges(
            last,
            _balances_seen(treasury, balances, is_complete=is_complete),
            _allowances_seen(treasury, allowances, self.exchanges, is_complete=is_complete),
        )


def _balances_seen(
    treasury: Treasury, balances: Collection[Balance], *, is_complete: bool
) -> list[BalanceSeen]:
    """Return the balances that differ from the known ones; a complete list adds those gone to 0."""
    known = treasury.confirmed_by_wallet
    units_by_wallet = {balance.wallet: balance.units for balance in balances}
    if is_complete:
        units_by_wallet = dict.fromkeys(known, 0) | units_by_wallet
    return [
        BalanceSeen(wallet, COLLATERAL, units)
        for wallet, units in units_by_wallet.items()
        if known.get(wallet, 0) != units
    ]


def _allowances_seen(
    treasury: Treasury,
    allowances: Collection[Allowance],
    exchanges: Collection[Address],
    *,
    is_complete: bool,
) -> list[AllowanceSeen]:
    """Return the allowances of collateral to an exchange that differ from the known ones."""
    units_by_key = {
        (allowance.wallet, allowance.spender): allowance.units
        for allowance in allowances
        if allowance.is_collateral and allowance.spender in exchanges
    }
    known = treasury.allowances_by_wallet
    if is_complete:
        keys = [(wallet, exchange) for wallet, units in known.items() for exchange in units]
        units_by_key = dict.fromkeys(keys, 0) | units_by_key
    return [
        AllowanceSeen(wallet, exchange, is_collateral=True, units=units)
        for (wallet, exchange), units in units_by_key.items()
        if known.get(wallet, {}).get(exchange, 0) != units
    ]
