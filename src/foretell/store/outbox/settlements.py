"""Settlements: the transaction that carries a trade, and its outcome on the chain.

Written by settlement.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.settlement import (
    BATCH_PREFIX,
    EarlierTrades,
    Settlement,
)
from foretell.domain.exchange.trade import PENDING
from foretell.domain.exchange.waiting.places import few_places_of, places_of
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.outbox.landed_trades import load_whole_landings
from foretell.store.tables import (
    exchange_fills,
    fills,
    halted_markets,
    markets,
    orders,
    refused_orders,
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
RETRY_AHEAD_MS_MAX: Final = 600_000
"""A retry that is due later was stored before the clock was set back, and is due."""
PLACES_SHARED_MIN: Final = 4
"""The fewest places of which every group has a right to one."""
_FAILED_OR_WAITS: Final = sa.and_(
    settled_trades.c.tx_id.is_(None), settled_trades.c.is_given_up.is_(False)
)
_IS_HALTED: Final = trades.c.condition_id.in_(sa.select(halted_markets.c.condition_id))
_DUE_AT_MS: Final = sa.func.coalesce(settled_trades.c.retry_at_ms, trades.c.matched_at_ms)


class SettlementOutcome(NamedTuple):
    """The outcome of a trade's settlement: the block it is in, or why it is in none.

    `refusals` counts those by the node since the last try.
    """

    trade_id: str
    tx_hash: str | None
    block_number: int | None
    failure: str | None
    is_given_up: bool
    refusals: int


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

    A second process by mistake names no trade that the first one has named. A name is of no interest to
    the engine, which reads of the trade when the index has its transaction, so it is not announced.
    """
    ids = [(each.trade_id,) for each in settlements]
    known = await load_rows(tx, settled_trades, (settled_trades.c.trade_id,), ids)
    if any(row.tx_id is not None for row in known):
        return False
    await tx.upsert_rows(settled_trades, settlements)
    return True


