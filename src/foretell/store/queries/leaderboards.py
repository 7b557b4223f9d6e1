"""Who traded most, who gained most, and what was won: all wallets against each other.

What a position was worth in the past is told by the history of quotes. Sums are floating point, to be
rounded to base units.
"""

import enum
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.queries.valuation import (
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

_IS_YES: Final = positions.c.token_id == conditions.c.token_yes


class StandingOrder(enum.Enum):
    """What wallets are ranked by."""

    GAIN = enum.auto()
    VOLUME = enum.auto()


class Race(NamedTuple):
    """What counts: since when, in which main category; None leaves it open."""

    since_s: int | None
    main_category: str | None


class Standing(NamedTuple):
    """A wallet's place in a ranking."""

    rank: int
    wallet: Address
    volume_units: int
    gain_units: int


class Win(NamedTuple):
    """A position that was closed with a gain; the market's fields are None where it is not ours."""

    wallet: Address
    event_title: str | None
    event_slug: str | None
    slug: str | None
    icon: str | None
    spent_units: int
    realized_units: int


async def load_standings(
    tx: Transaction,
    race: Race,
    order: StandingOrder,
    *,
    limit: int,
    offset: int,
    wallet: Address | None = None,
) -> Sequence[Standing]:
    """Return a page of the ranking, or where one wallet stands in it.

    A wallet that neither traded nor gained or lost anything meanwhile has no place.
    """
    gains, volumes = _gains(race).subquery(), _volumes(race).subquery()
    volume = sa.func.coalesce(volumes.c.volume_units, 0)
    by = {StandingOrder.GAIN: gains.c.gain, StandingOrder.VOLUME: volume}[order]
    taking_part = volume > 0
    if order is StandingOrder.GAIN:
        taking_part = sa.or_(taking_part, sa.func.abs(gains.c.gain) * 2 >= 1)
    ranked = (
        sa.select(
            sa.func.row_number().over(order_by=(by.desc(), gains.c.wallet)).label("rank"),
            gains.c.wallet,
            volume.label("volume_units"),
            gains.c.gain,
        )
        .outerjoin(volumes, volumes.c.wallet == gains.c.wallet)
        .where(taking_part)
        .subquery()
    )
    query = sa.select(ranked).order_by(ranked.c.rank).limit(limit).offset(offset)
    if wallet is not None:
        query = query.where(ranked.c.wallet == wallet)
    return [
        Standing(row.rank, Address(row.wallet), int(row.volume_units), round(row.gain))
        for row in await tx.all(query)
    ]


async def load_wins(tx: Transaction, race: Race, *, limit: int, offset: int) -> Sequence[Win]:
    """Return the positions that were closed with the largest gains."""
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
        .where(held.size_units == 0, held.realized_units > 0, *_of_category(race))
        .order_by(held.realized_units.desc(), held.wallet, held.token_id)
        .limit(limit)
        .offset(offset)
    )
    if race.since_s is not None:
        query = query.where(held.changed_at_s >= race.since_s)
    return [Win._make(row) for row in await tx.all(query)]


def _volumes(race: Race) -> sa.Select[Any]:
    """What each wallet traded."""
    query = (
        sa.select(activities.c.wallet, sa.func.sum(activities.c.cost_units).label("volume_units"))
        .select_from(_listed(activities, activities.c.condition_id))
        .where(activities.c.kind == ActivityKind.TRADE.value, *_of_category(race))
        .group_by(activities.c.wallet)
    )
    if race.since_s is not None:
        query = query.where(activities.c.timestamp_s >= race.since_s)
    return query


def _gains(race: Race) -> sa.Select[Any]:
    """What each wallet's positions gained, realised or not."""
    held = positions.c
    tables = (
        _listed(positions, held.condition_id)
        .join(conditions, conditions.c.condition_id == held.condition_id)
        .outerjoin(quotes, quotes.c.condition_id == held.condition_id)
        .outerjoin(payouts, payouts.c.condition_id == held.condition_id)
    )
    gain = _gain(held, of_token(current_price_of_yes(), _IS_YES))
    if race.since_s is not None:
        tables, before = _with_before(tables, race.since_s)
        gain -= before
    return (
        sa.select(held.wallet, sa.func.sum(gain).label("gain"))
        .select_from(tables)
        .where(*_of_category(race))
        .group_by(held.wallet)
    )


def _gain(position: Any, price: Real) -> Real:
    """Return what a position realised, and is worth beyond its cost."""
    return (
        real(position.realized_units)
        + real(position.size_units) * price
        - real(position.cost_units)
    )


def _with_before(tables: sa.Join, since_s: int) -> tuple[sa.Join, Real]:
    """Return the tables with the positions of a past moment, and what these had gained by then."""
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
    price = of_token(current_price_of_yes_at(since_s, held.condition_id), _IS_YES)
    return tables, sa.case((before.c.wallet.is_(None), real(0)), else_=_gain(before.c, price))


def _listed(table: sa.Table, condition_id: sa.Column[Any]) -> sa.Join:
    """Return the rows with their markets and events, where they have any."""
    return table.outerjoin(markets, markets.c.condition_id == condition_id).outerjoin(
        events, events.c.event_id == markets.c.event_id
    )


def _of_category(race: Race) -> list[sa.ColumnElement[bool]]:
    if race.main_category is None:
        return []
    return [events.c.main_category_slug == race.main_category]
