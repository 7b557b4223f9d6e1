"""The context of each product, built from the resources that all products share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from typing import NamedTuple

from foretell.app.chain_reads import ChainReads
from foretell.app.clock_and_ids import new_key, new_uuid, new_word, now_ms
from foretell.app.embedded import EmbeddedTrading, EngineParts, TradingParts, tables_in_child
from foretell.app.journals import embedded_journal_folder
from foretell.app.keys import InstallationKeys
from foretell.app.read_process.client import DearReads
from foretell.app.read_process.messages import BeginReads
from foretell.app.running import LogOptions
from foretell.app.settlement_process.messages import BeginSettlement
from foretell.app.snapshot_schedule import Schedule, Snapshots
from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.chain.sender import Sender, SenderOptions
from foretell.chain.views import at_block, owed_units
from foretell.chain.wallet_states import WalletStates
from foretell.creation.context import CreationContext, CreationOptions
from foretell.data.context import DataContext
from foretell.data.owed_reader import OwedReader
from foretell.data.recent_answers import RANKINGS_KEPT_S, RecentAnswers
from foretell.data.solvency_books import SolvencyBooks
from foretell.discovery.context import DiscoveryContext
from foretell.domain.contracts.deployment import Deployment, encode_deployment
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.credentials import master_key_of
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.sharding import ShardNumber
from foretell.edge.auth import KeyRing
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.chain_lag import ChainLag, LagLimits
from foretell.engine.writer.lower_head import LowerHead
from foretell.indexer.context import IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.head_clock import HeadClock
from foretell.indexer.head_watch import STILL_AFTER_S
from foretell.indexer.listings import ListingContext
from foretell.indexer.rankings import RankingContext
from foretell.indexer.wallet_reader import WalletReader
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.revocations import RevocationLog
from foretell.media.blobs import BlobStore
from foretell.media.images import ImageNormalizer, ImagePolicy
from foretell.media.storages import open_storage
from foretell.relayer.context import RelayerContext, RelayerOptions
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.identity import FIRST_EPOCH
from foretell.store.outbox.transactions import REGISTRATION, RELAYED, TxOutbox, TxTables
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.accounts.revocations import Revocations
from foretell.trading.accounts.signers import Recover
from foretell.web.build_files import read_build
from foretell.web.configuration import (
    ApiUrls,
    WebConfiguration,
    contracts_of,
    origin_of,
    policy_of,
)
from foretell.web.context import WebContext
from foretell.web.operation import OperatorView
from foretell.web.sandbox_token import kept_token
from foretell.web.sandbox_wallets import SandboxWallets


@dataclass(frozen=True)
class Resources:
    """Settings, keys and connections that the products of a process share."""

    settings: Settings
    keys: InstallationKeys
    deployment: Deployment
    database: Database
    rpc: Rpc
    shard: ShardNumber
    """The shard that this process leads, if it is an engine."""
    key_epoch: str = FIRST_EPOCH
    """The epoch of the database's API keys."""
    has_other_roles: bool = True
    """Whether the process has more than one role."""

    @property
    def logs(self) -> LogOptions:
        """How child processes log: as this one."""
        return LogOptions.of(self.settings)

    @cached_property
    def key_ring(self) -> KeyRing:
        """The check of API keys; all products of a process share its cache."""
        master_key = master_key_of(self.keys.master, self.key_epoch)
        chain_ids = [self.settings.chain_id]
        rules = self.settings.header_rules._replace(l1_contract=self.deployment.exchange)
        return KeyRing(self.database, master_key, chain_ids, now_ms, rules)

    @cached_property
    def dear_reads(self) -> DearReads:
        """The process for dear reads; the data and discovery APIs of a process share it."""
        settings, database = self.settings, self.database
        read_s = settings.public_reads.read_s
        return DearReads(
            BeginReads(database.url, settings.blob_base_url, settings.sports_delay_s, read_s),
            database.read_rests,
            logs=self.logs,
        )

    @cached_property
    def chain_lag(self) -> ChainLag:
        """The lag of this process's engine behind the chain."""
        settings = self.settings
        still_s_max = 0 if self.mines_on_demand else settings.chain_still_s_max
        return ChainLag(self.reader.head, LagLimits(settings.chain_lag_s_max, still_s_max))

    @property
    def lower_head(self) -> LowerHead | None:
        """The watch of a chain that went back, for one feed; None for a chain with regular blocks."""
        return LowerHead(self.reader.header) if self.mines_on_demand else None

    @property
    def mines_on_demand(self) -> bool:
        """Whether the chain has a block for each transaction, and none without one."""
        return self.settings.is_sandbox or self.deployment.is_sandbox

    @property
    def revocations(self) -> Revocations:
        """The revocations of API keys that the data folder remembers."""
        return Revocations(RevocationLog(self.settings.data), self.key_epoch)

    @cached_property
    def chain_reads(self) -> ChainReads:
        """The places for reads of requests; all products of a process share them."""
        return ChainReads()

    @property
    def own_rpc(self) -> Rpc:
        """The node, for reads of requests that are signed, and of loops."""
        return self.rpc.behind(self.chain_reads.own)

    @property
    def public_rpc(self) -> Rpc:
        """The node, for reads that anyone may ask for."""
        return self.rpc.behind(self.chain_reads.public)

    @property
    def reader(self) -> Reader:
        """The chain's views."""
        return Reader(self.own_rpc, self.deployment, self.public_rpc)

    def sender(self, private_key: bytes, tables: TxTables) -> Sender:
        """Return the queue of one account of a product; requests need places for what they ask the node."""
        options = SenderOptions(self.deployment.chain_id, self.settings.confirmations)
        return Sender(self.own_rpc, private_key, TxOutbox(self.database, tables), options, now_ms)

    def engine_parts(self) -> EngineParts:
        """Return the parts of an engine's host."""
        return EngineParts(
            deployment=self.deployment,
            database=self.database,
            now_ms=now_ms,
            new_uuid=new_uuid,
            make_tables=partial(tables_in_child, logs=self.logs),
            chain_lag=self.chain_lag,
            settlement_lag_s_max=self.settings.settlement_lag_s_max,
        )

    def trading_parts(self, recover: Recover) -> TradingParts:
        """Return the parts of trading."""
        return TradingParts(
            deployment=self.deployment,
            database=self.database,
            key_ring=self.key_ring,
            chain=chain_view(self),
            recover=recover,
            blob_base_url=self.settings.blob_base_url,
            now_ms=now_ms,
            new_uuid=new_uuid,
            make_tables=partial(tables_in_child, logs=self.logs),
            chain_lag=self.chain_lag,
            settlement_lag_s_max=self.settings.settlement_lag_s_max,
            revocations=self.revocations,
            sports_delay_s=self.settings.sports_delay_s,
        )


