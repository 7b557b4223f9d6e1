"""One running installation: every part built once, started in order, stopped in reverse.

`foretell up` runs all roles in one process with a chain of its own; `foretell serve` runs the roles
that it is told. If a loop that must not end does end, everything stops, loudly.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from foretell.app.builders import (
    Resources,
    build_creation,
    build_data,
    build_discovery,
    build_indexer,
    build_relayer,
    build_settlement,
    build_trading,
)
from foretell.app.clock_and_ids import numbered_ids
from foretell.app.engine_processes import build_asking, kept_engines, lead_shard, lead_treasury
from foretell.app.gateway import Gateway, Server, bind, build_server
from foretell.app.http.fast_connection import RequestLine, ServedFastRoute, served_under
from foretell.app.keys import open_keys
from foretell.app.lifetime import Lifetime
from foretell.app.roles import ALL_ROLES, KEYS_BY_ROLE, PREFIX_BY_ROLE, Role
from foretell.app.signer_recovery.client import Recovery
from foretell.app.unavailable import UnavailableApp
from foretell.chain.deploy import deploy, load_deployment
from foretell.chain.devchain import DevChain, DevChainOptions, find_anvil
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.chain.sandbox_plan import sandbox_plan
from foretell.creation import routes as creation_routes
from foretell.creation import worker as creation_worker
from foretell.data import routes as data_routes
from foretell.discovery import routes as discovery_routes
from foretell.domain.contracts.deployment import Deployment, check_usable
from foretell.domain.errors.chain import ChainUnavailable, DeploymentUnfit, WrongChain
from foretell.domain.errors.command import PartEnded
from foretell.domain.values.sharding import ShardNumber
from foretell.edge.fast_route import FastRoute, Route
from foretell.edge.telemetry import AsgiApp, Telemetry
from foretell.indexer import worker as indexer_worker
from foretell.relayer import routes as relayer_routes
from foretell.relayer import worker as relayer_worker
from foretell.settings import Settings
from foretell.settlement import worker as settlement_worker
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.trading.context import TradingContext
from foretell.trading.routes import app as trading_routes
from foretell.trading.routes.fast_path import fast_routes

CHAIN_RESTART_S: Final = 1.0
START_LOOK_S: Final = 0.01
STOP_DEADLINE_S: Final = 10.0

log = structlog.get_logger(__name__)

Loop = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ParentProcess:
    """Of a process that others keep running: who began it holds the folder, and maybe the port."""

    listener: int | None = None


class Installation:
    """The parts of one process."""

    def __init__(
        self,
        settings: Settings,
        roles: Collection[Role] = ALL_ROLES,
        *,
        shard: int = 0,
        membership: ParentProcess | None = None,
    ) -> None:
        self._settings = settings
        self._roles = frozenset(roles)
        self._shard = shard
        self._membership = membership
        self._lifetime = Lifetime()
        self._app_by_role: dict[Role, AsgiApp] = {}
        self._fast_routes_by_role: dict[Role, Mapping[Route, FastRoute]] = {}
        self._loop_by_name: dict[str, Loop] = {}
        self._is_stopping = False
        self._served_roles = [role for role in PREFIX_BY_ROLE if role in self._roles]
        self._app_by_prefix: dict[str, AsgiApp] = {
            self._prefix(role): UnavailableApp(role) for role in self._served_roles
        }
        self._lanes: dict[RequestLine, ServedFastRoute] = {}
        self._server: Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._has_folder = membership is not None
        self.deployment: Deployment | None = None

    def take_folder(self) -> None:
        """Keep other processes out of the data folder, or refuse; `start` does so if nobody did."""
        if not self._has_folder:
            self._lifetime.take_folder(self._settings.data)
            self._has_folder = True

    async def start(self) -> None:
        """Start everything, and return when the APIs answer; until then they say that they will."""
        async with self._lifetime.starting():
            self.take_folder()
            if self._membership is None:
                await self._serve()
            ground = await self._lay_ground()
            await self._build(ground)
            self._open()
            if self._membership is not None:
                await self._serve()
            self._lifetime.run(self._run())
            self._lifetime.closing.push_async_callback(self._finish_serving)

    async def wait(self) -> None:
        """Return when something that must not end has ended, raising what ended it."""
        await self._lifetime.wait()

    async def stop(self) -> None:
        """Stop everything, the APIs first, the chain last."""
        await self._lifetime.stop()

    async def _lay_ground(self) -> Resources:
        settings = self._settings
        needed = {key for role in self._roles for key in KEYS_BY_ROLE.get(role, ())}
        vault = open_keys(settings, sorted(needed))
        rpc = await self._lifetime.closing.enter_async_context(Rpc(await self._rpc_url()))
        self.deployment = deployment = await self._deployment(rpc)
        database = await self._lifetime.closing.enter_async_context(Database(settings.database))
        await upgrade(database)
        return Resources(settings, vault, deployment, database, rpc)

    async def _rpc_url(self) -> str:
        settings = self._settings
        if settings.rpc_url is not None:
            return settings.rpc_url.get_secret_value()
        bind("127.0.0.1", settings.chain_port, "FORETELL_CHAIN_PORT").close()
        chain = DevChain(
            DevChainOptions(
                anvil=find_anvil(settings.anvil, settings.npm_folder),
                folder=settings.data.absolute() / "chain",
                chain_id=settings.chain_id,
                port=settings.chain_port,
            )
        )
        await chain.start()
        self._lifetime.closing.push_async_callback(chain.stop)
        self._loop_by_name["chain"] = lambda: _keep(chain)
        return chain.rpc_url

    async def _deployment(self, rpc: Rpc) -> Deployment:
        settings = self._settings
        if settings.is_sandbox:
            return await deploy(rpc, sandbox_plan(settings.npm_folder), settings.deployment_file)
        deployment = load_deployment(settings.deployment_file)
        if deployment is None:
            raise DeploymentUnfit(f"{settings.deployment_file} is not there; run foretell deploy")
        check_usable(deployment, settings.chain_id)
        await _check_node(rpc, settings.chain_id)
        return deployment

    async def _build(self, ground: Resources) -> None:
        """Build the products of this process, upstream first."""
        if Role.INDEXER in self._roles:
            indexer = build_indexer(ground)
            self._loop_by_name["indexer"] = lambda: indexer_worker.run(indexer)
        if self._roles & {Role.TRADING, Role.ENGINE, Role.TREASURY}:
            await self._build_trading(ground)
        if Role.SETTLEMENT in self._roles:
            settlement = build_settlement(ground)
            self._loop_by_name["settlement"] = lambda: settlement_worker.run(settlement)
        if Role.RELAYER in self._roles:
            relayer = build_relayer(ground)
            self._app_by_role[Role.RELAYER] = relayer_routes.build_app(relayer)
            self._loop_by_name["relayer"] = lambda: relayer_worker.run(relayer)
        if Role.CREATION in self._roles:
            creation = build_creation(ground)
            self._app_by_role[Role.CREATION] = creation_routes.build_app(creation)
            self._loop_by_name["creation"] = lambda: creation_worker.run(creation)
        if Role.DATA in self._roles:
            self._app_by_role[Role.DATA] = data_routes.build_app(build_data(ground))
        if Role.DISCOVERY in self._roles:
            discovery = build_discovery(ground)
            self._app_by_role[Role.DISCOVERY] = discovery_routes.build_app(discovery)

    async def _build_trading(self, ground: Resources) -> None:
        led = []
        if Role.ENGINE in self._roles:
            led.append(await lead_shard(ground, ShardNumber(self._shard)))
        if Role.TREASURY in self._roles:
            led.append(await lead_treasury(ground))
        for each in led:
            self._lifetime.closing.push_async_callback(each.close)
            self._loop_by_name |= each.loops
        if Role.TRADING not in self._roles:
            return
        recovery = Recovery()
        await recovery.start()
        self._lifetime.closing.push_async_callback(recovery.close)
        self._loop_by_name["recovery"] = recovery.run
        if ground.settings.shards:
            if ground.settings.is_sandbox:
                url = f"http://127.0.0.1:{ground.settings.chain_port}"
                self._loop_by_name |= kept_engines(ground, url)
            asking = build_asking(ground, recovery.recover)
            self._answer_traders(asking.context)
            self._loop_by_name |= asking.loops
            return
        trading, feed, snapshots = build_trading(ground, recovery.recover)
        self._lifetime.closing.push_async_callback(trading.host.engine.close)
        await trading.start()
        self._answer_traders(trading.context)
        self._loop_by_name |= trading.loops()
        self._loop_by_name["feed"] = feed.run
        self._loop_by_name["snapshots"] = snapshots.run

    def _answer_traders(self, context: TradingContext) -> None:
        self._app_by_role[Role.TRADING] = trading_routes.build_app(context)
        self._fast_routes_by_role[Role.TRADING] = fast_routes(context)

    async def _serve(self) -> None:
        """Answer at the port, if there is an API; one of another process has its port from there."""
        if not self._served_roles:
            return
        settings = self._settings
        gateway = Gateway(self._app_by_prefix, settings.base_url)
        self._server = build_server(gateway, settings.host, settings.port, self._lanes)
        serving = asyncio.create_task(self._server.serve([self._listener()]), name="server")
        self._serving = serving
        self._lifetime.closing.push_async_callback(self._finish_serving)
        self._loop_by_name["server"] = self._watch_server
        while not self._server.started:
            if serving.done():
                await serving
            await asyncio.sleep(START_LOOK_S)

    def _prefix(self, role: Role) -> str:
        return "" if len(self._served_roles) == 1 else PREFIX_BY_ROLE[role]

    def _open(self) -> None:
        """Let the APIs answer that were built."""
        for role, app in self._app_by_role.items():
            prefix = self._prefix(role)
            telemetry = self._app_by_prefix[prefix] = Telemetry(app, role, numbered_ids())
            self._lanes |= served_under(prefix, self._fast_routes_by_role.get(role, {}), telemetry)

    def _listener(self) -> socket.socket:
        if self._membership is not None and self._membership.listener is not None:
            return socket.socket(fileno=self._membership.listener)
        return bind(self._settings.host, self._settings.port, "FORETELL_PORT")

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name, loop in self._loop_by_name.items():
                group.create_task(self._run_part(name, loop), name=name)

    async def _run_part(self, name: str, loop: Loop) -> None:
        try:
            await loop()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a part of the installation broke down", part=name)
            raise
        if not self._is_stopping:
            raise PartEnded(name)

    async def _watch_server(self) -> None:
        assert self._server is not None
        assert self._serving is not None
        await asyncio.shield(self._serving)

    async def _finish_serving(self) -> None:
        """Let the server finish what it has begun; then the loops may end."""
        self._is_stopping = True
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await asyncio.wait({self._serving}, timeout=STOP_DEADLINE_S)
            self._serving.cancel()


async def _check_node(rpc: Rpc, chain_id: int) -> None:
    """Refuse a node of another chain; one that does not answer now may do so later."""
    with contextlib.suppress(ChainUnavailable):
        seen = quantity_of(await rpc.call("eth_chainId"), "eth_chainId")
        if seen != chain_id:
            raise WrongChain(seen, chain_id)


async def _keep(chain: DevChain) -> None:
    """Start the dev chain again whenever it ends by itself; its state is kept."""
    while True:
        code = await chain.wait()
        log.error("the chain ended and is started again", code=code)
        await chain.stop()
        await asyncio.sleep(CHAIN_RESTART_S)
        await chain.start()
