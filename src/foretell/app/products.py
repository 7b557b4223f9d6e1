"""The products of a process: for each role its application and its loops, upstream products first."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.app.builders import (
    Resources,
    build_creation,
    build_data,
    build_discovery,
    build_embedded_engine,
    build_indexer,
    build_listings,
    build_rankings,
    build_relayer,
    build_web,
    settlement_begin,
)
from foretell.app.engine_processes import (
    RunningEngine,
    lead_shard,
    lead_treasury,
    supervised_engines,
)
from foretell.app.origin import check_journal
from foretell.app.read_process.application import DearReadsApplication
from foretell.app.read_process.client import NAME as DEAR_READS_NAME
from foretell.app.remote_trading import build_remote_trading
from foretell.app.roles import Role
from foretell.app.settlement_process.client import SettlementProcess
from foretell.app.settlement_process.context import build_settlement
from foretell.app.signer_recovery.client import SignerRecovery
from foretell.app.unavailable import BodyOf, UnavailableApp
from foretell.creation import routes as creation_routes
from foretell.creation import worker as creation_worker
from foretell.creation.refusals import worker_body
from foretell.data import routes as data_routes
from foretell.data.dear_reads import DEAR_READS as DATA_DEAR_READS
from foretell.data.refusals import data_body
from foretell.discovery import routes as discovery_routes
from foretell.discovery.dear_reads import DEAR_READS as DISCOVERY_DEAR_READS
from foretell.discovery.refusals import discovery_body
from foretell.domain.errors.exchange import EngineRestarting
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import Starting
from foretell.domain.values.sharding import ALONE
from foretell.edge.fast_route import FastRoute, Route
from foretell.edge.telemetry import AsgiApp
from foretell.indexer import listings as indexer_listings
from foretell.indexer import rankings as indexer_rankings
from foretell.indexer import worker as indexer_worker
from foretell.relayer import routes as relayer_routes
from foretell.relayer import worker as relayer_worker
from foretell.relayer.refusals import relayer_body
from foretell.runtime.loops import Loop
from foretell.settlement import worker as settlement_worker
from foretell.trading.accounts.signers import Recover
from foretell.trading.context import TradingContext
from foretell.trading.refusals import trading_body
from foretell.trading.routes import app as trading_routes
from foretell.trading.routes.fast_path import fast_routes
from foretell.web import routes as web_routes
from foretell.web.refusals import web_body

NO_LOOPS: Final[Mapping[str, Loop]] = MappingProxyType({})
NO_ROUTES: Final[Mapping[Route, FastRoute]] = MappingProxyType({})


class Product(NamedTuple):
    """One role of a process: its loops and, if it serves an API, its application and fast routes."""

    loops: Mapping[str, Loop] = NO_LOOPS
    app: AsgiApp | None = None
    fast_routes: Mapping[Route, FastRoute] = NO_ROUTES


BuildProduct = Callable[[Resources, contextlib.AsyncExitStack], Awaitable[Product]]
"""Returns a product that is ready to run; the exit stack releases what it acquired."""


async def indexer(resources: Resources, _closing: contextlib.AsyncExitStack) -> Product:
    """Return the indexer, and what keeps the standings of leaderboards and the totals of lists."""
    context, rankings = build_indexer(resources), build_rankings(resources)
    listings = build_listings(resources)
    return Product(
        {
            "indexer": lambda: indexer_worker.run(context),
            "rankings": lambda: indexer_rankings.run(rankings),
            "listings": lambda: indexer_listings.run(listings),
        }
    )


async def settlement(resources: Resources, _closing: contextlib.AsyncExitStack) -> Product:
    """Return settlement, in a child process where this one has other roles too.

    The child has connections of its own to the node, so it begins when the node may be used.
    """
    begin = settlement_begin(resources)
    if resources.has_other_roles:
        process = SettlementProcess(resources.database, begin, logs=resources.logs)

        async def settle() -> None:
            await resources.rpc.wait_admitted()
            await process.run()

        return Product({"settlement": settle})
    context = build_settlement(begin, resources.database, resources.rpc)
    return Product({"settlement": lambda: settlement_worker.run(context)})


async def relayer(resources: Resources, _closing: contextlib.AsyncExitStack) -> Product:
    """Return the relayer, its API and its worker."""
    context = build_relayer(resources)
    loops = {"relayer": lambda: relayer_worker.run(context)}
    return Product(loops, relayer_routes.build_app(context, resources.settings.npm_folder))


async def creation(resources: Resources, closing: contextlib.AsyncExitStack) -> Product:
    """Return market creation, its API and its worker."""
    context = build_creation(resources)
    if context.permanent_storage is not None:
        await closing.enter_async_context(context.permanent_storage)
    loops = {"creation": lambda: creation_worker.run(context)}
    return Product(loops, creation_routes.build_app(context, resources.settings.npm_folder))


async def data(resources: Resources, _closing: contextlib.AsyncExitStack) -> Product:
    """Return the data API."""
    context = build_data(resources)
    app = data_routes.build_app(context, resources.settings.npm_folder)
    reads = resources.dear_reads
    dear = DearReadsApplication(app, Role.DATA, DATA_DEAR_READS, reads, data_body)
    return Product({"solvency": context.solvency.run, DEAR_READS_NAME: reads.run}, dear)


async def discovery(resources: Resources, _closing: contextlib.AsyncExitStack) -> Product:
    """Return the discovery API."""
    app = discovery_routes.build_app(build_discovery(resources), resources.settings.npm_folder)
    reads = resources.dear_reads
    dear = DearReadsApplication(app, Role.DISCOVERY, DISCOVERY_DEAR_READS, reads, discovery_body)
    return Product({DEAR_READS_NAME: reads.run}, dear)


async def web(resources: Resources, _closing: contextlib.AsyncExitStack) -> Product:
    """Return the web app."""
    return Product(app=web_routes.build_app(build_web(resources)))


async def engine(resources: Resources, closing: contextlib.AsyncExitStack) -> Product:
    """Return the engine of this process's shard, once it leads."""
    return _running(await lead_shard(resources, resources.shard), closing)


