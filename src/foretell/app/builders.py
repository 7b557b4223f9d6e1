"""Each product's services, made from what all of them stand on."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from foretell.app.clock_and_ids import new_uuid, new_word, now_ms
from foretell.app.embedded import Embedded, build_embedded
from foretell.app.keys import InstallationKeys
from foretell.app.snapshot_schedule import Schedule, Snapshots
from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.chain.sender import Sender, SenderOptions
from foretell.creation.context import CreationContext, CreationOptions
from foretell.data.context import DataContext
from foretell.discovery.context import DiscoveryContext
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.values.hexadecimal import Address
from foretell.edge.auth import KeyRing
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.indexer.context import IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.journal.files.journal import FileJournal
from foretell.media.blobs import BlobStore
from foretell.media.images import ImageNormalizer, ImagePolicy
from foretell.relayer.context import RelayerContext
from foretell.settings import Settings
from foretell.settlement.context import SettlementContext
from foretell.store.database import Database
from foretell.store.outbox.transactions import REGISTRATION, RELAYED, SETTLEMENT, TxOutbox, TxTables
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.accounts.signers import Recover


@dataclass(frozen=True)
class Resources:
    """What every product stands on."""

    settings: Settings
    vault: InstallationKeys
    deployment: Deployment
    database: Database
    rpc: Rpc

    @cached_property
    def key_ring(self) -> KeyRing:
        """What checks who calls; the products of a process share it, since it remembers keys."""
        return KeyRing(self.database, self.vault.master, [self.settings.chain_id], now_ms)

    @property
    def reader(self) -> Reader:
        """The chain's views."""
        return Reader(self.rpc, self.deployment)

    def sender(self, private_key: bytes, tables: TxTables) -> Sender:
        """Return the queue of one account; each product has an account of its own."""
        options = SenderOptions(self.deployment.chain_id, self.settings.confirmations)
        return Sender(self.rpc, private_key, TxOutbox(self.database, tables), options, now_ms)


class TradingParts(NamedTuple):
    """The product with its engine, the engine's eyes on the tables, and what keeps its start short."""

    trading: Embedded
    feed: ChainFeed
    snapshots: Snapshots


def chain_view(ground: Resources) -> ChainView:
    """Return what trading asks of the chain when orders come in."""
    reader = ground.reader

    async def fetch_nonce(exchange: Address, maker: Address) -> int:
        return await reader.exchange_nonce(maker, exchange)

    async def fetch_has_code(address: Address) -> bool:
        return bool(await reader.code(address))

    return ChainView(fetch_nonce, fetch_has_code)


def build_trading(ground: Resources, recover: Recover) -> TradingParts:
    """Return trading; nothing of it is started."""
    journal = FileJournal(ground.settings.data / "journal")
    trading = build_embedded(
        deployment=ground.deployment,
        database=ground.database,
        journal=journal,
        key_ring=ground.key_ring,
        chain=chain_view(ground),
        recover=recover,
        blob_base_url=ground.settings.blob_base_url,
        now_ms=now_ms,
        new_uuid=new_uuid,
    )
    feed = ChainFeed(
        trading.host.engine,
        ground.database,
        trading.context.exchanges,
        ground.settings.confirmations,
    )
    projection, schedule = trading.host.projection, Schedule.of(ground.settings)
    snapshots = Snapshots(journal, lambda: projection.sequence, schedule)
    return TradingParts(trading, feed, snapshots)


def build_creation(ground: Resources) -> CreationContext:
    """Return market creation."""
    settings = ground.settings
    return CreationContext(
        database=ground.database,
        deployment=ground.deployment,
        reader=ground.reader,
        registrar=ground.sender(ground.vault.registrar, REGISTRATION),
        images=ImageNormalizer(ImagePolicy()),
        blobs=BlobStore(settings.data / "blobs"),
        storage_key=ground.vault.storage,
        options=CreationOptions(
            confirmations=settings.confirmations,
            ticks_per_one=settings.market_ticks_per_one,
            size_units_min=settings.market_size_units_min,
            may_store_locally=settings.stores_locally,
        ),
        now_ms=now_ms,
        new_uuid=new_uuid,
        new_word=new_word,
    )


def build_relayer(ground: Resources) -> RelayerContext:
    """Return the relayer."""
    return RelayerContext(
        database=ground.database,
        deployment=ground.deployment,
        reader=ground.reader,
        sender=ground.sender(ground.vault.relayer, RELAYED),
        key_ring=ground.key_ring,
        now_ms=now_ms,
        new_uuid=new_uuid,
    )


def build_settlement(ground: Resources) -> SettlementContext:
    """Return settlement."""
    operator = ground.sender(ground.vault.operator, SETTLEMENT)
    return SettlementContext(ground.database, operator, now_ms)


def build_indexer(ground: Resources) -> IndexerContext:
    """Return the indexer."""
    deployment = ground.deployment
    return IndexerContext(
        database=ground.database,
        reader=ground.reader,
        logs=LogReader(ground.rpc, deployment.kind_by_contract()),
        contracts=IndexedContracts.of(deployment),
        start_block=deployment.start_block,
    )


def build_data(ground: Resources) -> DataContext:
    """Return the data API."""
    return DataContext(ground.database, ground.settings.blob_base_url, now_ms)


def build_discovery(ground: Resources) -> DiscoveryContext:
    """Return the discovery API."""
    return DiscoveryContext(ground.database, ground.settings.blob_base_url, now_ms)
