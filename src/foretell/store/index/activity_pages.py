"""Pages of activities, along indexes that have the rows of each role in the order of the page.

A page merges the rows of its roles as it reads them, so it visits few rows that it does not return, however rare
what it asks for is. The rows of several markets, or of classes of amounts, are merged from the first rows of each.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from foretell.store.database import STATEMENTS_KEPT_MAX, Transaction
from foretell.store.index.activities import (
    ACTIVITY,
    ActivityFilter,
    ActivityOrder,
    ActivityPage,
    ActivityRow,
    activity_row,
)
from foretell.store.index.activity_roles import ALL_ROLES, roles_of
from foretell.store.index.amount_classes import class_of
from foretell.store.lookups import among
from foretell.store.tables import activities

RARE_ROWS_MAX: Final = 10_000
"""So many activities are sorted; if more match, the newest are found by walking back in time."""
LEAST_CLASS_SHARE: Final = 4
"""Classes of amounts are walked if of so many rows of the least one, for each row of the page, enough match."""

_LARGE: Final = ("size_units_min", "cost_units_min")
_VALUES: Final = ("wallet", "start_s", "end_s", *_LARGE)
"""The fields of a filter that are parameters of its statement, each by its name."""
_LIST: Final = "listed"
"""The parameter of a list of branches: markets, or classes of amounts."""
_FIRST: Final = "first"
"""The parameter of the number of rows up to the end of the page."""
_CONDITION: Final = "condition_id"
_CLASS: Final = "cost_class"


class _Shape(NamedTuple):
    """The part of a read that its statement's text depends on; all else are its parameters."""

    names: tuple[str, ...]
    roles: tuple[int, ...]
    order: ActivityOrder = ActivityOrder.TIME
    is_descending: bool = True
    branch: str = ""
    is_rare: bool = False


async def load_activities(
    tx: Transaction, chosen: ActivityFilter, page: ActivityPage
) -> Sequence[ActivityRow]:
    """Return one page of the activities that match the filter."""
    roles, condition_ids = _roles(chosen), chosen.condition_ids
    if not roles or (condition_ids is not None and not condition_ids):
        return []
    values = {name: each for name in _VALUES if (each := getattr(chosen, name)) is not None}
    shape = _Shape(tuple(values), roles, page.order, page.is_descending)
    listed: Sequence[Any] = sorted(condition_ids or ())
    # A sum is in no index: few rows are found by their amount and sorted, and of many the newest by their time.
    if (classes := await _classes(tx, chosen, shape, page)) is not None:
        shape, listed = shape._replace(branch=_CLASS), classes
    elif await _is_rare(tx, shape, values):
        shape = shape._replace(is_rare=True, branch=_CONDITION if listed else "")
    elif len(listed) > 1:
        shape = shape._replace(branch=_CONDITION)
    elif listed:
        shape = shape._replace(names=(*shape.names, _CONDITION))
        values[_CONDITION] = listed[0]
    elif roles == ALL_ROLES and chosen.wallet and page.order is ActivityOrder.TIME:
        shape = shape._replace(roles=())  # an index has all roles of a wallet in this order
    values |= {"rows": page.limit, "passed": page.offset, _FIRST: page.offset + page.limit}
    if shape.branch:
        values[_LIST] = _encoded(tx.dialect, listed) if not shape.is_rare else listed
    return [activity_row(row) for row in await tx.all(_statement(tx.dialect, shape), values)]


def _roles(chosen: ActivityFilter) -> tuple[int, ...]:
    side = None if chosen.side is None else chosen.side.name
    return roles_of(chosen.kinds, side, takers_only=chosen.takers_only)


def _encoded(dialect: str, listed: Sequence[Any]) -> Any:
    return msgspec.json.encode(listed).decode() if dialect == "sqlite" else listed


