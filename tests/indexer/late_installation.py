"""An installation that starts on a chain with a history of collateral."""

from typing import Any, Final

from tests.rigs.sandbox import Sandbox, an_indexer

from foretell.chain.rpc import Rpc
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address
from foretell.indexer.context import IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.wallet_reader import READ_AGAIN_MAX, WalletReader
from foretell.store.database import Database
from foretell.store.index.balances import load_allowances, load_balances
from foretell.store.index.wallet_readings import is_read
from foretell.store.trading.asked_wallets import record_asked

NOW_MS: Final = 1_000_000_000


class LateInstallation:
    """An indexer whose first block comes after the traders were given collateral and approved."""

    def __init__(self, sandbox: Sandbox, database: Database, start_block: int) -> None:
        self.sandbox, self.database, self.start_block = sandbox, database, start_block
        self.now_ms = NOW_MS

    def indexer(
        self, rpc: Rpc | None = None, again_max: int = READ_AGAIN_MAX, **fields: Any
    ) -> IndexerContext:
        """Return an indexer as after a start."""
        contracts = IndexedContracts.of(self.sandbox.deployment)
        wallets = WalletReader(
            self.database,
            rpc or self.sandbox.rpc,
            contracts,
            lambda: self.now_ms,
            wallets_max=2,
            again_max=again_max,
        )
        return an_indexer(
            self.sandbox, self.database, start_block=self.start_block, wallets=wallets, **fields
        )

    async def ask(self, *wallets: Address) -> None:
        async with self.database.writing() as tx:
            for wallet in wallets:
                await record_asked(tx, wallet, self.now_ms)

    async def funds(self, wallet: Address) -> tuple[int, int, int]:
        """Return the collateral of a wallet, and what the exchange may move of it and of its tokens."""
        exchange = self.sandbox.deployment.exchange
        async with self.database.reading() as tx:
            held = await load_balances(tx, [(wallet, COLLATERAL)])
            allowed = await load_allowances(
                tx, [(wallet, exchange, True), (wallet, exchange, False)]
            )
        units = {row.is_collateral: row.units for row in allowed}
        return sum(row.units for row in held), units.get(True, 0), units.get(False, 0)

    async def on_chain(self, wallet: Address) -> tuple[int, int, int]:
        exchange = self.sandbox.deployment.exchange
        return (
            await self.sandbox.reader.collateral_units(wallet),
            min(await self.sandbox.reader.allowance_units(wallet, exchange), AMOUNT_UNITS_MAX),
            AMOUNT_UNITS_MAX * await self.sandbox.is_approved(wallet, exchange),
        )

    async def has_read(self, wallet: Address) -> bool:
        async with self.database.reading() as tx:
            return await is_read(tx, wallet)
