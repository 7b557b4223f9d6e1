"""Decisions about an observation: which rows of the chain's tables the engine does not know yet.

Each function compares rows as of one indexed block with the engine's state and returns the entries
that differ, in the order of the rows. A reading is complete when it has all rows and not only the
changed ones; then an entry of the state without a row counts as zero.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from foretell.domain.exchange.arrivals.chain_cancels import cancels_seen
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    CancelSeen,
    NonceSeen,
    ObserveChain,
    ReturnedOrder,
    SplitTrade,
    StopSeen,
    TradeSeen,
)
from foretell.domain.exchange.ledger import AssetId, Ledger
from foretell.domain.exchange.state import State, UnsettledTrade
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32

AllowanceKey = tuple[Address, Address, bool]
"""The wallet, the exchange, and whether the allowance is of collateral."""


class TradeSettlement(NamedTuple):
    """The settlement of a trade: the block with its transaction, None while there is none.

    `is_failed` means that the last attempt failed or the node refused it, `is_given_up` that there will be no other one.
    """

    trade_id: str
    tx_hash: str
    block_number: int | None
    is_failed: bool
    is_given_up: bool
    returned: tuple[ReturnedOrder, ...] = ()
    """The orders that are not to blame, where another one is to blame that it was given up."""
    cause: str = ""
    """Why the last attempt failed: the name of the contract's error, if it has one."""


class RefusedFill(NamedTuple):
    """An order of a trade with fills that cannot settle together.

    Orders of one `part` leave the trade together; those of part 0 and below stay. An order that `is_blamed`
    is refused by the chain in any match, or its wallet could not pay if it is `is_short`.
    """

    order_id: Bytes32
    part: int
    is_blamed: bool
    is_short: bool = False


class ChainReading(NamedTuple):
    """Rows of the chain's tables as of a block, all of them or those that changed.

    Of balances and allowances it has what differs from the engine's, those that are gone included.
    One that `replaces` the observed block, which the chain does not have any more, is observed without news, too.
    """

    block_number: int
    block_hash: Bytes32
    is_complete: bool
    balances: Sequence[BalanceSeen]
    allowances: Sequence[AllowanceSeen]
    cancels: Sequence[CancelSeen]
    nonces: Sequence[NonceSeen]
    settlements: Sequence[TradeSettlement]
    stops: Sequence[StopSeen] = ()
    replaces: bool = False


class ObservationScope(NamedTuple):
    """The part of the chain that one engine observes.

    `foreign_assets` belong to other shards or to the treasury. A block without any news is observed
    when the engine is `blocks_unobserved_max` behind.
    """

    exchanges: Collection[Address]
    foreign_assets: Collection[AssetId]
    confirmations: int
    blocks_unobserved_max: int


def observation_of(
    state: State, reading: ChainReading, scope: ObservationScope, at_ms: int
) -> ObserveChain | None:
    """Return the observation that brings the state up to the reading, None if none is due."""
    assert scope.confirmations >= 0
    assert scope.blocks_unobserved_max > 0
    is_complete = reading.is_complete
    balances = balances_seen(state.ledger, reading.balances, scope.foreign_assets)
    allowances = allowances_seen(state.ledger, reading.allowances, scope.exchanges)
    confirmed_block = reading.block_number - scope.confirmations
    trades = trades_seen(state, reading.settlements, confirmed_block)
    cancels = cancels_seen(state, reading.cancels)
    nonces = nonces_seen(state, reading.nonces, is_complete=is_complete)
    stops = stops_seen(state, reading.stops, is_complete=is_complete)
    has_news = reading.replaces or balances or allowances or trades or cancels or nonces or stops
    blocks_unobserved = reading.block_number - state.observed_block
    if not has_news and blocks_unobserved < scope.blocks_unobserved_max:
        return None
    return ObserveChain(
        at_ms=at_ms,
        block_number=reading.block_number,
        block_hash=reading.block_hash,
        balances=tuple(balances),
        allowances=tuple(allowances),
        trades=tuple(trades),
        cancels=tuple(cancels),
        nonces=tuple(nonces),
        stops=tuple(stops),
    )


def balances_seen(
    ledger: Ledger, balances: Iterable[BalanceSeen], foreign_assets: Collection[AssetId]
) -> list[BalanceSeen]:
    """Return the balances that differ from the ledger's, without foreign assets."""
    return [
        each
        for each in balances
        if each.asset not in foreign_assets
        and ledger.look_up(each.wallet, each.asset).confirmed_units != each.units
    ]


