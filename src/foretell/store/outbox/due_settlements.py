"""Trades that are due for a try: which of them go first when more wait than may go.

Settlement has a bounded number of places, and anybody may have many trades wait. So the places are divided twice:
between new trades, those beside a failing one, and those that failed; and within each of these between takers, who
have their turns.
"""

from collections.abc import Collection, Sequence
from itertools import chain, zip_longest
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.waiting.places import PLACES_SHARED_MIN, few_places_of, places_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.outbox.settlements import (
    FAILED_OR_WAITS,
    IS_HALTED,
    UNSETTLED,
    is_of_closed,
    settlement_of,
)
from foretell.store.tables import fills, orders, refused_orders, settled_trades, trades
from foretell.store.trading.trades import OLDEST_FIRST

RETRY_AHEAD_MS_MAX: Final = 600_000
"""A retry that is due later was stored before the clock was set back, and is due."""
TURN_MS: Final = 10_000
"""How much later in a turn a new trade comes for each trade that its taker has waiting."""
_DUE_AT_MS: Final = sa.func.coalesce(settled_trades.c.retry_at_ms, trades.c.matched_at_ms)


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
    `batched_max`, if that is more.

    When more trades of a group wait than there are places, their takers have turns: the oldest trade of each, then the
    second of each; of one turn, a new trade comes the later the more trades its taker has waiting, and one that was
    tried when it is due again. So nobody waits for the many trades of another, nor without end for the single trades of
    others. Of the first group, every second one is then of those whose orders expire first, and it comes last, in the
    order of the turns: who calls may have room for fewer.
    """
    if limit <= 0:
        return []
    is_new = settled_trades.c.trade_id.is_(None)
    is_beside_failing = _is_beside_failing(has_failing=await _has_failing(tx))
    is_fair = sa.and_(is_new, sa.not_(is_beside_failing))
    waits = settled_trades.c.retry_at_ms.between(now_ms + 1, now_ms + RETRY_AHEAD_MS_MAX)
    is_due = sa.and_(FAILED_OR_WAITS, sa.not_(waits))
    has_failed = settled_trades.c.attempts > 0
    most_new = max(limit, batched_max)
    groups = [
        await _load_due(tx, most, limit, closed, may_be_tried)
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
    new, *others = groups
    is_crowded = len(new) >= min(most_new, limit + 1, places[0] + 1)
    if is_crowded:
        soon = await _load_expiring(tx, places[0] // 2, closed, is_fair)
        new = _by_turns(new, soon)
    due = [row for rows, most in zip(others, places[1:], strict=True) for row in rows[:most]]
    due += new[: places[0]]
    if not is_crowded:
        due.sort(key=lambda row: (row.matched_at_ms, row.sequence, row.trade))
    return [settlement_of(row) for row in due]


def _by_turns(*lists: Sequence[sa.Row[Any]]) -> list[sa.Row[Any]]:
    """Return the trades of several lists, one of each in turn, and each trade once."""
    mixed = chain.from_iterable(zip_longest(*lists))
    return list({row.trade: row for row in mixed if row is not None}.values())


async def _has_failing(tx: Transaction) -> bool:
    return await tx.first(_failing().limit(1)) is not None


def _failing() -> sa.Select[tuple[str]]:
    """Return the query of the trades that failed a try and are tried again."""
    return sa.select(settled_trades.c.trade_id).where(
        FAILED_OR_WAITS, settled_trades.c.attempts > 0
    )


def _is_beside_failing(*, has_failing: bool) -> sa.ColumnElement[bool]:
    """Return whether a wallet of a trade has another one that failed a try and is tried again.

    The wallets are found once for a query: PostgreSQL would search them again for each trade.
    """
    if not has_failing:
        return sa.false()
    failing = _failing().cte("failing").prefix_with("MATERIALIZED", dialect="postgresql")
    taken, made, other = trades.alias(), fills.alias(), fills.alias()
    both = sa.union(
        sa.select(taken.c.taker.label("wallet")).join(
            failing, failing.c.trade_id == taken.c.trade_id
        ),
        sa.select(made.c.maker.label("wallet")).join(
            failing, failing.c.trade_id == made.c.trade_id
        ),
    )
    found = both.cte("failing_wallets").prefix_with("MATERIALIZED", dialect="postgresql")
    wallets = sa.select(found.c.wallet).scalar_subquery()
    is_of_maker = sa.exists().where(
        other.c.trade_id == trades.c.trade_id, other.c.maker.in_(wallets)
    )
    return sa.or_(trades.c.taker.in_(wallets), is_of_maker)


async def _load_due(
    tx: Transaction,
    limit: int,
    places: int,
    closed: Collection[Address],
    may_be_tried: sa.ColumnElement[bool],
) -> Sequence[sa.Row[Any]]:
    """Return the longest due of the trades that may be tried; in turns of their takers, if they exceed the places."""
    due = _due(closed, may_be_tried)
    most = min(limit, places + 1)
    rows = await tx.all(due.order_by(_DUE_AT_MS, *OLDEST_FIRST).limit(most))
    if len(rows) < most:
        return rows
    taker = trades.c.taker
    turn = sa.func.row_number().over(partition_by=taker, order_by=(_DUE_AT_MS, *OLDEST_FIRST))
    waiting = sa.func.count().over(partition_by=taker)
    turns = due.add_columns(turn.label("turn"), waiting.label("waiting")).subquery()
    later_ms = sa.case((turns.c.trade_id.is_(None), TURN_MS * turns.c.waiting), else_=0)
    by_turn = (turns.c.turn, turns.c.due_at_ms + later_ms)
    oldest_first = (turns.c.matched_at_ms, turns.c.sequence, turns.c.trade)
    return await tx.all(sa.select(turns).order_by(*by_turn, *oldest_first).limit(limit))


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
            sa.not_(IS_HALTED),
            sa.not_(is_of_closed(closed)),
        )
    )


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
