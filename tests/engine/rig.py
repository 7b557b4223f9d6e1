"""The rig of the engine's tests: two shards and a treasury in one process, over one database.

Each has a journal of its own. They reach each other through endpoints that a test can switch off,
and the chain is what a test writes into the tables.
"""

import asyncio
import contextlib
import itertools
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tests.rigs.clock import Clock
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.rows import Rows, an_event_row
from tests.rigs.values import (
    EXCHANGE,
    TOKEN,
    a_buy,
    a_deployment,
    a_placing,
    a_word,
    an_address,
    an_open_market,
    numbered_uuids,
)

from foretell.app.engine_sockets import UNIX, connect, listen
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.exchange import EngineRestarting
from foretell.domain.evm.raw_transaction import Fees
from foretell.domain.evm.transaction import SentTx, TxAttempt, TxStatus
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import Trade
from foretell.domain.treasury.treasury import free_units
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.sharding import ShardPlace, shard_of
from foretell.engine.allocations.client import AllocationClient
from foretell.engine.allocations.collateral_feed import CollateralFeed
from foretell.engine.allocations.coordinator import AllocationCoordinator
from foretell.engine.allocations.reports import report_allocations
from foretell.engine.answers import HANDLERS
from foretell.engine.host import EngineHost
from foretell.engine.protocol.client import RemoteShard
from foretell.engine.protocol.endpoint import EngineEndpoint
from foretell.engine.protocol.requests import (
    CancelMatchingRequest,
    CancelOrdersReply,
    EngineReply,
    EngineRequest,
    FundReply,
    FundRequest,
    HeartbeatRequest,
    PlaceReply,
    PlaceRequest,
    ReportRequest,
    ShardRequest,
    TablesRequest,
)
from foretell.engine.server import EngineServer
from foretell.engine.treasury_host import TreasuryHost
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.engine.writer.projection import Projection
from foretell.engine.writer.treasury_engine import TreasuryEngine
from foretell.journal.files.journal import FileJournal
from foretell.store.database import Database
from foretell.store.index.activities import ExchangeFill, record_exchange_fills
from foretell.store.index.balances import Allowance, Balance, record_allowances, record_balances
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.outbox.settlements import record_settlements
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox

SOON_S: Final = 60.0
"""No test waits for its end: it only ends one that hangs."""
PATIENT_S: Final = 60.0
"""How long a reply may take between a shard and the treasury: a busy disk takes seconds."""
PLACES: Final = (ShardPlace(0, 2), ShardPlace(1, 2))
TREASURY: Final = "treasury"
INSTALLATION_TOKEN: Final = b"the token of this installation"


async def handle(engine: Engine, request: ShardRequest) -> EngineReply:
    """Return the engine's reply, as a host's handlers give it."""
    return await HANDLERS[type(request)](engine, request)


def market_of(place: ShardPlace) -> str:
    """Return the name of the market that belongs to a shard."""
    names = (f"market {number}" for number in itertools.count())
    return next(name for name in names if shard_of(a_word(name), place.count) == place.number)


MARKETS: Final = tuple(market_of(place) for place in PLACES)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; nothing announces it."""
    async with asyncio.timeout(SOON_S):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.002)


@dataclass(frozen=True)
class LocalShard:
    """An engine without tables and clients."""

    engine: Engine

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the engine's reply, or raise its refusal."""
        assert not isinstance(request, HeartbeatRequest | TablesRequest | FundRequest)
        if isinstance(request, ReportRequest):
            return await report_allocations(self.engine, None, request)
        return await handle(self.engine, request)


@dataclass(frozen=True)
class LocalTreasury:
    """A treasury without tables."""

    coordinator: AllocationCoordinator

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return what the treasury grants, or raise its refusal."""
        assert isinstance(request, FundRequest)
        return FundReply(await self.coordinator.fund(request.shard, request.wallet, request.given))


@dataclass
class Switch:
    """The endpoint of a shard or of the treasury, which is down without a target."""

    target: EngineEndpoint | None = None

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the reply of the present target."""
        if self.target is None:
            raise EngineRestarting
        return await self.target.handle(request)