async def _classes(
    tx: Transaction, chosen: ActivityFilter, shape: _Shape, page: ActivityPage
) -> Sequence[int] | None:
    """Return the classes of costs from the least one on, for what takers traded of all markets, in the order of time.

    None where their first rows are many, or where so little of the least class matches that a sort or a walk in time may
    find a page sooner.
    """
    is_of_all = chosen.wallet is None and chosen.condition_ids is None and chosen.takers_only
    least = chosen.cost_units_min if chosen.size_units_min is None else None
    if least is None or not is_of_all or page.order is not ActivityOrder.TIME:
        return None
    rows_max = page.offset + page.limit
    asked = {
        "of_class": class_of(least),
        "least": least,
        _FIRST: LEAST_CLASS_SHARE * rows_max,
    }
    of_roles = _Shape((), shape.roles, is_descending=page.is_descending)
    [found] = await tx.all(_least_class(tx.dialect, of_roles), asked)
    classes = list(range(class_of(least), (found.greatest or 0) + 1))
    has_page = found.matching >= rows_max or found.rows < asked[_FIRST]
    if not has_page or len(classes) * rows_max > RARE_ROWS_MAX:
        return None
    return classes


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _least_class(dialect: str, shape: _Shape) -> sa.Select[Any]:
    """Return the query for the first rows of a class, how many are large enough, and the greatest class."""
    act = activities.c
    of_class = act.is_taker, act.cost_class == sa.bindparam("of_class", type_=sa.BigInteger)
    columns = act.timestamp_s, act.block_number, act.log_index, act.part, act.cost_units
    first = (
        _by_role(dialect, activities, columns, shape, *of_class)
        .order_by(*_order(shape))
        .limit(_number(_FIRST))
        .subquery()
    )
    matching = sa.func.count().filter(first.c.cost_units >= _number("least"))
    greatest = sa.select(sa.func.max(act.cost_class)).where(act.is_taker).scalar_subquery()
    return sa.select(
        sa.func.count().label("rows"), matching.label("matching"), greatest.label("greatest")
    ).select_from(first)


async def _is_rare(tx: Transaction, shape: _Shape, values: dict[str, Any]) -> bool:
    """Return whether few activities are so large that they are found faster by their amount than by their time.

    Those of all markets are counted: there is no index of the amounts within one.
    """
    asked: dict[str, Any] = {name: values[name] for name in ("wallet", *_LARGE) if name in values}
    if asked.keys() <= {"wallet"}:
        return False
    query = _large_count(_Shape(tuple(asked), shape.roles, is_rare=True))
    return bool(await tx.scalar(query, {**asked, "rows": RARE_ROWS_MAX + 1}) <= RARE_ROWS_MAX)


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _large_count(shape: _Shape) -> sa.Select[Any]:
    of_roles = [activities.c.role.in_(shape.roles)] if "wallet" in shape.names else []
    found = sa.select(sa.literal(1)).where(*_clauses(activities, shape), *of_roles)
    limited = found.select_from(activities).limit(_number("rows")).subquery()
    return sa.select(sa.func.count()).select_from(limited)


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _statement(dialect: str, shape: _Shape) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    """Return the query for a page of one shape, in which all values are parameters; building it takes longer than running it."""
    query: sa.Select[Any] | sa.CompoundSelect[Any]
    if shape.is_rare:
        query, order = _sorted_rows(shape), _sorted_order(shape)
    elif shape.branch:
        query, order = _of_branches(dialect, shape), _order(shape)
    else:
        query, order = _by_role(dialect, activities, ACTIVITY, shape), _order(shape)
    return query.order_by(*order).limit(_number("rows")).offset(_number("passed"))


def _by_role(
    dialect: str,
    table: sa.FromClause,
    columns: Sequence[sa.ColumnElement[Any]],
    shape: _Shape,
    *also: sa.ColumnElement[bool],
) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    """Return the query for the rows of each role; a database merges those of several as far as they are read.

    SQLite has each part in the order of the whole, and PostgreSQL in the order that the part itself names.
    """
    query = sa.select(*columns).select_from(table).where(*also, *_clauses(table, shape))
    parts = [query.where(table.c.role == sa.literal_column(str(role))) for role in shape.roles]
    if len(parts) < 2:  # noqa: PLR2004 - one has nothing to be merged with
        return parts[0] if parts else query
    if dialect != "sqlite":
        parts = [part.order_by(*_order(shape)).limit(_number(_FIRST)) for part in parts]
    return sa.union_all(*parts)


