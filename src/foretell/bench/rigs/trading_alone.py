"""Trading by itself, as the product serves it, without a chain: what benchmarks measure."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from foretell.app.clock_and_ids import new_uuid, now_ms, numbered_ids
from foretell.app.embedded import build_embedded
from foretell.app.gateway import Gateway, bind, build_server
from foretell.app.http.fast_connection import served_under
from foretell.app.installation import START_LOOK_S
from foretell.app.roles import PREFIX_BY_ROLE, Role
from foretell.app.signer_recovery.client import Recovery
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.values.hexadecimal import Address
from foretell.edge.auth import KeyRing
from foretell.edge.telemetry import Telemetry
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal
from foretell.runtime.loops import run_together
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.routes.app import build_app
from foretell.trading.routes.fast_path import fast_routes


class Alone(NamedTuple):
    """A trading API that answers, and what it stands on."""

    database: Database
    engine: Engine
    port: int


@contextlib.asynccontextmanager
async def trading_alone(
    deployment: Deployment, master_key: bytes, folder: Path
) -> AsyncIterator[Alone]:
    """Give a trading API on a free port; it ends with the block."""
    async with Database(f"sqlite+aiosqlite:///{folder / 'foretell.db'}") as database:
        await upgrade(database)
        recovery = Recovery()
        await recovery.start()
        trading = build_embedded(
            deployment=deployment,
            database=database,
            journal=FileJournal(folder / "journal"),
            key_ring=KeyRing(database, master_key, [deployment.chain_id], now_ms),
            chain=ChainView(_first_nonce, _no_code),
            recover=recovery.recover,
            blob_base_url="",
            now_ms=now_ms,
            new_uuid=new_uuid,
        )
        await trading.start()
        prefix = PREFIX_BY_ROLE[Role.TRADING]
        app = Telemetry(build_app(trading.context), Role.TRADING, numbered_ids())
        served = served_under(prefix, fast_routes(trading.context), app)
        listener = bind("127.0.0.1", 0, "--port")
        server = build_server(Gateway({prefix: app}, ""), "127.0.0.1", 0, served)
        loops = asyncio.create_task(run_together([*trading.loops().values(), recovery.run]))
        serving = asyncio.create_task(server.serve([listener]))
        try:
            while not server.started:  # noqa: ASYNC110 - the server has no event to wait for
                await asyncio.sleep(START_LOOK_S)
            yield Alone(database, trading.host.engine, listener.getsockname()[1])
        finally:
            server.should_exit = True
            await serving
            loops.cancel()
            await trading.host.engine.close()
            await recovery.close()


async def _first_nonce(exchange: Address, maker: Address) -> int:
    del exchange, maker
    return 0


async def _no_code(address: Address) -> bool:
    del address
    return False
