"""The feed of the chain into an engine: markets, balances, settlements and payouts.

Every run loads rows of the tables as of one indexed block, decides what the engine does not know yet
and submits it as commands. The last observed block is part of the engine's state: what changed since is read, or
everything after a start, or when the tables were taken back (see `seen_tables`); also when the chain went back and ends
below that block. A large
observation is submitted in parts and takes effect with the last one, so a run that stops between two
parts has changed nothing, and the next run starts again.
"""

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec
import structlog

from foretell.domain.exchange.commands import (
    BarWallet,
    CancelSeen,
    Command,
    HaltMarket,
    NonceSeen,
    ObserveChain,
    SplitTrade,
    StopSeen,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.observation import (
    ChainReading,
    ObservationScope,
    RefusedFill,
    TradeSettlement,
    observation_of,
    split_of,
)
from foretell.domain.exchange.observe_chain import OBSERVED_PER_COMMAND_MAX, split_observation
from foretell.domain.exchange.settlement import PART_SHORT
from foretell.domain.exchange.wallets.wallet_bars import bars_of
from foretell.domain.values.hexadecimal import Address
from foretell.domain.values.sharding import ALONE, ShardPlace
from foretell.engine.writer.chain_lag import ChainLag
from foretell.engine.writer.changed_rows import read_allowances, read_balances
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.lower_head import LowerHead
from foretell.engine.writer.returned_orders import ReturnedOrders
from foretell.engine.writer.seen_markets import SeenMarkets
from foretell.engine.writer.seen_tables import SeenTables
from foretell.engine.writer.sports_delays import SportsDelays
from foretell.runtime.worker import PollIntervals, run_watching_worker
from foretell.store.creation.halted_markets import load_halted
from foretell.store.database import Database, Transaction
from foretell.store.index.blocks import (
    BEFORE_ALL_BLOCKS,
    Block,
    load_last_block,
)
from foretell.store.index.cancellations import (
    load_canceled_orders,
    load_raised_nonces,
    load_stops,
)
from foretell.store.outbox.lost_settlements import count_confirmed_above
from foretell.store.outbox.refused_orders import load_refused_orders
from foretell.store.outbox.settlements import SettlementOutcome, load_settlement_outcomes
from foretell.store.outbox.wallet_bars import load_barred, load_bars_of

PACE: Final = PollIntervals(busy_s=1.0, idle_s=1.0)
TOPICS: Final = ("chain", "markets", "settlements")
BLOCKS_UNOBSERVED_MAX: Final = 20
TRADES_PER_QUERY_MAX: Final = 500

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChainFeed:
    """The feed of one engine, which is a shard or the only one."""

    engine: Engine
    database: Database
    exchanges: Collection[Address]
    confirmations: int
    observed_per_command_max: int = OBSERVED_PER_COMMAND_MAX
    place: ShardPlace = ALONE
    returns: ReturnedOrders = field(default_factory=ReturnedOrders)
    sports_delay_s: int = 0
    sports: SportsDelays = field(default_factory=SportsDelays)
    markets: SeenMarkets = field(default_factory=SeenMarkets)
    lag: ChainLag | None = None
    tables: SeenTables = field(default_factory=SeenTables)
    lower_head: LowerHead | None = None
    """The watch of a chain that went back; None where the engine does not follow it then."""

    async def run(self) -> None:
        """Run until canceled, after each notification of the tables and at least once a second."""
        watch = partial(self.database.watching, *TOPICS)
        await run_watching_worker("chain feed", self.run_once, PACE, watch)

    async def run_once(self) -> bool:
        """Submit what is new: markets, splits of trades, an observation and resolutions."""
        await self.markets.open_new(self.database, self.engine, self.place)
        lower = await self._load_lower()
        async with self.database.reading() as tx:
            splits = await self._load_splits(tx)
            bars = await self._load_bars(tx)
            halts = await self._load_halts(tx)
            delays = await self.sports.changes(
                tx, self.engine.state, self.sports_delay_s * 1000, self.engine.clock_ms()
            )
            state = self.engine.state
            end = await self.tables.find_end(tx, state.observed_block, state.observed_hash)
            reading = lower
            if reading is None and end is not None:
                reading = await self._read(tx, end.last, end.since, replaces=not end.is_on_chain)
        observation = None
        if reading is not None:
            observation = observation_of(
                self.engine.state, reading, self._scope(), self.engine.clock_ms()
            )
        commands: list[Command] = [*splits, *bars, *halts, *delays]
        for command in commands:
            await self.engine.submit(command)
        if observation is not None:
            await self._submit_parts(observation)
            self.returns.note(observation, self.engine)
        if lower is None and end is not None:
            self.tables.note(end)
        await self.markets.resolve(self.database, self.engine)
        if reading is not None and self.lag is not None:
            self.lag.observe(reading.block_number)
        return False

    def _scope(self) -> ObservationScope:
        """Return what the shard observes.

        With a treasury that is every block: the treasury waits until all shards have observed its
        block.
        """
        is_granted = self.place.has_treasury or self.engine.state.allocations.is_joined
        foreign = self.markets.foreign_tokens | ({COLLATERAL} if is_granted else set())
        return ObservationScope(
            self.exchanges,
            foreign,
            self.confirmations,
            1 if self.place.has_treasury else BLOCKS_UNOBSERVED_MAX,
        )

    async def _submit_parts(self, observation: ObserveChain) -> None:
        for part in split_observation(observation, self.observed_per_command_max):
            at_ms = self.engine.clock_ms()
            await self.engine.submit(msgspec.structs.replace(part, at_ms=at_ms))

    async def _load_lower(self) -> ChainReading | None:
        """Return all rows of tables that end below the observed block if the chain itself went back; else None.

        What was confirmed stays so, as after any reorg that is deeper than the confirmations.
        """
        state, lower_head = self.engine.state, self.lower_head
        if lower_head is None:
            return None
        async with self.database.reading() as tx:
            last = await load_last_block(tx)
        if last is None or not await lower_head.is_end_of(last, state.observed_block):
            return None
        async with self.database.reading() as tx:
            if await load_last_block(tx) != last:
                return None
            reading = await self._read(tx, last, BEFORE_ALL_BLOCKS, replaces=True)
            lost = await count_confirmed_above(tx, last.block_number)
        log.error(
            "the chain went back, and the engine follows it",
            block=last.block_number,
            observed_block=state.observed_block,
            confirmed_txs_lost=lost,
            consequence="balances are those of the chain, and trades that it lost stay confirmed",
        )
        return reading

    async def _read(
        self, tx: Transaction, last: Block, since: int, *, replaces: bool
    ) -> ChainReading:
        """Return the rows that changed after a block, or of all of them, as of the last block."""
        ledger, scope = self.engine.state.ledger, self._scope()
        balances = await read_balances(tx, since, ledger, scope.foreign_assets)
        allowances = await read_allowances(tx, since, ledger, scope.exchanges)
        cancels = await load_canceled_orders(tx, since)
        nonces = await load_raised_nonces(tx, since)
        stops = await load_stops(tx, since)
        return ChainReading(
            block_number=last.block_number,
            block_hash=last.block_hash,
            is_complete=since == BEFORE_ALL_BLOCKS,
            balances=balances,
            allowances=allowances,
            cancels=[CancelSeen(each.exchange, each.order_id) for each in cancels],
            nonces=[NonceSeen(each.exchange, each.maker, each.nonce) for each in nonces],
            settlements=await self._load_settlements(tx),
            stops=[StopSeen(each.exchange, each.maker, each.part, each.nonce) for each in stops],
            replaces=replaces,
        )

    async def _load_settlements(self, tx: Transaction) -> list[TradeSettlement]:
        """Return the settlements of all unsettled trades; the engine learns which of them wait for earlier ones."""
        ids = list(self.engine.state.unsettled_trades)
        outcomes: list[SettlementOutcome] = []
        for start in range(0, len(ids), TRADES_PER_QUERY_MAX):
            outcomes += await load_settlement_outcomes(
                tx, ids[start : start + TRADES_PER_QUERY_MAX]
            )
        self.engine.trades_behind = frozenset(each.trade_id for each in outcomes if each.is_behind)
        settlements = [
            TradeSettlement(
                each.trade_id,
                each.tx_hash or "",
                each.block_number,
                is_failed=each.failure is not None or each.refusals > 0,
                is_given_up=each.is_given_up,
                cause=each.failure or "",
            )
            for each in outcomes
        ]
        return await self.returns.with_returned(tx, self.engine, settlements, self.place.name)

    async def _load_bars(self, tx: Transaction) -> list[BarWallet]:
        """Return the bars of wallets that began or ended; one without a row stays as it is."""
        known, at_ms = self.engine.state.barred_wallets, self.engine.clock_ms()
        bars = [*await load_barred(tx), *await load_bars_of(tx, known)]
        return bars_of(known, bars, at_ms)

    async def _load_halts(self, tx: Transaction) -> list[HaltMarket]:
        """Return the halts of this engine's markets that began or ended."""
        state, at_ms = self.engine.state, self.engine.clock_ms()
        wanted = {each.condition_id for each in await load_halted(tx)}
        begun = [each for each in wanted if each in state.market_by_id]
        changes = [(each, True) for each in sorted(begun) if each not in state.halted_markets]
        changes += [(each, False) for each in state.halted_markets if each not in wanted]
        return [HaltMarket(at_ms, condition_id, is_halted) for condition_id, is_halted in changes]

    async def _load_splits(self, tx: Transaction) -> list[SplitTrade]:
        """Return the splits of trades with fills that settlement found not to settle together."""
        state = self.engine.state
        ids = list(state.unsettled_trades)
        splits = []
        for start in range(0, len(ids), TRADES_PER_QUERY_MAX):
            refused = await load_refused_orders(tx, ids[start : start + TRADES_PER_QUERY_MAX])
            for trade_id, group in itertools.groupby(refused, key=lambda each: each.trade_id):
                fills = [
                    RefusedFill(each.order_id, each.part, each.is_blamed, each.part == PART_SHORT)
                    for each in group
                ]
                unsettled = state.unsettled_trades[trade_id]
                split = split_of(state, unsettled, fills, self.engine.clock_ms())
                if split is not None:
                    splits.append(split)
        return splits