async def treasury(resources: Resources, closing: contextlib.AsyncExitStack) -> Product:
    """Return the treasury, once it leads."""
    return _running(await lead_treasury(resources), closing)


def _running(engine: RunningEngine, closing: contextlib.AsyncExitStack) -> Product:
    closing.push_async_callback(engine.close)
    return Product(engine.loops)


async def trading(resources: Resources, closing: contextlib.AsyncExitStack) -> Product:
    """Return trading: with its engine, or with engines in other processes if there are shards."""
    recovery = SignerRecovery()
    await recovery.start()
    closing.push_async_callback(recovery.close)
    build = _with_remote_engines if resources.settings.shards else _with_embedded_engine
    context, loops = await build(resources, recovery.submit, closing)
    loops = {"signer recovery": recovery.run, **loops}
    return Product(
        loops,
        trading_routes.build_app(context, resources.settings.npm_folder),
        fast_routes(context),
    )


async def _with_embedded_engine(
    resources: Resources, recover: Recover, closing: contextlib.AsyncExitStack
) -> tuple[TradingContext, dict[str, Loop]]:
    embedded, feed, snapshots = build_embedded_engine(resources, recover)
    closing.push_async_callback(embedded.host.close)
    data, database = resources.settings.data, resources.database
    await check_journal(database, data, ALONE.name, embedded.host.engine.journal)
    await embedded.start()
    loops = {**embedded.loops(), "feed": feed.run, "snapshots": snapshots.run}
    return embedded.context, loops


async def _with_remote_engines(
    resources: Resources, recover: Recover, _closing: contextlib.AsyncExitStack
) -> tuple[TradingContext, dict[str, Loop]]:
    """Return trading that asks engines; the sandbox keeps its engines running, too."""
    remote, settings = build_remote_trading(resources, recover), resources.settings
    engines: Mapping[str, Loop] = NO_LOOPS
    if settings.is_sandbox:
        engines = supervised_engines(resources, settings.devchain_url)
    return remote.context, {**engines, **remote.loops}


class ProductKind(NamedTuple):
    """How a role is built, and how its API, if it serves one, refuses requests until it is open."""

    build: BuildProduct
    body_of: BodyOf | None = None
    starting: ForetellError = Starting()

    @property
    def body(self) -> BodyOf:
        """The bodies of the API's refusals."""
        assert self.body_of is not None, "the role serves no API"
        return self.body_of

    def unavailable_app(self) -> UnavailableApp:
        """Return the application of the API until it is open."""
        return UnavailableApp(self.body, self.starting)


PRODUCT_BY_ROLE: Final[Mapping[Role, ProductKind]] = MappingProxyType(
    {
        Role.INDEXER: ProductKind(indexer),
        Role.ENGINE: ProductKind(engine),
        Role.TREASURY: ProductKind(treasury),
        Role.TRADING: ProductKind(trading, trading_body, EngineRestarting()),
        Role.SETTLEMENT: ProductKind(settlement),
        Role.RELAYER: ProductKind(relayer, relayer_body),
        Role.CREATION: ProductKind(creation, worker_body),
        Role.DATA: ProductKind(data, data_body),
        Role.DISCOVERY: ProductKind(discovery, discovery_body),
        Role.WEB: ProductKind(web, web_body),
    }
)
"""The product of each role, in the order in which a process builds its roles."""