async def load_due_settlements(
    tx: Transaction,
    now_ms: int,
    limit: int,
    closed: Collection[Address] = (),
    *,
    batched_max: int = 0,
) -> Sequence[Settlement]:
    """Return unsettled trades that no transaction carries and that may be tried, oldest first.

    Of the places, half are for new trades of wallets without a failing trade, and half of the others
    for trades that never failed a try, however many are tried again: so failures keep nobody else
    waiting. With very few places, one is for the first group, and the longest due have the others. A trade
    that is to be split waits for the split, one of a closed exchange until it opens, and one of a halted market
    until that resumes. Trades of the first group that share transactions are not bound by the places but by
    `batched_max`, if that is more. When more of them wait than may go, half of them are those whose orders
    expire first.
    """
    is_new = settled_trades.c.trade_id.is_(None)
    is_beside_failing = _is_beside_failing()
    is_fair = sa.and_(is_new, sa.not_(is_beside_failing))
    waits = settled_trades.c.retry_at_ms.between(now_ms + 1, now_ms + RETRY_AHEAD_MS_MAX)
    is_due = sa.and_(_FAILED_OR_WAITS, sa.not_(waits))
    has_failed = settled_trades.c.attempts > 0
    most_new = max(limit, batched_max)
    groups = [
        await _load_due(tx, most, closed, may_be_tried)
        for most, may_be_tried in (
            (most_new, is_fair),
            (limit, sa.or_(sa.and_(is_new, is_beside_failing), sa.and_(is_due, ~has_failed))),
            (limit, sa.and_(is_due, has_failed)),
        )
    ]
    is_shared = limit >= PLACES_SHARED_MIN
    places = (
        places_of(limit, [len(rows) for rows in groups])
        if is_shared
        else few_places_of(limit, [[row.due_at_ms for row in rows] for rows in groups])
    )
    if places[0]:
        places[0] = max(places[0], batched_max)
    if len(groups[0]) >= min(most_new, places[0] + 1):
        soon = await _load_expiring(tx, places[0] // 2, closed, is_fair)
        known = {row.trade for row in soon}
        groups[0] = [*soon, *(row for row in groups[0] if row.trade not in known)]
    due = [row for rows, most in zip(groups, places, strict=True) for row in rows[:most]]
    due.sort(key=lambda row: (row.matched_at_ms, row.sequence, row.trade))
    return [_settlement(row) for row in due]


def _is_beside_failing() -> sa.ColumnElement[bool]:
    """Return whether a wallet of a trade has another one that failed a try and is tried again."""
    failing = (
        sa.select(settled_trades.c.trade_id)
        .where(_FAILED_OR_WAITS, settled_trades.c.attempts > 0)
        .scalar_subquery()
    )
    taken, made, other = trades.alias(), fills.alias(), fills.alias()
    wallets = sa.union(
        sa.select(taken.c.taker).where(taken.c.trade_id.in_(failing)),
        sa.select(made.c.maker).where(made.c.trade_id.in_(failing)),
    ).scalar_subquery()
    is_of_maker = sa.exists().where(
        other.c.trade_id == trades.c.trade_id, other.c.maker.in_(wallets)
    )
    return sa.or_(trades.c.taker.in_(wallets), is_of_maker)


async def _load_due(
    tx: Transaction,
    limit: int,
    closed: Collection[Address],
    may_be_tried: sa.ColumnElement[bool],
) -> Sequence[sa.Row[Any]]:
    """Return the longest due of the trades that may be tried."""
    due = _due(closed, may_be_tried)
    return await tx.all(due.order_by(_DUE_AT_MS, *OLDEST_FIRST).limit(limit))


async def _load_expiring(
    tx: Transaction,
    limit: int,
    closed: Collection[Address],
    may_be_tried: sa.ColumnElement[bool],
) -> Sequence[sa.Row[Any]]:
    """Return the trades that may be tried with the orders that expire first, takers' or makers'."""
    due = _due(closed, may_be_tried).add_columns(orders.c.expiration_s)
    found: dict[str, sa.Row[Any]] = {}
    for joined in (
        due.join(orders, orders.c.order_id == trades.c.taker_order_id),
        due.join(fills, fills.c.trade_id == trades.c.trade_id).join(
            orders, orders.c.order_id == fills.c.maker_order_id
        ),
    ):
        expiring = joined.where(orders.c.expiration_s > 0)
        for row in await tx.all(expiring.order_by(orders.c.expiration_s).limit(limit)):
            known = found.get(row.trade)
            if known is None or row.expiration_s < known.expiration_s:
                found[row.trade] = row
    return sorted(found.values(), key=lambda row: row.expiration_s)[:limit]


def _due(
    closed: Collection[Address], may_be_tried: sa.ColumnElement[bool]
) -> sa.Select[tuple[Any, ...]]:
    """Return the query of the trades that may be tried, of exchanges that are not closed."""
    return (
        sa.select(
            trades.c.trade_id.label("trade"),
            trades.c.matched_at_ms,
            trades.c.sequence,
            _DUE_AT_MS.label("due_at_ms"),
            settled_trades,
        )
        .select_from(trades)
        .outerjoin(settled_trades, settled_trades.c.trade_id == trades.c.trade_id)
        .where(
            trades.c.status.in_(UNSETTLED),
            may_be_tried,
            sa.not_(_needs_split()),
            sa.not_(_IS_HALTED),
            sa.not_(_is_closed(closed)),
        )
    )


def _is_closed(closed: Collection[Address]) -> sa.ColumnElement[bool]:
    """Return whether a trade is one of these exchanges."""
    if not closed:
        return sa.false()
    theirs = sa.select(markets.c.condition_id).where(markets.c.exchange.in_(closed))
    return trades.c.condition_id.in_(theirs)


def _needs_split() -> sa.Exists:
    """Return whether a fill that is to leave a trade is still in it."""
    leaves = sa.and_(
        fills.c.trade_id == refused_orders.c.trade_id,
        fills.c.maker_order_id == refused_orders.c.order_id,
    )
    return (
        sa.select(refused_orders.c.order_id)
        .join(fills, leaves)
        .where(refused_orders.c.trade_id == trades.c.trade_id, refused_orders.c.part > 0)
        .exists()
    )


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
            _settlement(row),
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
    fails = sa.func.coalesce(sa.and_(_FAILED_OR_WAITS, has_failed), sa.false())
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
        sa.and_(_is_closed(closed), sa.not_(is_stored)),
        sa.and_(_IS_HALTED, sa.not_(is_named)),
    )


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
        )
        for row in rows
        for carrier in (landings.get(row.trade_id, row),)
    ]


def _settlement(row: sa.Row[Any]) -> Settlement:
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
