"""Trading built from its parts: an engine, the product that serves clients, or both in one process.

The product and the engines may run in one process or in several; each form is built here, so that every
part is given what it needs in one place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretell.app.clock_and_ids import monotonic_ms
from foretell.app.running import DEFAULT_LOGS, LogOptions
from foretell.app.tables_process.client import RemoteTables
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.values.sharding import ALONE, ShardPlace
from foretell.edge.auth import KeyRing
from foretell.engine.allocations.client import AllocationClient
from foretell.engine.host import EngineHost
from foretell.engine.protocol.client import RemoteShard
from foretell.engine.protocol.requests import CancelMatchingRequest, CancelOrdersReply
from foretell.engine.protocol.router import Shards
from foretell.engine.settlement_lag import LAG_REFUSED_S
from foretell.engine.writer.chain_lag import ChainLag
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.engine.writer.projection import Projection
from foretell.engine.writer.tables import Tables
from foretell.journal.port import Journal
from foretell.runtime.loops import Loop
from foretell.store.database import Database
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.accounts.revocations import Revocations
from foretell.trading.accounts.signers import Recover
from foretell.trading.books.books import PriceSide
from foretell.trading.context import TradingContext, build_context

MakeTables = Callable[[Database, str, Journal], Tables]
"""Makes the tables that follow a journal, by their database and the name of their reader."""


def tables_here(database: Database, name: str, journal: Journal) -> Tables:
    """Return tables that are written in this process."""
    del journal
    return Projection(database, name)


def tables_in_child(
    database: Database, name: str, journal: Journal, logs: LogOptions = DEFAULT_LOGS
) -> Tables:
    """Return tables that a child process writes, which logs so."""
    return RemoteTables(database, name, journal.address, logs=logs)


@dataclass(frozen=True, slots=True)
class EmbeddedTrading:
    """Trading in one process: the host of its engine, and the context of its handlers."""

    host: EngineHost
    context: TradingContext

    async def start(self) -> None:
        """Replay the journal, after which clients can be served."""
        await self.host.start()
        await self.context.market_names.load(self.context.books.market_by_id)

    def loops(self) -> dict[str, Loop]:
        """Return what is to run, by name, while clients are served."""
        return self.host.loops() | self.context.loops()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """The parts of an engine's host."""

    deployment: Deployment
    database: Database
    now_ms: Callable[[], int]
    new_uuid: Callable[[], str]
    elapsed_ms: Callable[[], int] = monotonic_ms
    """The time that has passed since any moment; nobody sets it."""
    make_tables: MakeTables = tables_here
    chain_lag: ChainLag | None = None
    settlement_lag_s_max: int = LAG_REFUSED_S

    def host(
        self,
        engine: Engine,
        others: Sequence[RemoteShard] = (),
        place: ShardPlace = ALONE,
        allocations: AllocationClient | None = None,
    ) -> EngineHost:
        """Return the host of an engine, not started.

        Orders of keys without heartbeats are canceled here and at the other engines named.
        """

        async def cancel(request: CancelMatchingRequest) -> CancelOrdersReply:
            return await Shards([host, *others]).cancel(request)

        heartbeats = Heartbeats(
            self.database,
            cancel,
            Wallets(self.deployment),
            now_ms=self.now_ms,
            elapsed_ms=self.elapsed_ms,
            new_uuid=self.new_uuid,
        )
        tables = self.make_tables(self.database, place.name, engine.journal)
        host = EngineHost(
            engine, tables, heartbeats, allocations, self.chain_lag, self.settlement_lag_s_max
        )
        return host


@dataclass(frozen=True, slots=True, kw_only=True)
class TradingParts(EngineParts):
    """The parts of trading, for one process or several."""

    key_ring: KeyRing
    chain: ChainView
    recover: Recover
    blob_base_url: str
    price_side: PriceSide = "taker"
    revocations: Revocations | None = None
    sports_delay_s: int = 0

    def context(self, shards: Shards) -> TradingContext:
        """Return the context of handlers that send requests to these engines."""
        return build_context(
            deployment=self.deployment,
            database=self.database,
            shards=shards,
            key_ring=self.key_ring,
            chain=self.chain,
            recover=self.recover,
            blob_base_url=self.blob_base_url,
            now_ms=self.now_ms,
            new_uuid=self.new_uuid,
            price_side=self.price_side,
            revocations=self.revocations,
            sports_delay_s=self.sports_delay_s,
        )

    def embedded(self, journal: Journal) -> EmbeddedTrading:
        """Return trading with the only engine in the same process, not started."""
        engine = Engine(journal, self.now_ms)
        host = self.host(engine)
        context = self.context(Shards([host]))
        engine.subscribe(context.on_committed)
        return EmbeddedTrading(host, context)
