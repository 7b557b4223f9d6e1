"""The marks that conditions should have: now, or at a past time, and which of them may have changed."""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.price_history import MINUTE_S
from foretell.domain.portfolio.prices import current_price
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import ROWS_PER_STATEMENT_MAX, Transaction
from foretell.store.index.generations import RunningSum
from foretell.store.index.rankings.progress import (
    ALL_CATEGORIES,
    NEVER_SEEN,
    PriceMark,
    RankingCursor,
    load_stale_conditions,
)
from foretell.store.quoted_columns import QUOTED, REPORTED, SETTLED_MS, book_top, payout
from foretell.store.tables import events, markets, payouts, quote_points, quotes, ranking_marks
from foretell.store.tables.trading import OF_ANY_MINUTE

QUOTES_PER_READ_MAX: Final = 5_000
"""Quotes that are compared with their marks in one transaction."""
BEFORE_ALL_CONDITIONS: Final = ""

_WANTED: Final = sa.column("wanted_id", sa.Text)


async def load_current_marks(
    tx: Transaction, condition_ids: Collection[Bytes32]
) -> dict[Bytes32, PriceMark]:
    """Return the marks by the books and payouts of now."""
    marks: dict[Bytes32, PriceMark] = {}
    for part in _parts(condition_ids):
        wanted = _wanted(part)
        rows = await tx.all(
            sa.select(
                wanted.c.wanted_id,
                *QUOTED,
                *REPORTED,
                quotes.c.updated_at_ms,
                events.c.main_category_slug,
            ).select_from(
                _listed(wanted)
                .outerjoin(quotes, quotes.c.condition_id == wanted.c.wanted_id)
                .outerjoin(payouts, payouts.c.condition_id == wanted.c.wanted_id)
            )
        )
        marks |= {Bytes32(row.wanted_id): _mark(row, row.updated_at_ms) for row in rows}
    return marks


async def load_marks_at(
    tx: Transaction, condition_ids: Collection[Bytes32], at_s: int
) -> dict[Bytes32, PriceMark]:
    """Return the marks by the last full minute before a time, and the payouts before it."""
    marks: dict[Bytes32, PriceMark] = {}
    then = quote_points.alias("then")
    for part in _parts(condition_ids):
        wanted = _wanted(part)
        newest = (
            sa.select(sa.func.max(quote_points.c.minute))
            .where(
                quote_points.c.condition_id == wanted.c.wanted_id,
                quote_points.c.minute < at_s // MINUTE_S,
            )
            .correlate(wanted)
            .scalar_subquery()
        )
        is_point = sa.and_(then.c.condition_id == wanted.c.wanted_id, then.c.minute == newest)
        is_paid = sa.and_(
            payouts.c.condition_id == wanted.c.wanted_id, payouts.c.timestamp_s < at_s
        )
        rows = await tx.all(
            sa.select(
                wanted.c.wanted_id,
                *(then.c[column.name] for column in QUOTED),
                *REPORTED,
                events.c.main_category_slug,
            ).select_from(_listed(wanted).outerjoin(then, is_point).outerjoin(payouts, is_paid))
        )
        marks |= {Bytes32(row.wanted_id): _mark(row, NEVER_SEEN) for row in rows}
    return marks


class ChangedQuotes(NamedTuple):
    """Conditions whose quotes differ from their marks, of the quotes up to one; None at the end of them."""

    condition_ids: Collection[Bytes32]
    last: str | None


async def load_changed_conditions(
    tx: Transaction, cursor: RankingCursor, until_s: int, limit: int
) -> set[Bytes32]:
    """Return conditions whose marks may have changed since the cursor was here.

    Those of now are also compared with the quotes: see `load_changed_quotes`.
    """
    found = set(await load_stale_conditions(tx, cursor.sum, limit))
    if cursor.sum.period is not Period.ALL:
        found |= await _quoted_between(tx, cursor.at_s, until_s)
    listed = await tx.all(
        sa.select(markets.c.condition_id)
        .where(markets.c.market_id > cursor.market_id)
        .order_by(markets.c.market_id)
    )
    return found | {Bytes32(row.condition_id) for row in listed}


async def load_changed_quotes(
    tx: Transaction, of_sum: RunningSum, after: str, compared_s: int
) -> ChangedQuotes:
    """Compare the next quotes with their marks, at most `QUOTES_PER_READ_MAX` in the order of their conditions.

    A quote that was not settled when quotes were last compared counts as changed.
    """
    settled_ms = 1000 * compared_s - SETTLED_MS
    quoted, mark = quotes.c, ranking_marks.c
    last = await tx.scalar(
        sa.select(quoted.condition_id)
        .where(quoted.condition_id > after)
        .order_by(quoted.condition_id)
        .offset(QUOTES_PER_READ_MAX - 1)
        .limit(1)
    )

    def is_next(column: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        return column > after if last is None else sa.and_(column > after, column <= last)

    same = sa.and_(mark.period == of_sum.key, mark.condition_id == quoted.condition_id)
    rows = await tx.all(
        sa.select(quoted.condition_id)
        .outerjoin(ranking_marks, sa.and_(same, is_next(mark.condition_id)))
        .where(
            is_next(quoted.condition_id),
            sa.or_(
                mark.seen_ms.is_(None),
                mark.seen_ms != quoted.updated_at_ms,
                quoted.updated_at_ms > settled_ms,
            ),
            mark.next_price.is_(None),
        )
    )
    return ChangedQuotes({Bytes32(row.condition_id) for row in rows}, last)


async def load_last_market(tx: Transaction) -> int:
    """Return the id of the newest market, 0 before the first."""
    return int(await tx.scalar(sa.select(sa.func.max(markets.c.market_id))) or 0)


async def _quoted_between(tx: Transaction, start_s: int, end_s: int) -> set[Bytes32]:
    rows = await tx.all(
        sa.select(quote_points.c.condition_id)
        .where(
            OF_ANY_MINUTE,
            quote_points.c.minute >= start_s // MINUTE_S,
            quote_points.c.minute < end_s // MINUTE_S,
        )
        .distinct()
    )
    return {Bytes32(row.condition_id) for row in rows}


def _parts(condition_ids: Collection[Bytes32]) -> list[list[Bytes32]]:
    ids = sorted(condition_ids)
    return [
        ids[start : start + ROWS_PER_STATEMENT_MAX]
        for start in range(0, len(ids), ROWS_PER_STATEMENT_MAX)
    ]


def _wanted(ids: Sequence[Bytes32]) -> sa.CTE:
    return sa.values(_WANTED, name="wanted").data([(each,) for each in ids]).cte("wanted")


def _listed(wanted: sa.CTE) -> sa.Join:
    return wanted.outerjoin(markets, markets.c.condition_id == wanted.c.wanted_id).outerjoin(
        events, events.c.event_id == markets.c.event_id
    )


def _mark(row: Any, seen_ms: int | None) -> PriceMark:
    price = current_price(book_top(row), payout(row), is_yes=True)
    return PriceMark(price, row.main_category_slug or ALL_CATEGORIES, seen_ms or NEVER_SEEN)