@dataclass
class EngineRig:
    """An installation of two shards; a journal is numbered by the starts of its owner."""

    folder: Path
    database: Database
    clock: Clock = field(default_factory=Clock)
    endpoints: dict[str, Switch] = field(default_factory=dict)
    hosts: list[EngineHost] = field(default_factory=list)
    feeds: list[ChainFeed] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=dict)
    fund_deadline_s: float = PATIENT_S
    return_deadline_s: float = PATIENT_S
    closing: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)
    treasury: TreasuryHost = field(init=False)
    blocks: int = 0

    async def start(self) -> None:
        """Open a market in each shard and start everything."""
        async with self.database.writing() as tx:
            rows = Rows(tx)
            for market in MARKETS:
                await rows.open(an_event_row(market))
        self.endpoints = {name: Switch() for name in (*(place.name for place in PLACES), TREASURY)}
        for place in PLACES:
            host, feed = await self._shard(place)
            self.hosts.append(host)
            self.feeds.append(feed)
        await self._start_treasury()

    async def open_sockets(self) -> None:
        """Reach everything over sockets from now on, as in processes of their own."""
        hosts: dict[str, EngineEndpoint] = dict(
            zip((place.name for place in PLACES), self.hosts, strict=True)
        )
        for name, host in {**hosts, TREASURY: self.treasury}.items():
            server = EngineServer(INSTALLATION_TOKEN)
            server.open(host)
            path = self.folder / f"{name}.socket"
            listening = await listen(server.connection, path, None)
            self.closing.push_async_callback(listening.close)
            self.endpoints[name].target = await self._client_of(path)

    async def _client_of(self, path: Path) -> RemoteShard:
        async def find() -> str:
            return f"{UNIX}{path}"

        client = RemoteShard(partial(connect, find), INSTALLATION_TOKEN)
        running = asyncio.create_task(client.run())
        self.closing.push_async_callback(_stop, running)
        await client.ready.wait()
        return client

    async def restart_shard(self, number: int) -> None:
        """Kill a shard as kill -9 does, and start it from what its journal holds now."""
        self.endpoints[PLACES[number].name].target = None
        self.hosts[number], self.feeds[number] = await self._shard(PLACES[number])

    async def restart_treasury(self) -> None:
        """Kill the treasury as kill -9 does, and start it from what its journal holds now."""
        self.endpoints[TREASURY].target = None
        await self._start_treasury()

    async def _shard(self, place: ShardPlace) -> tuple[EngineHost, ChainFeed]:
        async def cancel(_: CancelMatchingRequest) -> CancelOrdersReply:
            return CancelOrdersReply([], {})

        engine = Engine(self._journal(place.name), self.clock.now_ms)
        host = EngineHost(
            engine,
            Projection(self.database, place.name),
            Heartbeats(
                self.database,
                cancel,
                Wallets(a_deployment()),
                now_ms=self.clock.now_ms,
                elapsed_ms=self.clock.now_ms,
                new_uuid=numbered_uuids(),
            ),
            AllocationClient(
                place.name, self.endpoints[TREASURY], fund_deadline_s=self.fund_deadline_s
            ),
        )
        await host.start()
        self.closing.push_async_callback(engine.close)
        self.endpoints[place.name].target = host
        return host, ChainFeed(engine, self.database, [EXCHANGE], confirmations=1, place=place)

    async def _start_treasury(self) -> None:
        engine = TreasuryEngine(self._journal(TREASURY), self.clock.now_ms)
        shards = {place.name: self.endpoints[place.name] for place in PLACES}
        coordinator = AllocationCoordinator(
            engine, shards, return_deadline_s=self.return_deadline_s
        )
        feed = CollateralFeed(engine, coordinator, self.database, [EXCHANGE])
        self.treasury = TreasuryHost(engine, coordinator, feed)
        await self.treasury.start()
        self.closing.push_async_callback(engine.close)
        await self.treasury.catch_up()
        self.endpoints[TREASURY].target = self.treasury

    def _journal(self, name: str) -> FileJournal:
        """Return the journal, a copy of what it was when its owner was killed."""
        before, start = self.starts.get(name), self.starts.get(name, -1) + 1
        self.starts[name] = start
        folder = self.folder / f"{name} {start}"
        if before is not None:
            shutil.copytree(self.folder / f"{name} {before}", folder)
        return FileJournal(folder, segment_bytes=SEGMENT_BYTES)

    async def index(
        self,
        balances: Sequence[tuple[str, AssetId, int]],
        fills: Sequence[Trade] = (),
        fork: str = "",
    ) -> None:
        """Index a block after which the wallets hold these amounts, and in which trades settled."""
        for host in self.hosts:
            await host.projection.catch_up()
        self.blocks += 1
        number = self.blocks
        wallets = {an_address(name) for name, _, _ in balances}
        async with self.database.writing() as tx:
            last = block_hash(number - 1)
            await record_blocks(tx, [Block(number, block_hash(number, fork), last, 0)])
            await record_balances(
                tx,
                [
                    Balance(an_address(name), asset, units, number)
                    for name, asset, units in balances
                ],
            )
            await record_allowances(
                tx,
                [
                    Allowance(wallet, EXCHANGE, is_collateral, AMOUNT_UNITS_MAX, number)
                    for wallet in wallets
                    for is_collateral in (True, False)
                ],
            )
            for trade in fills:
                settlement = Settlement(trade.trade_id, tx_id=trade.trade_id)
                await record_settlements(tx, [settlement])
                await record_exchange_fills(tx, [a_fill(number, trade)])
        for nonce, trade in enumerate(fills, 1000 * number):
            sent = a_tx(trade.trade_id, nonce)
            assert await TxOutbox(self.database, SETTLEMENT).record_new(sent)

    async def run_once(self) -> bool:
        """Run the shards' feeds and then the treasury's; return whether they observed one block."""
        for feed in self.feeds:
            await feed.run_once()
        return not await self.treasury.feed.run_once()

    async def place(self, shard: int, command: PlaceOrder) -> PlaceOrder:
        """Place an order in a shard, as its server does."""
        assert isinstance(await self.hosts[shard].handle(PlaceRequest(command)), PlaceReply)
        return command

    async def buy(self, shard: int, tokens: int, name: str = "alice", salt: int = 1) -> PlaceOrder:
        """Place an order in a shard's market that costs this many tokens of collateral."""
        return await self.place(shard, a_purchase(shard, tokens, name, salt))

    def allocated_tokens(self, shard: int, name: str = "alice") -> int:
        """Return what the shard counts as its allocation."""
        allocations = self.hosts[shard].engine.state.allocations
        return allocations.look_up(an_address(name)).units // TOKEN

    def free_tokens(self, name: str = "alice") -> int:
        """Return what the treasury may still grant."""
        return free_units(self.treasury.engine.state, an_address(name)) // TOKEN

    def reserved_tokens(self, name: str = "alice") -> int:
        """Return what the wallet's orders reserve in all shards."""
        wallet = an_address(name)
        accounts = [host.engine.state.ledger.look_up(wallet, COLLATERAL) for host in self.hosts]
        return sum(account.reserved_units for account in accounts) // TOKEN


