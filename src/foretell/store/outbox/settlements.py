"""Settlements: the transaction that carries a trade, and its outcome on the chain.

Written by settlement.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.settlement import (
    BATCH_PREFIX,
    SINGLE_PREFIX,
    EarlierTrades,
    Settlement,
)
from foretell.domain.exchange.trade import PENDING
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.outbox.landed_trades import load_whole_landings
from foretell.store.tables import (
    exchange_fills,
    fills,
    halted_markets,
    markets,
    settled_trades,
    settlement_tx_attempts,
    settlement_txs,
    trades,
)
from foretell.store.trading.trades import OLDEST_FIRST, TradeRow

TOPIC: Final = "settlements"
UNSETTLED: Final = tuple(status.value for status in PENDING)
REFUSALS_OF_FAILING: Final = 8
"""Refusals by the node in a row after which a trade counts as failing: a minute of them."""
FAILED_OR_WAITS: Final = sa.and_(
    settled_trades.c.tx_id.is_(None), settled_trades.c.is_given_up.is_(False)
)
_LOCK: Final = 0x73657474
"""The key of the lock of PostgreSQL under which processes change settlements one after the other."""
IS_HALTED: Final = trades.c.condition_id.in_(sa.select(halted_markets.c.condition_id))


class SettlementOutcome(NamedTuple):
    """The outcome of a trade's settlement: the block it is in, or why it is in none.

    `refusals` counts those by the node since the last try. One that `is_behind` was tried, and waits for an earlier
    trade of its wallets.
    """

    trade_id: str
    tx_hash: str | None
    block_number: int | None
    failure: str | None
    is_given_up: bool
    refusals: int
    is_behind: bool = False


class OpenSettlement(NamedTuple):
    """A settlement that names a transaction; the status of that is None if it is not stored.

    The hash and the number are those of the block that has it.
    """

    settlement: Settlement
    status: TxStatus | None
    mined_hash: Bytes32 | None
    block_number: int | None


async def record_settlements(tx: Transaction, settlements: Sequence[Settlement]) -> None:
    """Store the progress of several trades, in the place of what was stored of them."""
    if settlements:
        await tx.upsert_rows(settled_trades, settlements)
        await tx.announce(TOPIC)


async def name_settlements(tx: Transaction, settlements: Sequence[Settlement]) -> bool:
    """Store the names of transactions with their trades; return False, with nothing stored, if one is carried.

    A second process by mistake names no trade that the first one has named, or has tried since. A name is of
    no interest to the engine, which reads of the trade when the index has its transaction, so it is not announced.
    """
    if not await are_unchanged(tx, [each._replace(tx_id=None) for each in settlements]):
        return False
    await tx.upsert_rows(settled_trades, settlements)
    return True


async def are_unchanged(tx: Transaction, read: Sequence[Settlement]) -> bool:
    """Return whether trades still name the transactions, and have the tries, with which they were read.

    Other processes wait with their changes until this transaction has ended.
    """
    await _lock(tx)
    ids = [(each.trade_id,) for each in read]
    rows = await load_rows(tx, settled_trades, (settled_trades.c.trade_id,), ids)
    known = {row.trade_id: (row.tx_id, row.attempts) for row in rows}
    return all(known.get(each.trade_id, (None, 0)) == (each.tx_id, each.attempts) for each in read)


async def are_named(tx: Transaction, tx_ids: Sequence[str]) -> bool:
    """Return whether trades name these transactions, as far as they carry any.

    Other processes wait with their changes until this transaction has ended.
    """
    carrying = {each for each in tx_ids if each.startswith((SINGLE_PREFIX, BATCH_PREFIX))}
    if not carrying:
        return True
    await _lock(tx)
    named = sa.select(settled_trades.c.tx_id).where(settled_trades.c.tx_id.in_(sorted(carrying)))
    return len(await tx.all(named.distinct())) == len(carrying)


async def _lock(tx: Transaction) -> None:
    """Have other processes wait with changes of settlements until this transaction has ended; SQLite has one writer."""
    if tx.dialect == "postgresql":
        await tx.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


async def are_sent(tx: Transaction, settlements: Sequence[Settlement]) -> bool:
    """Return whether a transaction that these trades name is stored: it may be on its way."""
    names = {each.tx_id for each in settlements if each.tx_id is not None}
    stored = sa.select(settlement_txs.c.tx_id).where(settlement_txs.c.tx_id.in_(sorted(names)))
    return bool(names) and await tx.first(stored.limit(1)) is not None


async def load_open_settlements(tx: Transaction) -> Sequence[OpenSettlement]:
    """Return the settlements whose transaction may be on its way, or has failed.

    A batch that is confirmed may have settled some of its trades only.
    """
    is_on_its_way = sa.or_(
        settlement_txs.c.status.is_(None),
        settlement_txs.c.status != TxStatus.CONFIRMED.value,
        settled_trades.c.tx_id.startswith(BATCH_PREFIX, autoescape=True),
    )
    rows = await tx.all(
        sa.select(
            trades.c.trade_id.label("trade"),
            settled_trades,
            settlement_txs.c.status,
            settlement_txs.c.mined_hash,
            settlement_txs.c.block_number,
        )
        .join(settled_trades, settled_trades.c.trade_id == trades.c.trade_id)
        .outerjoin(settlement_txs, settlement_txs.c.tx_id == settled_trades.c.tx_id)
        .where(settled_trades.c.tx_id.is_not(None), trades.c.status.in_(UNSETTLED), is_on_its_way)
        .order_by(*OLDEST_FIRST)
    )
    return [
        OpenSettlement(
            settlement_of(row),
            None if row.status is None else TxStatus(row.status),
            row.mined_hash,
            row.block_number,
        )
        for row in rows
    ]


async def has_unsettled(tx: Transaction) -> bool:
    """Return whether any trade is in no block yet and not given up."""
    return await tx.first(_unsettled().limit(1)) is not None


async def load_earlier(
    tx: Transaction, trade: TradeRow, closed: Collection[Address] = ()
) -> EarlierTrades:
    """Return what is known of earlier trades of the same wallets that are in no block yet.

    A later trade may give what such a trade has yet to bring. One that the node has refused for more than a minute
    counts as failing: else wallets behind it would wait as long as it does, one behind the other. So does one that
    is not tried for the present, as long as that lasts: its exchange is one of those `closed`, or its market halted.
    """
    wallets = {trade.trade.taker, *(fill.maker for fill in trade.trade.fills)}
    is_maker = (
        sa.select(fills.c.trade_id)
        .where(fills.c.trade_id == trades.c.trade_id, fills.c.maker.in_(wallets))
        .exists()
    )
    is_earlier = sa.tuple_(trades.c.matched_at_ms, trades.c.sequence) < sa.tuple_(
        trade.trade.matched_at_ms, trade.sequence
    )
    before = _unsettled().where(is_earlier, sa.or_(trades.c.taker.in_(wallets), is_maker))
    has_failed = sa.or_(
        settled_trades.c.attempts > 0, settled_trades.c.refusals >= REFUSALS_OF_FAILING
    )
    fails = sa.func.coalesce(sa.and_(FAILED_OR_WAITS, has_failed), sa.false())
    may_pass = before.where(sa.not_(fails), sa.not_(_stands_still(closed)))
    if await tx.first(may_pass.limit(1)) is not None:
        return EarlierTrades.MAY_PASS
    return EarlierTrades.NONE if await tx.first(before.limit(1)) is None else EarlierTrades.FAIL


def _stands_still(closed: Collection[Address]) -> sa.ColumnElement[bool]:
    """Return whether no transaction carries a trade, and none will before its exchange opens or its market resumes.

    One that was named before its exchange closed keeps the name, and nothing is stored or sent by that.
    """
    is_named = settled_trades.c.tx_id.is_not(None)
    is_stored = sa.exists().where(settlement_txs.c.tx_id == settled_trades.c.tx_id)
    return sa.or_(
        sa.and_(is_of_closed(closed), sa.not_(is_stored)),
        sa.and_(IS_HALTED, sa.not_(is_named)),
    )


def is_of_closed(closed: Collection[Address]) -> sa.ColumnElement[bool]:
    """Return whether a trade is one of these exchanges."""
    if not closed:
        return sa.false()
    theirs = sa.select(markets.c.condition_id).where(markets.c.exchange.in_(closed))
    return trades.c.condition_id.in_(theirs)


def _unsettled() -> sa.Select[tuple[str]]:
    return (
        sa.select(trades.c.trade_id)
        .outerjoin(settled_trades, settled_trades.c.trade_id == trades.c.trade_id)
        .where(
            trades.c.status.in_(UNSETTLED),
            sa.func.coalesce(settled_trades.c.is_given_up, sa.false()).is_(sa.false()),
        )
    )


async def load_settlement_outcomes(
    tx: Transaction, trade_ids: Sequence[str]
) -> Sequence[SettlementOutcome]:
    """Return the outcome of these trades as of the last indexed block.

    Any attempt of a transaction may be the one that was mined; the exchange's own log shows which. A
    trade is in it if its taker's order is the taker of a match there: a batch has one of each taker.
    A trade that no transaction carries may be in one of which this database does not know.
    """
    # Not a bare column: SQLite would read all fills of a batch for each of its trades, by the index of hashes.
    hash_of_fill = sa.func.coalesce(exchange_fills.c.tx_hash, "")
    is_own_fill = sa.and_(
        exchange_fills.c.order_id == trades.c.taker_order_id,
        exchange_fills.c.is_taker,
        hash_of_fill == settlement_tx_attempts.c.tx_hash,
    )
    known = (
        settled_trades.c.trade_id,
        settled_trades.c.tx_id,
        settled_trades.c.failure,
        settled_trades.c.is_given_up,
        settled_trades.c.refusals,
        settled_trades.c.attempts,
    )
    rows = await tx.all(
        sa.select(
            *known,
            sa.func.max(exchange_fills.c.tx_hash).label("tx_hash"),
            sa.func.max(exchange_fills.c.block_number).label("block_number"),
        )
        .join(trades, trades.c.trade_id == settled_trades.c.trade_id)
        .outerjoin(settlement_tx_attempts, settlement_tx_attempts.c.tx_id == settled_trades.c.tx_id)
        .outerjoin(exchange_fills, is_own_fill)
        .where(settled_trades.c.trade_id.in_(trade_ids))
        .group_by(*known)
    )
    landings = await load_whole_landings(tx, [row.trade_id for row in rows if row.tx_id is None])
    return [
        SettlementOutcome(
            row.trade_id,
            carrier.tx_hash,
            carrier.block_number,
            row.failure,
            row.is_given_up,
            row.refusals,
            is_behind=row.tx_id is None and not (row.attempts or row.refusals or row.is_given_up),
        )
        for row in rows
        for carrier in (landings.get(row.trade_id, row),)
    ]


def settlement_of(row: sa.Row[Any]) -> Settlement:
    """Return the progress of a row's trade, which is that of a new one where nothing is stored."""
    if row.trade_id is None:
        return Settlement(row.trade)
    return Settlement(
        trade_id=row.trade_id,
        tx_id=row.tx_id,
        attempts=row.attempts,
        retry_at_ms=row.retry_at_ms,
        failure=row.failure,
        is_given_up=row.is_given_up,
        refusals=row.refusals,
    )
