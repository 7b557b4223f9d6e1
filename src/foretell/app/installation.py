"""One process of an installation: its roles built once, started in order, stopped in reverse.

`foretell up` runs all roles in one process with a chain of its own; `foretell serve` runs chosen roles. If a
loop ends that must not end, the process logs it and stops.
"""

import asyncio
import socket
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from foretell.app.api_server import Access, ApiServer
from foretell.app.builders import Resources, own_origins
from foretell.app.clock_and_ids import monotonic_ms, new_uuid
from foretell.app.gateway import bind
from foretell.app.keys import open_keys
from foretell.app.lifetime import Lifetime
from foretell.app.metrics_server import MetricsServer
from foretell.app.origin import check_origin, check_shards, watch_node
from foretell.app.products import PRODUCT_BY_ROLE
from foretell.app.roles import ALL_ROLES, SHARDED_ROLES, KeyName, Role, keys_of, prefixes_of
from foretell.chain.deploy import deploy, load_deployment
from foretell.chain.devchain import DevChain, DevChainOptions, find_anvil
from foretell.chain.node_check import NodeCheck
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox.plan import sandbox_plan
from foretell.domain.contracts.deployment import Deployment, check_usable
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.errors.command import ComponentStopped
from foretell.domain.errors.families import ForetellError
from foretell.domain.values.sharding import ShardNumber
from foretell.edge.shared_limits import SharedLimits
from foretell.runtime.child_processes import RestartBackoff, supervise
from foretell.runtime.garbage_collection import collect_when_idle
from foretell.runtime.loops import Loop, run_together
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.identity import load_key_epoch
from foretell.store.migrations import upgrade

CHAIN_RESTARTS: Final = RestartBackoff(first_s=1.0)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ParentProcess:
    """The process that keeps this one running, has its folder locked and may have its port bound."""

    listener: int | None = None
    """The number of the inherited socket of the port."""


