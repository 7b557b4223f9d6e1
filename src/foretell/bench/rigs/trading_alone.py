"""The trading product alone, as an installation serves it, without a chain: the subject of benchmarks."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Final, NamedTuple

from foretell.app.api_server import Access, ApiServer
from foretell.app.clock_and_ids import new_uuid, now_ms
from foretell.app.embedded import TradingParts, tables_in_child
from foretell.app.gateway import bind
from foretell.app.roles import PREFIX_BY_ROLE, Role
from foretell.app.signer_recovery.client import SignerRecovery
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.wallet_state import (
    BlockMark,
    WalletChanges,
    WalletKey,
    WalletState,
)
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address
from foretell.edge.auth import KeyRing
from foretell.edge.fast_route import FastResponse, FastRoute
from foretell.edge.rate_limits import NO_LIMITS
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal
from foretell.runtime.garbage_collection import collect_when_idle
from foretell.runtime.loops import run_together
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.routes.app import build_app
from foretell.trading.routes.fast_path import fast_routes

CONSTANT_PATH: Final = "/constant"
CONSTANT_BODY: Final = b'"' + b"." * 4094 + b'"'
CONSTANT_ROUTE: Final = FastRoute(
    takes=lambda query: not query,
    begin=lambda _, reply: reply(FastResponse(200, CONSTANT_BODY)),
)
"""A fast route of the benchmark alone: the least that the server does for a response of 4 kB."""


class NoWallets:
    """The answers on contract wallets of a chain that has none."""

    async def read(self, wallet: Address) -> WalletState:
        """Return that nothing is deployed."""
        key = WalletKey(ZERO_BYTES32, None, (), 0)
        block = BlockMark(0, ZERO_BYTES32)
        return WalletState(block, has_code=False, key=key, watched=(wallet,), shows_changes=True)

    async def accepts(
        self, state: WalletState, wallet: Address, digest: bytes, signature: bytes
    ) -> bool:
        """Return that no signature is accepted."""
        del wallet, digest, signature
        return state.has_code

    async def changes(self, since: BlockMark, watched: Collection[Address]) -> WalletChanges:
        """Return that nothing changed, and no block was added."""
        del watched
        return WalletChanges(since, frozenset())


class TradingAlone(NamedTuple):
    """A trading API that answers, with its database and its engine."""

    database: Database
    engine: Engine
    port: int


@contextlib.asynccontextmanager
async def trading_alone(
    deployment: Deployment, master_key: bytes, folder: Path, proxies: tuple[str, ...] = ()
) -> AsyncIterator[TradingAlone]:
    """Give a trading API on a free port; it ends with the block. Connections of `proxies` have no pace."""
    async with Database(f"sqlite+aiosqlite:///{folder / 'foretell.db'}") as database:
        await upgrade(database)
        recovery = SignerRecovery()
        await recovery.start()
        parts = TradingParts(
            deployment=deployment,
            database=database,
            key_ring=KeyRing(database, master_key, [deployment.chain_id], now_ms),
            chain=ChainView(_first_nonce, _no_code, NoWallets()),
            recover=recovery.submit,
            blob_base_url="",
            now_ms=now_ms,
            new_uuid=new_uuid,
            make_tables=tables_in_child,
        )
        trading = parts.embedded(FileJournal(folder / "journal"))
        await trading.start()
        endless = [*trading.loops().values(), recovery.run, collect_when_idle]
        loops = asyncio.create_task(run_together(endless))
        listener = bind("127.0.0.1", 0, "--port")
        prefixes = {Role.TRADING: PREFIX_BY_ROLE[Role.TRADING]}
        access = Access(limits=NO_LIMITS._replace(trusted_proxies=proxies))
        api = ApiServer(prefixes, "", "127.0.0.1", 0, access)
        routes = {**fast_routes(trading.context), ("GET", CONSTANT_PATH): CONSTANT_ROUTE}
        api.open(Role.TRADING, build_app(trading.context), routes)
        try:
            await api.start(listener)
            yield TradingAlone(database, trading.host.engine, listener.getsockname()[1])
        finally:
            await api.finish()
            loops.cancel()
            await trading.host.close()
            await recovery.close()


async def _first_nonce(exchange: Address, maker: Address) -> int:
    del exchange, maker
    return 0


async def _no_code(address: Address) -> bool:
    del address
    return False