def balances_gone(
    ledger: Ledger,
    wallets: Iterable[Address],
    accounts: Collection[tuple[Address, AssetId]],
    foreign_assets: Collection[AssetId],
) -> list[BalanceSeen]:
    """Return a balance of zero for what these wallets hold in the ledger alone, and in none of the accounts with rows."""
    return [
        BalanceSeen(wallet, asset, 0)
        for wallet in wallets
        for asset in ledger.assets(wallet)
        if ledger.look_up(wallet, asset).confirmed_units
        and asset not in foreign_assets
        and (wallet, asset) not in accounts
    ]


def allowances_seen(
    ledger: Ledger, allowances: Iterable[AllowanceSeen], exchanges: Collection[Address]
) -> list[AllowanceSeen]:
    """Return the allowances of these exchanges that differ from the ledger's."""
    return [
        each
        for each in allowances
        if each.exchange in exchanges
        and ledger.allowed_units(each.wallet, each.exchange, of_collateral=each.is_collateral)
        != each.units
    ]


def allowances_gone(
    held: Iterable[AllowanceKey], with_rows: Collection[AllowanceKey]
) -> list[AllowanceSeen]:
    """Return an allowance of zero for each of these of the ledger that has no row."""
    return [AllowanceSeen(*key, units=0) for key in held if key not in with_rows]


def nonces_seen(state: State, nonces: Sequence[NonceSeen], *, is_complete: bool) -> list[NonceSeen]:
    """Return the nonces that differ from the known ones."""
    nonce_by_key = {(each.exchange, each.maker): each.nonce for each in nonces}
    if is_complete:
        nonce_by_key = dict.fromkeys(state.maker_nonces, 0) | nonce_by_key
    return [
        NonceSeen(exchange, maker, nonce)
        for (exchange, maker), nonce in nonce_by_key.items()
        if state.maker_nonces.get((exchange, maker), 0) != nonce
    ]


def stops_seen(state: State, stops: Sequence[StopSeen], *, is_complete: bool) -> list[StopSeen]:
    """Return the stops that differ from the known ones."""
    value_by_key = {(each.exchange, each.maker, each.kind): each.value for each in stops}
    if is_complete:
        value_by_key = dict.fromkeys(state.maker_stops, 0) | value_by_key
    return [
        StopSeen(*key, value)
        for key, value in value_by_key.items()
        if state.maker_stops.get(key, 0) != value
    ]


def trades_seen(
    state: State, settlements: Sequence[TradeSettlement], confirmed_block: int
) -> list[TradeSeen]:
    """Return the unsettled trades with another status or transaction than the known one."""
    seen = []
    for settlement in settlements:
        known = state.unsettled_trades[settlement.trade_id]
        trade = trade_seen(known.status, settlement, confirmed_block)
        if trade is not None and (trade.status, trade.tx_hash) != (known.status, known.tx_hash):
            seen.append(trade)
    return seen


def trade_seen(
    known: TradeStatus, settlement: TradeSettlement, confirmed_block: int
) -> TradeSeen | None:
    """Return the status that a settlement gives to a trade, None while the trade only waits.

    A trade in a block is MINED, and CONFIRMED once the block is deep enough. Without a block it is
    FAILED when it was given up, and RETRYING when an attempt failed, the node refused it or
    a reorg removed its block.
    """
    trade_id, block_number = settlement.trade_id, settlement.block_number
    if block_number is not None:
        is_confirmed = block_number <= confirmed_block
        status = TradeStatus.CONFIRMED if is_confirmed else TradeStatus.MINED
        return TradeSeen(trade_id, status, settlement.tx_hash)
    if settlement.is_given_up:
        return TradeSeen(trade_id, TradeStatus.FAILED, "", settlement.returned, settlement.cause)
    if settlement.is_failed or known is TradeStatus.MINED:
        return TradeSeen(trade_id, TradeStatus.RETRYING, "")
    return None


def split_of(
    state: State, unsettled: UnsettledTrade, refused: Sequence[RefusedFill], at_ms: int
) -> SplitTrade | None:
    """Return the split of a trade whose fills cannot settle together, None if it is known already.

    The refused orders are sorted by their part.
    """
    makers = {fill.maker_order_id for fill in unsettled.trade.fills}
    leaving = [each for each in refused if each.part > 0 and each.order_id in makers]
    assert leaving == sorted(leaving, key=lambda each: each.part), "groupby needs sorted parts"
    parts = tuple(
        tuple(each.order_id for each in group)
        for _, group in itertools.groupby(leaving, key=lambda each: each.part)
    )
    live = [each for each in refused if each.is_blamed and each.order_id in state.live_orders]
    refused_ids = tuple(each.order_id for each in live if not each.is_short)
    short_ids = tuple(each.order_id for each in live if each.is_short)
    if not parts and not live:
        return None
    return SplitTrade(at_ms, unsettled.trade.trade_id, parts, refused_ids, short_ids)