def _of_branches(dialect: str, shape: _Shape) -> sa.Select[Any]:
    """Return the query for the first rows of each branch: the page is among them.

    SQLite has no LATERAL, and finds the rows of a branch by a list of their numbers.
    """
    held = activities.alias("held")
    column = held.c[shape.branch]
    # An index has the classes of what takers traded alone.
    also = [column == sa.literal_column("wanted.value", column.type)]
    also += [held.c.is_taker] if shape.branch == _CLASS else []
    columns: Sequence[sa.ColumnElement[Any]] = [held.c[each.name] for each in ACTIVITY]
    if dialect == "sqlite":
        names = dict.fromkeys((shape.order.value, "block_number", "log_index", "part"))
        columns = [sa.literal_column("held.rowid").label("row"), *(held.c[name] for name in names)]
    found = _by_role(dialect, held, columns, shape, *also)
    first = found.order_by(*_order(shape)).limit(_number(_FIRST))
    if dialect == "sqlite":
        listed = sa.func.json_each(sa.bindparam(_LIST, type_=sa.Text))
        values = listed.table_valued("value", name="wanted")
        rows = sa.select(first.subquery("first").c.row)
        is_first = sa.literal_column("activities.rowid").in_(rows)
        return sa.select(*ACTIVITY).select_from(values.join(activities, is_first))
    listed = sa.func.unnest(sa.bindparam(_LIST, type_=postgresql.ARRAY(column.type)))
    values = listed.table_valued("value").render_derived(name="wanted")
    each = first.lateral("each")
    return sa.select(each).select_from(values.join(each, sa.true()))


def _order(shape: _Shape) -> list[sa.ColumnElement[Any]]:
    """Return the order of a page by the names of its columns."""
    names = (shape.order.value, "block_number", "log_index", "part")
    columns = [sa.literal_column(name, sa.BigInteger) for name in names]
    return [column.desc() if shape.is_descending else column.asc() for column in columns]


def _sorted_rows(shape: _Shape) -> sa.Select[Any]:
    """Return the query for rows that are found by their amount: no other index has any part in it."""
    act = activities.c
    role = act.role if "wallet" in shape.names else act.role + 0
    query = sa.select(*ACTIVITY).where(*_clauses(activities, shape), role.in_(shape.roles))
    return query.where((act.condition_id + "").in_(among(_LIST))) if shape.branch else query


def _sorted_order(shape: _Shape) -> list[sa.ColumnElement[Any]]:
    """Return the order of a page of few rows; that by their time is along no index."""
    act = activities.c
    by_amount = act[shape.order.value]
    first = by_amount + 0 if shape.order is ActivityOrder.TIME else by_amount
    columns: list[sa.ColumnElement[Any]] = [first, act.block_number, act.log_index, act.part]
    return [column.desc() if shape.is_descending else column.asc() for column in columns]


def _clauses(table: sa.FromClause, shape: _Shape) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of all values but a list; amounts are found along an index only where they are rare."""
    column = table.c
    size, cost = (
        each if shape.is_rare else each + 0 for each in (column.size_units, column.cost_units)
    )
    clauses = {
        "wallet": column.wallet == sa.bindparam("wallet", type_=sa.Text),
        _CONDITION: column.condition_id == sa.bindparam(_CONDITION, type_=sa.Text),
        "start_s": column.timestamp_s >= _number("start_s"),
        "end_s": column.timestamp_s <= _number("end_s"),
        "size_units_min": size >= _number("size_units_min"),
        "cost_units_min": cost >= _number("cost_units_min"),
    }
    return [clauses[name] for name in shape.names]


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)
