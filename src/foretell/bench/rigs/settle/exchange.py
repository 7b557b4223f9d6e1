"""An exchange that matches and settles on a chain, without HTTP: engine, tables and indexer, settlement in a child."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from foretell.app.clock_and_ids import now_ms
from foretell.app.settlement_process.client import SettlementProcess
from foretell.app.settlement_process.messages import BeginSettlement
from foretell.bench.rigs.load import Offer, sign_order
from foretell.bench.rigs.settle.chain import ChainTrader, SettleChain
from foretell.bench.rigs.world import TICKS_PER_ONE
from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import encode_deployment
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    AccountRole,
    sandbox_account,
)
from foretell.domain.creation.payload import MarketMode, ResolutionType
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import (
    MarketRules,
    OrderType,
    Side,
    order_terms,
)
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.exchange.trade import PENDING
from foretell.domain.exchange.wallets.wallet_bars import BarOptions
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.projection import Projection
from foretell.indexer.context import IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.follow import follow
from foretell.indexer.worker import run as run_indexer
from foretell.journal.files.journal import FileJournal
from foretell.runtime.loops import run_together
from foretell.store.creation.markets import EventRow, MarketRow, record_event
from foretell.store.database import Database
from foretell.store.migrations import upgrade

PRICE_TICKS: Final = 40
SIZE_UNITS: Final = 1_000_000
SIZE_UNITS_MIN: Final = 100
CONFIRMATIONS: Final = 2
MINED_DEADLINE_S: Final = 300.0
START_DEADLINE_S: Final = 300.0
POLL_S: Final = 0.002
PREPARED_S: Final = 60
"""The orders beside settlement suffice for this time."""
RESTING_TICKS: Final = 1
RESTING_SALT: Final = 1 << 32
_DAY_MS: Final = 86_400_000


@dataclass
class SettlingExchange:
    """The exchange of one round."""

    chain: SettleChain
    database: Database
    engine: Engine
    projection: Projection
    feed: ChainFeed
    indexer: IndexerContext
    settlement: SettlementProcess

    async def match(self, trades: int) -> None:
        """Match orders of different traders; each trade has a maker's order of its own.

        The trades are not in the tables yet, and so not in settlement's sight.
        """
        takers, makers = self.chain.traders[::2], self.chain.traders[1::2]
        pairs = itertools.islice(itertools.cycle(zip(takers, makers, strict=True)), trades)
        for salt, (taker, maker) in enumerate(pairs):
            await self._place(maker, Side.SELL, salt)
            await self._place(taker, Side.BUY, salt)
        if len(self.engine.state.unsettled_trades) != trades:
            raise BenchFailed(f"{len(self.engine.state.unsettled_trades)} trades, not {trades}")

    async def settle(self, beside: Sequence[PlaceOrder] = (), orders_per_s: int = 0) -> int:
        """Run until all trades are in blocks; return how many of the orders were placed beside that."""
        placed = itertools.count()
        loops = [
            self.projection.run,
            self.feed.run,
            lambda: run_indexer(self.indexer),
            *([lambda: self._load(beside, placed, orders_per_s)] if orders_per_s else []),
        ]
        running = asyncio.create_task(run_together(loops))
        try:
            async with asyncio.timeout(MINED_DEADLINE_S):
                while self._is_pending():
                    await asyncio.sleep(POLL_S)
                    if running.done():
                        running.result()
        except TimeoutError as error:
            raise BenchFailed(f"trades are in no block after {MINED_DEADLINE_S:g} s") from error
        finally:
            running.cancel()
            await asyncio.wait([running])
        return next(placed)

    async def _load(
        self, orders: Sequence[PlaceOrder], placed: Iterator[int], orders_per_s: int
    ) -> None:
        """Place orders at a steady rate, none before its time; as many as a second has may wait for the disk."""
        places = asyncio.Semaphore(orders_per_s)

        async def place(order: PlaceOrder) -> None:
            await self.engine.submit(msgspec.structs.replace(order, at_ms=self.engine.clock_ms()))
            next(placed)
            places.release()

        began_s = time.perf_counter()
        async with asyncio.TaskGroup() as placing:
            for number, order in enumerate(orders, start=1):
                await asyncio.sleep(max(0.0, began_s + number / orders_per_s - time.perf_counter()))
                await places.acquire()
                placing.create_task(place(order))
        raise BenchFailed(f"the {len(orders)} orders beside settlement did not suffice")

    def resting(self, orders_per_s: int) -> list[PlaceOrder]:
        """Return signed orders that match nothing, enough for the time of a round."""
        makers = itertools.cycle(self.chain.traders)
        return [
            self._order(trader, Side.BUY, RESTING_SALT + number, RESTING_TICKS)
            for number, trader in zip(range(orders_per_s * PREPARED_S), makers, strict=False)
        ]

    def _is_pending(self) -> bool:
        return any(each.status in PENDING for each in self.engine.state.unsettled_trades.values())

    async def _place(self, trader: ChainTrader, side: Side, salt: int) -> None:
        await self.engine.submit(self._order(trader, side, salt, PRICE_TICKS))

    def _order(self, trader: ChainTrader, side: Side, salt: int, price_ticks: int) -> PlaceOrder:
        offer = Offer(0, side is Side.BUY, price_ticks, SIZE_UNITS)
        separators, token = self.chain.deployment.separators(), self.chain.tokens.yes
        order = sign_order(separators, trader.private_key, trader.address, salt, token, offer)
        order_id = separators.order_id(order)
        rules = MarketRules(TICKS_PER_ONE, SIZE_UNITS_MIN, 0)
        return PlaceOrder(
            at_ms=self.engine.clock_ms(),
            order_id=order_id,
            order=order,
            order_type=OrderType.GTC,
            is_post_only=False,
            owner="bench",
            condition_id=self.chain.condition_id,
            is_yes=True,
            terms=order_terms(order, OrderType.GTC, rules, order_id),
        )


@contextlib.asynccontextmanager
async def settling_exchange(
    chain: SettleChain, folder: Path, options: SettlementOptions
) -> AsyncIterator[SettlingExchange]:
    """Give a new exchange that has read the chain; it ends with the block."""
    async with contextlib.AsyncExitStack() as stack:
        url = f"sqlite+aiosqlite:///{folder / 'foretell.db'}"
        database = await stack.enter_async_context(Database(url))
        await upgrade(database)
        async with database.writing() as tx:
            await record_event(tx, _event(chain), now_ms())
        engine = Engine(FileJournal(folder / "journal"), now_ms)
        stack.push_async_callback(engine.close)
        projection = Projection(database)
        await projection.start()
        engine.subscribe(projection.on_committed)
        await engine.start()
        rpc = await stack.enter_async_context(Rpc(chain.rpc_url))
        deployment = chain.deployment
        sender = sandbox_account(AccountRole.OPERATOR, SANDBOX_CHAIN_ID)
        begin = BeginSettlement(
            database.url,
            chain.rpc_url,
            encode_deployment(deployment),
            (sender.private_key,),
            CONFIRMATIONS,
            BarOptions().gas_per_day_max,
            options,
        )
        exchange = SettlingExchange(
            chain,
            database,
            engine,
            projection,
            ChainFeed(engine, database, deployment.exchanges, CONFIRMATIONS),
            IndexerContext(
                database,
                Reader(rpc, deployment),
                LogReader(rpc, deployment.kind_by_contract()),
                IndexedContracts.of(deployment),
                deployment.start_block,
            ),
            SettlementProcess(database, begin),
        )
        while (await follow(exchange.indexer)).is_behind:
            pass
        await exchange.feed.run_once()
        await projection.catch_up()
        running = asyncio.create_task(exchange.settlement.run())
        stack.push_async_callback(_end, running)
        async with asyncio.timeout(START_DEADLINE_S):
            await exchange.settlement.started.wait()
        yield exchange


async def _end(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait([running])


def _event(chain: SettleChain) -> EventRow:
    market = MarketRow(
        condition_id=chain.condition_id,
        question_id=chain.question_id,
        market_key="binary",
        slug="bench",
        question="Does it settle?",
        title="Does it settle?",
        outcome_yes="Yes",
        outcome_no="No",
        tokens=chain.tokens,
        exchange=chain.deployment.exchange,
        oracle=ZERO_ADDRESS,
        resolution_type=ResolutionType.DIRECT,
        metadata_id="",
        metadata_uri="",
        icon="",
        ticks_per_one=TICKS_PER_ONE,
        size_units_min=SIZE_UNITS_MIN,
        fee_rate_bps=0,
    )
    return EventRow(
        request_id="bench",
        slug="bench",
        title="Bench",
        creator=ZERO_ADDRESS,
        chain_id=SANDBOX_CHAIN_ID,
        market_mode=MarketMode.BINARY,
        main_category_slug="",
        rules="",
        resolution_source=None,
        image="",
        ends_at_ms=now_ms() + _DAY_MS,
        tags=(),
        markets=(market,),
    )
