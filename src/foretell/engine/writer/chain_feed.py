"""What the chain and other products tell the engine: markets, balances, settlements, payouts.

Everything comes from the tables, all of it as of one indexed block, and goes to the engine as
commands. The block up to which the engine knows the chain is part of its state, so a restart asks
for what changed since; when that block is not on the chain any more, everything is compared anew.
What is too much for one command is told in parts. The engine's block moves with the last of them, so
who stops halfway has told nothing, and the next look begins anew.
"""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import structlog

from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    CancelSeen,
    NonceSeen,
    ObserveChain,
    OpenMarket,
    ResolveMarket,
    SplitTrade,
    TradeSeen,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.observe_chain import OBSERVED_PER_COMMAND_MAX, split_observation
from foretell.domain.exchange.order import MarketRules
from foretell.domain.exchange.settlement import RefusedOrder
from foretell.domain.exchange.state import State, UnsettledTrade
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address
from foretell.domain.values.sharding import ALONE, ShardPlace
from foretell.engine.writer.engine import Engine
from foretell.runtime.worker import Pace, run_worker
from foretell.store.creation.markets import load_markets
from foretell.store.database import Database, Transaction
from foretell.store.index.balances import (
    Allowance,
    Balance,
    load_allowances_changed,
    load_balances_changed,
)
from foretell.store.index.blocks import load_block_hash, load_last_block
from foretell.store.index.cancellations import (
    CanceledOrder,
    RaisedNonce,
    load_canceled_orders,
    load_raised_nonces,
)
from foretell.store.index.conditions import load_payouts
from foretell.store.outbox.refused_orders import load_refused_orders
from foretell.store.outbox.settlements import Landing, load_landings

PACE: Final = Pace(busy_s=1.0, idle_s=1.0)
TOPICS: Final = ("chain", "markets", "settlements")
BLOCKS_UNOBSERVED_MAX: Final = 20
TRADES_PER_QUERY_MAX: Final = 500
BEFORE_ALL_BLOCKS: Final = -1

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChainFeed:
    """One engine's eyes on the tables."""

    engine: Engine
    database: Database
    exchanges: Collection[Address]
    confirmations: int
    observed_per_command_max: int = OBSERVED_PER_COMMAND_MAX
    place: ShardPlace = ALONE

    async def run(self) -> None:
        """Look, for ever, whenever something is announced and once in a while."""
        watch = await self.database.watch(*TOPICS)
        await run_worker("chain feed", self.run_once, PACE, watch.wait)

    async def run_once(self) -> bool:
        """Tell the engine what is new: markets, trades that split, the chain, what it resolved."""
        foreign = await self._open_markets()
        async with self.database.reading() as tx:
            splits = await self._splits(tx)
            observation = await self._observation(tx, foreign)
        for split in splits:
            await self.engine.submit(split)
        if observation is not None:
            await self._tell(observation)
        await self._resolve_markets()
        return False

    async def _tell(self, observation: ObserveChain) -> None:
        for part in split_observation(observation, self.observed_per_command_max):
            at_ms = self.engine.clock_ms()
            await self.engine.submit(msgspec.structs.replace(part, at_ms=at_ms))

    async def _open_markets(self) -> set[AssetId]:
        """Open the shard's markets, and return the assets that are not for it to observe."""
        async with self.database.reading() as tx:
            markets = await load_markets(tx)
        is_granted = self.place.has_treasury or self.engine.state.allocations.is_joined
        foreign = {COLLATERAL} if is_granted else set[AssetId]()
        for market in markets:
            if not self.place.has(market.condition_id):
                foreign |= {AssetId(str(token)) for token in market.tokens}
                continue
            if market.condition_id in self.engine.state.market_by_id:
                continue
            rules = MarketRules(market.ticks_per_one, market.size_units_min, market.fee_rate_bps)
            await self.engine.submit(
                OpenMarket(
                    at_ms=self.engine.clock_ms(),
                    condition_id=market.condition_id,
                    token_yes=AssetId(str(market.tokens.yes)),
                    token_no=AssetId(str(market.tokens.no)),
                    exchange=market.exchange,
                    rules=rules,
                )
            )
        return foreign

    async def _resolve_markets(self) -> None:
        markets = self.engine.state.market_by_id
        trading = [condition_id for condition_id, market in markets.items() if market.is_open]
        async with self.database.reading() as tx:
            payouts = await load_payouts(tx, trading)
        for payout in payouts:
            await self.engine.submit(ResolveMarket(self.engine.clock_ms(), payout.condition_id))

    async def _observation(
        self, tx: Transaction, foreign: Collection[AssetId]
    ) -> ObserveChain | None:
        """Return what changed on the chain since the engine looked last, if anything did.

        With a treasury every block counts: it takes one in when all shards have observed that one.
        """
        state = self.engine.state
        last = await load_last_block(tx)
        if last is None:
            return None
        is_linear = await load_block_hash(tx, state.observed_block) == state.observed_hash
        since = state.observed_block if is_linear else BEFORE_ALL_BLOCKS
        changed = await load_balances_changed(tx, since)
        balances = _balances_seen(state, changed, foreign, is_complete=not is_linear)
        allowances = _allowances_seen(
            state,
            await load_allowances_changed(tx, since),
            self.exchanges,
            is_complete=not is_linear,
        )
        trades = await self._trades_seen(tx, last.block_number)
        cancels = _cancels_seen(state, await load_canceled_orders(tx, since))
        nonces = _nonces_seen(state, await load_raised_nonces(tx, since), is_complete=not is_linear)
        unobserved_max = 1 if self.place.has_treasury else BLOCKS_UNOBSERVED_MAX
        is_due = last.block_number - state.observed_block >= unobserved_max
        seen = balances or allowances or trades or cancels or nonces
        if is_linear and not (seen or is_due):
            return None
        return ObserveChain(
            at_ms=self.engine.clock_ms(),
            block_number=last.block_number,
            block_hash=last.block_hash,
            balances=tuple(balances),
            allowances=tuple(allowances),
            trades=tuple(trades),
            cancels=tuple(cancels),
            nonces=tuple(nonces),
        )

    async def _splits(self, tx: Transaction) -> list[SplitTrade]:
        """Return which trades cannot settle as they are, by what settlement found out."""
        unsettled = self.engine.state.unsettled_trades
        ids = list(unsettled)
        splits = []
        for start in range(0, len(ids), TRADES_PER_QUERY_MAX):
            refused = await load_refused_orders(tx, ids[start : start + TRADES_PER_QUERY_MAX])
            for trade_id, group in itertools.groupby(refused, key=lambda each: each.trade_id):
                split = self._split(unsettled[trade_id], list(group))
                if split.parts or split.refused_ids:
                    splits.append(split)
        return splits

    def _split(self, unsettled: UnsettledTrade, refused: Sequence[RefusedOrder]) -> SplitTrade:
        """Return what of it the engine does not know yet."""
        makers = {fill.maker_order_id for fill in unsettled.trade.fills}
        leaving = [each for each in refused if each.part > 0 and each.order_id in makers]
        live = self.engine.state.live_orders
        return SplitTrade(
            at_ms=self.engine.clock_ms(),
            trade_id=unsettled.trade.trade_id,
            parts=tuple(
                tuple(each.order_id for each in group)
                for _, group in itertools.groupby(leaving, key=lambda each: each.part)
            ),
            refused_ids=tuple(
                each.order_id for each in refused if each.is_blamed and each.order_id in live
            ),
        )

    async def _trades_seen(self, tx: Transaction, last_block: int) -> list[TradeSeen]:
        """Return the unsettled trades that are further, or less far, than the engine knows."""
        unsettled = self.engine.state.unsettled_trades
        ids = list(unsettled)
        seen = []
        for start in range(0, len(ids), TRADES_PER_QUERY_MAX):
            for landing in await load_landings(tx, ids[start : start + TRADES_PER_QUERY_MAX]):
                known = unsettled[landing.trade_id]
                trade = _trade_seen(known.status, landing, last_block - self.confirmations)
                if trade is not None and (trade.status, trade.tx_hash) != (
                    known.status,
                    known.tx_hash,
                ):
                    seen.append(trade)
        return seen


