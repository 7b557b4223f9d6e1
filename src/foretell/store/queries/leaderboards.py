"""Rankings of all wallets by volume and by gain, and the largest wins.

Past prices come from the history of quotes. Sums are floating point and are rounded to base units.
"""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.queries.valuation import (
    IS_YES,
    Real,
    current_price_of_yes,
    current_price_of_yes_at,
    of_token,
    real,
)
from foretell.store.tables import (
    activities,
    conditions,
    events,
    markets,
    payouts,
    position_changes,
    positions,
    quotes,
)


class RankingOrder(enum.Enum):
    """Sort keys of rankings."""

    GAIN = enum.auto()
    VOLUME = enum.auto()


class RankingScope(NamedTuple):
    """The time and the main category that a ranking covers; None covers all."""

    since_s: int | None
    main_category: str | None


class Ranking(NamedTuple):
    """A wallet's rank."""

    rank: int
    wallet: Address
    volume_units: int
    gain_units: int


class Win(NamedTuple):
    """A position closed with a gain; the market's fields are None for a condition without a market."""

    wallet: Address
    event_title: str | None
    event_slug: str | None
    slug: str | None
    icon: str | None
    spent_units: int
    realized_units: int


async def load_rankings(
    tx: Transaction,
    scope: RankingScope,
    order: RankingOrder,
    *,
    limit: int,
    offset: int,
    wallet: Address | None = None,
) -> Sequence[Ranking]:
    """Return a page of the ranking, or the standing of one wallet.

    A wallet without a trade, a gain or a loss in the scope is not ranked.
    """
    gains, volumes = _gains(scope).subquery(), _volumes(scope).subquery()
    volume = sa.func.coalesce(volumes.c.volume_units, 0)
    by = {RankingOrder.GAIN: gains.c.gain, RankingOrder.VOLUME: volume}[order]
    is_ranked = volume > 0
    if order is RankingOrder.GAIN:
        is_ranked = sa.or_(is_ranked, sa.func.abs(gains.c.gain) * 2 >= 1)
    ranked = (
        sa.select(
            sa.func.row_number().over(order_by=(by.desc(), gains.c.wallet)).label("rank"),
            gains.c.wallet,
            volume.label("volume_units"),
            gains.c.gain,
        )
        .outerjoin(volumes, volumes.c.wallet == gains.c.wallet)
        .where(is_ranked)
        .subquery()
    )
    query = sa.select(ranked).order_by(ranked.c.rank).limit(limit).offset(offset)
    if wallet is not None:
        query = query.where(ranked.c.wallet == wallet)
    return [
        Ranking(row.rank, Address(row.wallet), int(row.volume_units), round(row.gain))
        for row in await tx.all(query)
    ]


async def load_wins(
    tx: Transaction, scope: RankingScope, *, limit: int, offset: int
) -> Sequence[Win]:
    """Return the closed positions with the largest gains."""
    held = positions.c
    query = (
        sa.select(
            held.wallet,
            events.c.title,
            events.c.slug.label("event_slug"),
            markets.c.slug,
            markets.c.icon,
            held.spent_units,
            held.realized_units,
        )
        .select_from(_listed(positions, held.condition_id))
        .where(held.size_units == 0, held.realized_units > 0, *_of_category(scope))
        .order_by(held.realized_units.desc(), held.wallet, held.token_id)
        .limit(limit)
        .offset(offset)
    )
    if scope.since_s is not None:
        query = query.where(held.changed_at_s >= scope.since_s)
    return [Win._make(row) for row in await tx.all(query)]


def _volumes(scope: RankingScope) -> sa.Select[Any]:
    """Return the volume of each wallet."""
    query = (
        sa.select(activities.c.wallet, sa.func.sum(activities.c.cost_units).label("volume_units"))
        .select_from(_listed(activities, activities.c.condition_id))
        .where(activities.c.kind == ActivityKind.TRADE.value, *_of_category(scope))
        .group_by(activities.c.wallet)
    )
    if scope.since_s is not None:
        query = query.where(activities.c.timestamp_s >= scope.since_s)
    return query


def _gains(scope: RankingScope) -> sa.Select[Any]:
    """Return the realized and unrealized gain of each wallet."""
    held = positions.c
    tables = (
        _listed(positions, held.condition_id)
        .join(conditions, conditions.c.condition_id == held.condition_id)
        .outerjoin(quotes, quotes.c.condition_id == held.condition_id)
        .outerjoin(payouts, payouts.c.condition_id == held.condition_id)
    )
    gain = _gain(held, of_token(current_price_of_yes(), IS_YES))
    if scope.since_s is not None:
        tables, before = _with_before(tables, scope.since_s)
        gain -= before
    return (
        sa.select(held.wallet, sa.func.sum(gain).label("gain"))
        .select_from(tables)
        .where(*_of_category(scope))
        .group_by(held.wallet)
    )


def _gain(position: Any, price: Real) -> Real:
    """Return a position's realized gain, and its value beyond its cost."""
    return (
        real(position.realized_units)
        + real(position.size_units) * price
        - real(position.cost_units)
    )


def _with_before(tables: sa.Join, since_s: int) -> tuple[sa.Join, Real]:
    """Return the tables joined with the positions of a past time, and their gain at that time."""
    held, older = positions.c, position_changes.alias("older")
    same = [older.c.wallet == held.wallet, older.c.token_id == held.token_id]
    newest = (
        sa.select(sa.func.max(older.c.block_number))
        .where(*same, older.c.changed_at_s < since_s)
        .correlate(positions)
        .scalar_subquery()
    )
    before = position_changes.alias("before")
    tables = tables.outerjoin(
        before,
        sa.and_(
            before.c.wallet == held.wallet,
            before.c.token_id == held.token_id,
            before.c.block_number == newest,
        ),
    )
    price = of_token(current_price_of_yes_at(since_s, held.condition_id), IS_YES)
    return tables, sa.case((before.c.wallet.is_(None), real(0)), else_=_gain(before.c, price))


def _listed(table: sa.Table, condition_id: sa.Column[Any]) -> sa.Join:
    """Return the rows joined with their markets and events, if they have any."""
    return table.outerjoin(markets, markets.c.condition_id == condition_id).outerjoin(
        events, events.c.event_id == markets.c.event_id
    )


def _of_category(scope: RankingScope) -> list[sa.ColumnElement[bool]]:
    if scope.main_category is None:
        return []
    return [events.c.main_category_slug == scope.main_category]