class Installation:
    """The roles of one process, and what they share."""

    def __init__(
        self,
        settings: Settings,
        roles: Collection[Role] = ALL_ROLES,
        *,
        shard: int = 0,
        parent: ParentProcess | None = None,
        chain_restarts: RestartBackoff = CHAIN_RESTARTS,
    ) -> None:
        self._settings = settings
        self._roles = frozenset(roles)
        self._shard = shard
        self._parent = parent
        self._chain_restarts = chain_restarts
        self._lifetime = Lifetime()
        self._loop_by_name: dict[str, Loop] = {"garbage collection": collect_when_idle}
        self._is_stopping = False
        self._has_folder = parent is not None
        self.deployment: Deployment | None = None
        self.metrics: MetricsServer | None = None
        self.api: ApiServer | None = None
        if prefix_by_role := prefixes_of(self._roles):
            self.api = ApiServer(
                prefix_by_role,
                settings.base_url,
                settings.host,
                settings.port,
                Access(
                    settings.origins
                    | (own_origins(settings) if Role.WEB in self._roles else set()),
                    settings.limits,
                    settings.connections_per_address_max,
                    has_metrics=settings.metrics_port is None,
                ),
            )

    def take_folder(self) -> None:
        """Keep other processes out of the data folder, or refuse; `start` does so if need be."""
        if not self._has_folder:
            self._lifetime.take_folder(self._settings.data)
            self._has_folder = True

    async def start(self) -> None:
        """Start everything, and return when the APIs answer; until then they refuse requests.

        A child process does not answer before it is ready, so that another worker on the same port does.
        """
        async with self._lifetime.starting():
            self.take_folder()
            if self._parent is None:
                await self._serve()
            resources = await self._acquire_resources()
            await self._build(resources)
            if self._parent is not None:
                await self._serve()
            self._lifetime.run(self._run())
            self._lifetime.closing.push_async_callback(self._finish_serving)

    def reload_limits(self) -> None:
        """Apply the rate limits that the settings have now; invalid settings change nothing."""
        if self.api is None:
            return
        try:
            limits = Settings().limits
        except ValueError as error:
            log.error("settings are invalid, the rate limits stay", cause=str(error))  # noqa: TRY400 - no fault
            return
        self.api.change_limits(limits)
        log.warning("rate limits read again")

    async def wait(self) -> None:
        """Return when something that must not end has ended, raising what ended it."""
        await self._lifetime.wait()

    async def stop(self) -> None:
        """Stop everything, the APIs first, the chain last."""
        await self._lifetime.stop()

    async def _acquire_resources(self) -> Resources:
        settings, closing = self._settings, self._lifetime.closing
        keys = open_keys(settings, keys_of(self._roles))
        rpc = await closing.enter_async_context(Rpc(await self._rpc_url(), settings.chain_id))
        node = NodeCheck(rpc)
        self.deployment = await self._deployment(node)
        database = await closing.enter_async_context(
            Database(settings.database, settings.public_reads)
        )
        await upgrade(database)
        if self._roles & SHARDED_ROLES:
            await check_shards(database, settings)
        shard, epoch = ShardNumber(self._shard), await load_key_epoch(database, new_uuid())
        resources = Resources(
            settings,
            keys,
            self.deployment,
            database,
            node.checked_rpc,
            shard,
            epoch,
            len(self._roles) > 1,
        )
        await resources.revocations.restore(database)
        await resources.revocations.compact()
        await check_origin(resources, node, has_master_key=KeyName.MASTER in keys_of(self._roles))
        self._loop_by_name["check of the node"] = partial(watch_node, resources, node)
        return resources

    async def _rpc_url(self) -> str:
        """Return the address of the node; the sandbox starts a chain of its own."""
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
                pulse_s=settings.chain_block_s,
            )
        )
        await chain.start()
        self._lifetime.closing.push_async_callback(chain.stop)
        self._loop_by_name["chain"] = partial(supervise, "chain", chain, self._chain_restarts)
        return chain.rpc_url

    async def _deployment(self, node: NodeCheck) -> Deployment:
        settings = self._settings
        if settings.is_sandbox:
            plan = sandbox_plan(settings.npm_folder)
            deployed = await deploy(node.rpc, plan, settings.deployment_file)
            node.is_fit = True
            return deployed
        deployment = load_deployment(settings.deployment_file)
        if deployment is None:
            raise InvalidDeployment(
                f"{settings.deployment_file} does not exist; run foretell deploy"
            )
        check_usable(deployment, settings.chain_id)
        await node.check_fit(deployment)
        return deployment

    async def _build(self, resources: Resources) -> None:
        """Build every role of this process, then open the APIs."""
        products = {
            role: await kind.build(resources, self._lifetime.closing)
            for role, kind in PRODUCT_BY_ROLE.items()
            if role in self._roles
        }
        if self.api is not None and not self._settings.is_embedded:
            shared = SharedLimits(resources.database, new_uuid(), monotonic_ms)
            self.api.share_limits(shared)
            self._loop_by_name["rate leases"] = shared.run
        for role, product in products.items():
            self._loop_by_name |= product.loops
            if product.app is not None:
                assert self.api is not None, "a role with an application has a path"
                self.api.open(role, product.app, product.fast_routes)

    async def _serve(self) -> None:
        """Answer at the port, if this process serves an API."""
        if self.api is None:
            return
        self._lifetime.closing.push_async_callback(self._finish_serving)
        self._loop_by_name["server"] = self.api.wait
        await self.api.start(self._listener())
        if self._settings.metrics_port is not None:
            is_worker = self._parent is not None
            self.metrics = MetricsServer(self._settings.metrics_port, is_shared=is_worker)
            self._lifetime.closing.push_async_callback(self.metrics.finish)
            self._loop_by_name["metrics server"] = self.metrics.wait
            await self.metrics.start()

    def _listener(self) -> socket.socket:
        if self._parent is not None and self._parent.listener is not None:
            return socket.socket(fileno=self._parent.listener)
        return bind(self._settings.host, self._settings.port, "FORETELL_PORT")

    async def _run(self) -> None:
        await run_together(
            [partial(self._run_loop, name, loop) for name, loop in self._loop_by_name.items()]
        )

    async def _run_loop(self, name: str, loop: Loop) -> None:
        try:
            await loop()
        except asyncio.CancelledError:
            raise
        except (ForetellError, OSError) as error:
            log.error("component failed", part=name, cause=str(error))  # noqa: TRY400 - no fault of ours
            raise
        except Exception:
            log.exception("component failed", part=name)
            raise
        if not self._is_stopping:
            raise ComponentStopped(name)

    async def _finish_serving(self) -> None:
        """Let the server answer the requests that it has accepted; then the loops may end."""
        self._is_stopping = True
        if self.api is not None:
            await self.api.finish()
