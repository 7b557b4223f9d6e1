"""Volumes of builders: their ranking in a period, and each day of theirs.

The figures are kept by day (`store/trading/builder_days.py`). A ranking of all days is a walk along an index; another one adds up
the days of its period, of all builders. The rank of a builder on a day is found among those of that day.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.builder_volumes import FIRST_DAY
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import builder_days, builder_totals
from foretell.store.wide_sums import HALF_BITS, HALF_MASK

_LIMIT: Final = sa.bindparam("rows", type_=sa.BigInteger)
_OFFSET: Final = sa.bindparam("skipped", type_=sa.BigInteger)
_SINCE: Final = sa.bindparam("since", type_=sa.BigInteger)
_BUILDER: Final = sa.bindparam("builder", type_=sa.Text)


class BuilderVolume(NamedTuple):
    """What the orders of a builder traded, for how many wallets, and its place among all builders."""

    rank: int
    builder: Bytes32
    volume_units: int
    users: int


class BuilderDayVolume(NamedTuple):
    """The same on one day."""

    day: int
    volume: BuilderVolume


async def load_builder_ranking(
    tx: Transaction, since_day: int, limit: int, offset: int
) -> Sequence[BuilderVolume]:
    """Return a page of the builders with the largest volumes since a day; of equal ones the one with the greater code."""
    values = {"rows": limit, "skipped": offset}
    if since_day > FIRST_DAY:
        values["since"] = since_day
    rows = await tx.all(_ranking(is_of_all=since_day == FIRST_DAY), values)
    return [_volume(rank, row) for rank, row in enumerate(rows, start=offset + 1)]


async def load_builder_days(
    tx: Transaction, since_day: int, builder: Bytes32 | None, limit: int, offset: int
) -> Sequence[BuilderDayVolume]:
    """Return a page of days of builders, or of one: the newest first, on each day the largest volume first."""
    values: dict[str, Any] = {"since": since_day, "rows": limit, "skipped": offset}
    if builder is not None:
        values["builder"] = builder
    rows = await tx.all(_days(is_of_one=builder is not None), values)
    return [BuilderDayVolume(row.day, _volume(row.above + 1, row)) for row in rows]


def _volume(rank: int, row: sa.Row[Any]) -> BuilderVolume:
    units = (row.volume_high << HALF_BITS) + row.volume_low
    return BuilderVolume(rank, Bytes32(row.builder_code), units, row.users)


@lru_cache
def _ranking(*, is_of_all: bool) -> sa.Select[Any]:
    """Return the query of a ranking, built once."""
    source: sa.FromClause = builder_totals if is_of_all else _added_up()
    names = ("builder_code", "volume_high", "volume_low", "users")
    order = (source.c[name].desc() for name in ("volume_high", "volume_low", "builder_code"))
    page = sa.select(*(source.c[name] for name in names)).order_by(*order)
    return page.limit(_LIMIT).offset(_OFFSET)


def _added_up() -> sa.Subquery:
    """Return the sums of each builder since a day; the halves are carried, so that they sort.

    The code is one that no index has: SQLite would walk along all days of each builder, which are in the order of codes.
    """
    days = builder_days.c
    code = days.builder_code.concat("")
    high, low, users = (
        sa.cast(sa.func.sum(column), sa.BigInteger)
        for column in (days.volume_high, days.volume_low, days.last_users)
    )
    sums = (
        sa.select(
            code.label("builder_code"),
            high.label("high"),
            low.label("low"),
            users.label("users"),
        )
        .where(days.day >= _SINCE)
        .group_by(code)
        .subquery("sums")
    )
    carried = sums.c.low.op(">>")(sa.literal(HALF_BITS, sa.Integer))
    return sa.select(
        sums.c.builder_code,
        (sums.c.high + carried).label("volume_high"),
        sums.c.low.op("&")(HALF_MASK).label("volume_low"),
        sums.c.users,
    ).subquery("added_up")


@lru_cache
def _days(*, is_of_one: bool) -> sa.Select[Any]:
    """Return the query of days, built once; the ranks are counted for the rows of the page alone.

    One builder's days are in the order of its key, those of all in that of the other index. The ranks are compared with
    expressions: of two columns SQLite would look up the first in the index, and pass over all rows of the day.
    """
    days = builder_days.c
    query = sa.select(builder_days).where(days.day >= _SINCE)
    if is_of_one:
        query = query.where(days.builder_code == _BUILDER).order_by(days.day.desc())
    else:
        query = query.order_by(*_descending(builder_days))
    found = query.limit(_LIMIT).offset(_OFFSET).subquery("page")
    page = found.c
    other = builder_days.alias("other").c
    above = sa.select(sa.func.count()).where(
        other.day == page.day,
        sa.tuple_(other.volume_high, other.volume_low, other.builder_code)
        > sa.tuple_(page.volume_high + 0, page.volume_low + 0, page.builder_code.concat("")),
    )
    ranked = sa.select(*page, above.scalar_subquery().label("above"))
    return ranked.order_by(*_descending(found))


def _descending(days: sa.FromClause) -> list[sa.ColumnElement[Any]]:
    place = ("day", "volume_high", "volume_low", "builder_code")
    return [days.c[name].desc() for name in place]