class EmbeddedEngine(NamedTuple):
    """Trading with its engine, the feed of chain state into it, and the snapshots of its journal."""

    trading: EmbeddedTrading
    feed: ChainFeed
    snapshots: Snapshots


def chain_view(resources: Resources) -> ChainView:
    """Return the chain reads that trading needs for orders."""
    reader = resources.reader

    async def fetch_nonce(exchange: Address, maker: Address) -> int:
        return await reader.exchange_nonce(maker, exchange)

    async def fetch_public_nonce(exchange: Address, maker: Address) -> int:
        return await reader.public.exchange_nonce(maker, exchange)

    async def fetch_has_code(address: Address) -> bool:
        return bool(await reader.public.code(address))

    wallets = WalletStates(resources.own_rpc, resources.deployment)
    return ChainView(fetch_nonce, fetch_has_code, wallets, fetch_public_nonce)


def build_embedded_engine(resources: Resources, recover: Recover) -> EmbeddedEngine:
    """Return trading with its engine in this process, not started."""
    settings = resources.settings
    journal = FileJournal(embedded_journal_folder(settings))
    trading = resources.trading_parts(recover).embedded(journal)
    feed = ChainFeed(
        trading.host.engine,
        resources.database,
        trading.context.exchanges,
        settings.confirmations,
        sports_delay_s=settings.sports_delay_s,
        lag=resources.chain_lag,
        lower_head=resources.lower_head,
    )
    projection, schedule = trading.host.projection, Schedule.of(settings)
    snapshots = Snapshots(journal, lambda: projection.sequence, schedule)
    return EmbeddedEngine(trading, feed, snapshots)


def own_origins(settings: Settings) -> frozenset[str]:
    """Return the origin of the web app's own pages, as clients reach them."""
    return frozenset({origin_of(settings.base_url)})


def build_web(resources: Resources) -> WebContext:
    """Return the context of the web app; in the sandbox it has wallets."""
    settings, deployment = resources.settings, resources.deployment
    apis = ApiUrls(
        trading=settings.trading_url,
        create_market=settings.create_market_url,
        relayer=settings.relayer_url,
        data=settings.data_url,
        discovery=settings.discovery_url,
    )
    configuration = WebConfiguration(
        version=version("foretell"),
        chain_id=deployment.chain_id,
        is_sandbox=settings.is_sandbox,
        chain_url=settings.devchain_url if settings.is_sandbox else None,
        images_url=settings.blob_base_url,
        apis=apis,
        contracts=contracts_of(deployment),
        safe_factory_name=deployment.safe_factory_name,
    )
    policy = policy_of((*apis.all(), settings.blob_base_url), settings.base_url)
    wallets = _sandbox_wallets(resources) if settings.is_sandbox else None
    token = _operator_token(settings)
    operation = token and OperatorView(resources.database, resources.rpc, token, now_ms)
    return WebContext(read_build(), configuration, policy, wallets, operation or None)


def _operator_token(settings: Settings) -> str:
    """Return the token of the operator's page, empty if there is none."""
    if settings.operator_token is not None:
        return settings.operator_token.get_secret_value()
    return kept_token(settings.data, new_key) if settings.is_sandbox else ""


