"""What the trading API's handlers need, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from foretell.domain.deployment import Deployment
from foretell.domain.hexadecimal import Address
from foretell.edge.auth import KeyRing
from foretell.store.database import Database
from foretell.trading.accounts import FetchHasCode, FetchNonce, OrderNonces, Wallets
from foretell.trading.board import Board
from foretell.trading.catalogue import Catalogue
from foretell.trading.engine import Engine
from foretell.trading.heartbeats import Heartbeats
from foretell.trading.projection import Projection
from foretell.trading.signers import Signers
from foretell.trading.streams import Streams

PriceSide = Literal["taker", "book"]
"""What the side of GET /price means: what one who takes pays or gets, or the side of the book."""


@dataclass(frozen=True, slots=True)
class TradingServices:
    """One shard's engine, what is durable of it, and who may call."""

    deployment: Deployment
    database: Database
    engine: Engine
    projection: Projection
    key_ring: KeyRing
    board: Board
    catalogue: Catalogue
    streams: Streams
    signers: Signers
    wallets: Wallets
    nonces: OrderNonces
    heartbeats: Heartbeats
    fetch_has_code: FetchHasCode
    price_side: PriceSide
    blob_base_url: str
    now_ms: Callable[[], int]

    @property
    def exchanges(self) -> tuple[Address, ...]:
        """Every exchange that settles trades of this installation."""
        return (self.deployment.exchange,)


@dataclass(frozen=True, slots=True)
class ChainView:
    """What is asked of the chain when orders come in."""

    fetch_nonce: FetchNonce
    fetch_has_code: FetchHasCode


def build_services(  # noqa: PLR0913 - the composition root calls it, once, by keywords
    *,
    deployment: Deployment,
    database: Database,
    engine: Engine,
    projection: Projection,
    key_ring: KeyRing,
    chain: ChainView,
    blob_base_url: str,
    now_ms: Callable[[], int],
    new_uuid: Callable[[], str],
    price_side: PriceSide = "taker",
) -> TradingServices:
    """Return the services, listening to the engine; start the engine after this, not before."""
    board = Board(deployment.exchange)
    catalogue = Catalogue(database)
    wallets = Wallets(deployment)
    streams = Streams(
        board=board,
        catalogue=catalogue,
        wallets=wallets,
        key_ring=key_ring,
        now_ms=now_ms,
        new_uuid=new_uuid,
    )
    for hearer in (projection.hear, board.hear, streams.hear):
        engine.hear(hearer)
    return TradingServices(
        deployment=deployment,
        database=database,
        engine=engine,
        projection=projection,
        key_ring=key_ring,
        board=board,
        catalogue=catalogue,
        streams=streams,
        signers=Signers(deployment.profiles, deployment.chain_id),
        wallets=wallets,
        nonces=OrderNonces(chain.fetch_nonce, now_ms),
        heartbeats=Heartbeats(database, engine, wallets, now_ms=now_ms, new_uuid=new_uuid),
        fetch_has_code=chain.fetch_has_code,
        price_side=price_side,
        blob_base_url=blob_base_url,
        now_ms=now_ms,
    )