async def _stop(running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def a_purchase(shard: int, tokens: int, name: str = "alice", salt: int = 1) -> PlaceOrder:
    """Return an order in a shard's market that costs this many tokens of collateral."""
    market = MARKETS[shard]
    order = a_buy(name, size_units=2 * tokens * TOKEN, market=market, salt=str(salt))
    return a_placing(order, market=an_open_market(market))


def block_hash(number: int, fork: str = "") -> Bytes32:
    """Return the hash of a block."""
    return a_word(f"block {number}{fork}")


def a_fill(block_number: int, trade: Trade) -> ExchangeFill:
    """Return the exchange's log of the taker's order of a trade that settled."""
    return ExchangeFill(
        block_number,
        0,
        0,
        trade.taker_order_id,
        EXCHANGE,
        EXCHANGE,
        Side.BUY,
        COLLATERAL,
        size_units=1,
        cost_units=1,
        fee_units=0,
        is_taker=True,
        tx_hash=a_word(f"tx of {trade.trade_id}"),
    )


def a_tx(trade_id: str, nonce: int) -> SentTx:
    """Return the transaction that settles a trade."""
    operator: Address = an_address("operator")
    return SentTx(
        tx_id=trade_id,
        sender=operator,
        account_nonce=nonce,
        target=EXCHANGE,
        calldata=b"\x01",
        gas=21_000,
        status=TxStatus.PENDING,
        attempts=(TxAttempt(a_word(f"tx of {trade_id}"), b"\x02", Fees(2, 1), 0),),
        created_at_ms=0,
        updated_at_ms=0,
    )


@contextlib.asynccontextmanager
async def an_engine_rig(
    folder: Path,
    database: Database,
    tokens: int = 100,
    *names: str,
    fund_deadline_s: float = PATIENT_S,
    return_deadline_s: float = PATIENT_S,
) -> AsyncIterator[EngineRig]:
    """Start an installation in which the wallets (alice) hold these amounts at the first block."""
    rig = EngineRig(
        folder, database, fund_deadline_s=fund_deadline_s, return_deadline_s=return_deadline_s
    )
    async with rig.closing:
        await rig.start()
        await rig.index([(name, COLLATERAL, tokens * TOKEN) for name in names or ("alice",)])
        assert await rig.run_once()
        yield rig