def _sandbox_wallets(resources: Resources) -> SandboxWallets:
    settings = resources.settings
    hosts = [f"{name}:{settings.port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    token = kept_token(settings.data, new_key)
    return SandboxWallets(resources.rpc, settings.chain_id, token, hosts)


def build_creation(resources: Resources) -> CreationContext:
    """Return the context of market creation; its permanent storage is to be closed."""
    settings = resources.settings
    url, storage = settings.storage_upload_url, settings.storage
    permanent_storage = None if url is None else open_storage(storage, url, settings.storage_bearer)
    return CreationContext(
        database=resources.database,
        deployment=resources.deployment,
        reader=resources.reader,
        registrar=resources.sender(resources.keys.registrar, REGISTRATION),
        images=ImageNormalizer(ImagePolicy()),
        blobs=BlobStore(settings.data / "blobs", storage),
        permanent_storage=permanent_storage,
        storage_key=resources.keys.storage,
        options=CreationOptions(
            confirmations=settings.confirmations,
            ticks_per_one=settings.market_ticks_per_one,
            size_units_min=settings.market_size_units_min,
            accepts_uma_moov2=settings.accepts_uma_moov2,
            may_store_locally=settings.stores_locally,
        ),
        now_ms=now_ms,
        new_uuid=new_uuid,
        new_word=new_word,
    )


def build_relayer(resources: Resources) -> RelayerContext:
    """Return the context of the relayer."""
    return RelayerContext(
        database=resources.database,
        deployment=resources.deployment,
        reader=resources.reader,
        sender=resources.sender(resources.keys.relayer, RELAYED),
        key_ring=resources.key_ring,
        now_ms=now_ms,
        new_uuid=new_uuid,
        options=RelayerOptions(
            relays_per_owner_max=resources.settings.relays_per_owner_max,
            relay_gas_per_owner_max=resources.settings.relay_gas_per_owner_max,
            relays_per_builder_max=resources.settings.relays_per_builder_max,
            relay_gas_per_builder_max=resources.settings.relay_gas_per_builder_max,
            relay_gas_by_builder=resources.settings.relay_gas_by_builder,
            relay_gas_per_day_max=resources.settings.relay_gas_per_day_max,
            known_units=resources.settings.market_size_units_min,
        ),
    )


def settlement_begin(resources: Resources) -> BeginSettlement:
    """Return what settlement needs, in this process or another."""
    settings, keys = resources.settings, resources.keys
    return BeginSettlement(
        resources.database.url,
        resources.rpc.url,
        encode_deployment(resources.deployment),
        (keys.operator, *keys.further_operators),
        settings.confirmations,
        settings.wallet_gas_per_day_max,
        SettlementOptions(
            unsimulated_gas_per_day_max=settings.unsimulated_gas_per_day_max,
            unknown_wait_ms=settings.unknown_txs_wait_s * 1000,
        ),
    )


def build_indexer(resources: Resources) -> IndexerContext:
    """Return the context of the indexer."""
    deployment, contracts = resources.deployment, IndexedContracts.of(resources.deployment)
    wallets = WalletReader(resources.database, resources.rpc, contracts, now_ms)
    return IndexerContext(
        database=resources.database,
        reader=resources.reader,
        logs=LogReader(resources.rpc, deployment.kind_by_contract()),
        contracts=contracts,
        start_block=deployment.start_block,
        wallets=wallets if deployment.has_collateral_history else None,
        head_still_s=None if resources.settings.is_sandbox else STILL_AFTER_S,
        head_clock=None if resources.settings.is_sandbox else HeadClock(now_ms),
    )


def build_rankings(resources: Resources) -> RankingContext:
    """Return the context of the loop that keeps the standings."""
    return RankingContext(resources.database, now_ms)


def build_listings(resources: Resources) -> ListingContext:
    """Return the context of the loop that keeps the totals of lists."""
    return ListingContext(resources.database, now_ms)


def build_data(resources: Resources) -> DataContext:
    """Return the context of the data API."""
    database, base_url = resources.database, resources.settings.blob_base_url
    solvency = build_solvency(database, resources.reader, resources.deployment, now_ms)
    owed = OwedReader(resources.deployment.exchanges, partial(owed_units, resources.public_rpc))
    recent = RecentAnswers(RANKINGS_KEPT_S)
    return DataContext(database, base_url, now_ms, solvency, owed, recent)


def build_solvency(
    database: Database, reader: Reader, deployment: Deployment, now_ms: Callable[[], int]
) -> SolvencyBooks:
    """Return the report of solvency of an installation."""

    async def fetch_backing(block_hash: Bytes32) -> BackingUnits:
        return await reader.backing(at_block(block_hash))

    adapter = IndexedContracts.of(deployment).neg_risk_adapter
    return SolvencyBooks(database, adapter, fetch_backing, now_ms)


def build_discovery(resources: Resources) -> DiscoveryContext:
    """Return the context of the discovery API."""
    settings, database = resources.settings, resources.database
    delay_s = settings.sports_delay_s
    return DiscoveryContext(database, settings.blob_base_url, sports_delay_s=delay_s)