def _balances_seen(
    state: State, balances: Sequence[Balance], foreign: Collection[AssetId], *, is_complete: bool
) -> list[BalanceSeen]:
    """Return the balances that differ from the ledger's; of a complete list, the vanished too."""
    units_by_account = {(balance.wallet, balance.asset): balance.units for balance in balances}
    if is_complete:
        for wallet, asset in state.ledger.accounts_held():
            units_by_account.setdefault((wallet, asset), 0)
    return [
        BalanceSeen(wallet, asset, units)
        for (wallet, asset), units in units_by_account.items()
        if asset not in foreign and state.ledger.look_up(wallet, asset).confirmed_units != units
    ]


def _allowances_seen(
    state: State,
    allowances: Sequence[Allowance],
    exchanges: Collection[Address],
    *,
    is_complete: bool,
) -> list[AllowanceSeen]:
    """Return the allowances to an exchange that differ from the ledger's."""
    units_by_key = {
        (allowance.wallet, allowance.spender, allowance.is_collateral): allowance.units
        for allowance in allowances
        if allowance.spender in exchanges
    }
    if is_complete:
        for key in state.ledger.allowances_held():
            units_by_key.setdefault(key, 0)
    return [
        AllowanceSeen(wallet, exchange, is_collateral, units)
        for (wallet, exchange, is_collateral), units in units_by_key.items()
        if state.ledger.allowed_units(wallet, exchange, of_collateral=is_collateral) != units
    ]


def _cancels_seen(state: State, canceled: Sequence[CanceledOrder]) -> list[CancelSeen]:
    """Return the canceled orders that are live, or could still be placed."""
    return [
        CancelSeen(each.exchange, each.order_id)
        for each in canceled
        if each.order_id in state.live_orders
        or (
            each.order_id not in state.placement_by_order
            and (each.exchange, each.order_id) not in state.canceled_orders
        )
    ]


def _nonces_seen(
    state: State, raised: Sequence[RaisedNonce], *, is_complete: bool
) -> list[NonceSeen]:
    """Return the nonces that differ from the known ones; of a complete list, the vanished too."""
    nonce_by_key = {(each.exchange, each.maker): each.nonce for each in raised}
    if is_complete:
        nonce_by_key = dict.fromkeys(state.maker_nonces, 0) | nonce_by_key
    return [
        NonceSeen(exchange, maker, nonce)
        for (exchange, maker), nonce in nonce_by_key.items()
        if state.maker_nonces.get((exchange, maker), 0) != nonce
    ]


def _trade_seen(known: TradeStatus, landing: Landing, confirmed_block: int) -> TradeSeen | None:
    """Return how a trade stands; None when there is nothing to say but that it waits."""
    if landing.block_number is not None:
        is_confirmed = landing.block_number <= confirmed_block
        status = TradeStatus.CONFIRMED if is_confirmed else TradeStatus.MINED
        return TradeSeen(landing.trade_id, status, landing.tx_hash or "")
    if landing.is_given_up:
        return TradeSeen(landing.trade_id, TradeStatus.FAILED, "")
    if landing.failure is not None or known is TradeStatus.MINED:
        return TradeSeen(landing.trade_id, TradeStatus.RETRYING, "")
    return None
