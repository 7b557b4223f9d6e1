"""The whole product in one process: an engine, and what serves clients beside it."""

from collections.abc import Callable
from dataclasses import dataclass

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.wallets import Wallets
from foretell.edge.auth import KeyRing
from foretell.engine.host import EngineHost
from foretell.engine.protocol.requests import CancelMatchingRequest, CancelOrdersReply
from foretell.engine.protocol.router import Shards
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.engine.writer.projection import Projection
from foretell.journal.port import Journal
from foretell.runtime.loops import Loop
from foretell.store.database import Database
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.accounts.signers import Recover
from foretell.trading.books.books import PriceSide
from foretell.trading.context import TradingContext, build_context


@dataclass(frozen=True, slots=True)
class Embedded:
    """An engine's host, and the services that ask it and hear of it."""

    host: EngineHost
    context: TradingContext

    async def start(self) -> None:
        """Replay the journal, after which clients can be served."""
        await self.host.start()
        await self.context.market_names.load(self.context.books.market_by_id)

    def loops(self) -> dict[str, Loop]:
        """Return what is to run, by name, while clients are served."""
        return self.host.loops() | self.context.loops()


def build_embedded(  # noqa: PLR0913 - the composition root calls it, once, by keywords
    *,
    deployment: Deployment,
    database: Database,
    journal: Journal,
    key_ring: KeyRing,
    chain: ChainView,
    recover: Recover,
    blob_base_url: str,
    now_ms: Callable[[], int],
    new_uuid: Callable[[], str],
    price_side: PriceSide = "taker",
) -> Embedded:
    """Return the product, not started."""

    async def cancel(request: CancelMatchingRequest) -> CancelOrdersReply:
        return await shards.cancel(request)

    engine = Engine(journal, now_ms)
    heartbeats = Heartbeats(
        database,
        cancel,
        Wallets(deployment),
        now_ms=now_ms,
        new_uuid=new_uuid,
    )
    host = EngineHost(engine, Projection(database), heartbeats)
    shards = Shards([host])
    context = build_context(
        deployment=deployment,
        database=database,
        shards=shards,
        key_ring=key_ring,
        chain=chain,
        recover=recover,
        blob_base_url=blob_base_url,
        now_ms=now_ms,
        new_uuid=new_uuid,
        price_side=price_side,
    )
    engine.subscribe(context.on_committed)
    return Embedded(host, context)
