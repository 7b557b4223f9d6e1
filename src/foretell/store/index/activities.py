"""Activities of wallets on the chain (trades, splits, merges, redemptions), and the exchange's fills.

Written by the indexer.
"""

import enum
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import TradePrice
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import STATEMENTS_KEPT_MAX, Transaction
from foretell.store.index.amount_classes import class_of
from foretell.store.lookups import load_last
from foretell.store.many_rows import insert_many
from foretell.store.tables import activities, exchange_fills

RARE_ROWS_MAX: Final = 10_000
"""So many activities are sorted; if more match, the newest are found by walking back in time."""
LEAST_CLASS_SHARE: Final = 4
"""Classes of amounts are walked if of so many rows of the least one, for each row of the page, enough match."""


NO_TRADE: Final = sa.literal("TRADE", literal_execute=True)
"""What the kind of a row in the index of all but trades is not, in the form that the index has it."""


class ActivityKind(enum.StrEnum):
    """The kind of a wallet's activity."""

    TRADE = "TRADE"
    SPLIT = "SPLIT"
    MERGE = "MERGE"
    REDEEM = "REDEEM"
    CONVERSION = "CONVERSION"


class ActivityRow(NamedTuple):
    """One activity of a wallet; only a trade has a token, a side, and a part in its match."""

    block_number: int
    log_index: int
    part: int
    wallet: Address
    kind: ActivityKind
    condition_id: Bytes32
    token_id: AssetId | None
    side: Side | None
    size_units: int
    cost_units: int
    is_taker: bool
    timestamp_s: int
    tx_hash: Bytes32


_KIND, _SIDE = (ActivityRow._fields.index(name) for name in ("kind", "side"))
_KINDS: Final = {kind.value: kind for kind in ActivityKind}
_SIDES: Final[Mapping[str | None, Side | None]] = {None: None} | {side.name: side for side in Side}


class ExchangeFill(NamedTuple):
    """A fill of one order in one match; the amounts are before the fee, which is taken of the proceeds."""

    block_number: int
    log_index: int
    part: int
    order_id: Bytes32
    wallet: Address
    counterparty: Address
    side: Side
    token_id: AssetId
    size_units: int
    cost_units: int
    fee_units: int
    is_taker: bool
    tx_hash: Bytes32


class ActivityOrder(enum.Enum):
    """Sort keys of activities, by their columns."""

    TIME = "timestamp_s"
    SIZE = "size_units"
    COST = "cost_units"


class ActivityFilter(NamedTuple):
    """A filter for activities; None matches every value, and both ends of the time are included."""

    wallet: Address | None = None
    condition_ids: Collection[Bytes32] | None = None
    kinds: Collection[ActivityKind] | None = None
    side: Side | None = None
    start_s: int | None = None
    end_s: int | None = None
    takers_only: bool = False
    size_units_min: int | None = None
    cost_units_min: int | None = None


class ActivityPage(NamedTuple):
    """One page of a sorted list."""

    limit: int
    offset: int = 0
    order: ActivityOrder = ActivityOrder.TIME
    is_descending: bool = True


async def record_activities(tx: Transaction, acts: Sequence[ActivityRow]) -> None:
    """Store activities of wallets."""
    await insert_many(
        tx,
        activities,
        [
            (
                *(*act[:4], act.kind.value, *act[5:7], _name(act.side), *act[8:]),
                class_of(act.cost_units),
            )
            for act in acts
        ],
    )


async def record_exchange_fills(tx: Transaction, fills: Sequence[ExchangeFill]) -> None:
    """Store fills of the exchange."""
    await insert_many(
        tx, exchange_fills, [(*fill[:6], fill.side.name, *fill[7:]) for fill in fills]
    )


async def load_activities(
    tx: Transaction, chosen: ActivityFilter, page: ActivityPage
) -> Sequence[ActivityRow]:
    """Return one page of the activities that match the filter."""
    # A sum is in no index: few rows are found by their amount and sorted, and of many the newest by their time.
    classes = await _classes(tx, chosen, page)
    if classes is not None:
        rows = await tx.all(*_page_by_classes(tx.dialect, chosen, page, classes))
        return [activity_row(row) for row in rows]
    is_rare = await _is_rare(tx, chosen)
    branches = None if is_rare else _branches(chosen)
    if branches is None:
        query = sa.select(*ACTIVITY).where(*_conditions(activities, chosen, is_rare=is_rare))
        order = _order(activities, page, is_rare=is_rare)
    else:
        first = page.offset + page.limit
        query, order = _merged(tx.dialect, chosen, page, branches, first)
    rows = await tx.all(query.order_by(*order).limit(page.limit).offset(page.offset))
    return [activity_row(row) for row in rows]


_KIND_COLUMN: Final = "kind"
_CLASS_COLUMN: Final = "cost_class"
_NUMBERS: Final = ("start_s", "end_s", "cost_units_min")
"""The numbers of a filter that a page by classes may have."""
ACTIVITY: Final = [activities.c[name] for name in ActivityRow._fields]
"""The columns of an activity."""


class _Branches(NamedTuple):
    """The values of a column, for each of which an index has the rows in the order of time; or their parameter."""

    column: str
    values: Sequence[str] | sa.BindParameter[Any]

    def without(self, chosen: ActivityFilter) -> ActivityFilter:
        """Return the filter without that of the column."""
        if self.column == _KIND_COLUMN:
            return chosen._replace(kinds=None)
        if self.column == _CLASS_COLUMN:
            return chosen._replace(takers_only=False)
        return chosen._replace(condition_ids=None)

    def of_index(self, table: sa.FromClause) -> Sequence[sa.ColumnElement[bool]]:
        """Return the condition of the rows in the index, in the form that it has."""
        if self.column == _KIND_COLUMN:
            return [table.c.kind != NO_TRADE]
        return [table.c.is_taker] if self.column == _CLASS_COLUMN else []


def _branches(chosen: ActivityFilter) -> _Branches | None:
    """Return the branches of a filter for several markets, or for several kinds of a wallet, if it is one."""
    if chosen.condition_ids is not None and len(chosen.condition_ids) > 1:
        return _Branches("condition_id", sorted(chosen.condition_ids))
    if chosen.condition_ids is None and _has_no_trades(chosen) and len(chosen.kinds or ()) > 1:
        return _Branches(_KIND_COLUMN, sorted(kind.value for kind in chosen.kinds or ()))
    return None


def _has_no_trades(chosen: ActivityFilter) -> bool:
    """Return whether a filter is for activities of a wallet that are no trades."""
    kinds = chosen.kinds
    return chosen.wallet is not None and kinds is not None and ActivityKind.TRADE not in kinds


def _merged(
    dialect: str,
    chosen: ActivityFilter,
    page: ActivityPage,
    branches: _Branches,
    rows_max: int | sa.BindParameter[int],
) -> tuple[sa.Select[Any], list[sa.ColumnElement[Any]]]:
    """Return the query for so many first rows of each branch, and their order: the page is among them.

    SQLite has no LATERAL, and finds the rows of a branch by a list of their numbers.
    """
    held = activities.alias("held")
    clauses = _conditions(held, branches.without(chosen), is_rare=False)
    clauses += branches.of_index(held)
    wanted_values: Any = branches.values
    if dialect == "sqlite":
        if not isinstance(wanted_values, sa.BindParameter):
            wanted_values = msgspec.json.encode(wanted_values).decode()
        wanted = sa.func.json_each(wanted_values)
        values = wanted.table_valued("value", name="wanted")
        first: sa.Select[Any] = sa.select(sa.literal_column("held.rowid")).select_from(held)
    else:
        kind = postgresql.ARRAY(held.c[branches.column].type)
        wanted = sa.func.unnest(sa.cast(wanted_values, kind))
        values = wanted.table_valued("value", name="wanted").render_derived()
        first = sa.select(*(held.c[name] for name in ActivityRow._fields))
    first = (
        first.correlate(values)
        .where(held.c[branches.column] == values.c.value, *clauses)
        .order_by(*_order(held, page))
        .limit(rows_max)
    )
    if dialect == "sqlite":
        is_first = sa.literal_column("activities.rowid").in_(first)
        found = sa.select(*ACTIVITY).select_from(values.join(activities, is_first))
        return found, _order(activities, page)
    each = first.lateral("each")
    return sa.select(each).select_from(values.join(each, sa.true())), _order(each, page)


def _order(
    table: sa.FromClause, page: ActivityPage, *, is_rare: bool = False
) -> list[sa.ColumnElement[Any]]:
    """Return the order of a page; that of few rows by their time is along no index."""
    first: sa.ColumnElement[Any] = table.c[page.order.value]
    if is_rare and page.order is ActivityOrder.TIME:
        first = first + 0
    columns = [first, table.c.block_number, table.c.log_index, table.c.part]
    return [column.desc() if page.is_descending else column.asc() for column in columns]


async def _classes(
    tx: Transaction, chosen: ActivityFilter, page: ActivityPage
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
        "looked_at": LEAST_CLASS_SHARE * rows_max,
    }
    [found] = await tx.all(_LEAST_CLASS[page.is_descending], asked)
    classes = list(range(class_of(least), (found.greatest or 0) + 1))
    has_page = found.matching >= rows_max or found.rows < LEAST_CLASS_SHARE * rows_max
    if not has_page or len(classes) * rows_max > RARE_ROWS_MAX:
        return None
    return classes


def _page_by_classes(
    dialect: str, chosen: ActivityFilter, page: ActivityPage, classes: Sequence[int]
) -> tuple[sa.Select[Any], dict[str, Any]]:
    """Return the query for a page of the first rows of these classes, and its values."""
    numbers = {name: getattr(chosen, name) for name in _NUMBERS}
    asked = {name: value for name, value in numbers.items() if value is not None}
    same: dict[str, Any] = dict.fromkeys(asked, 0)
    shape = chosen._replace(kinds=chosen.kinds and tuple(sorted(chosen.kinds)), **same)
    values = {
        **asked,
        "classes": msgspec.json.encode(classes).decode() if dialect == "sqlite" else classes,
        "first": page.offset + page.limit,
        "rows": page.limit,
        "passed": page.offset,
    }
    return _by_classes(dialect, shape, is_descending=page.is_descending), values


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _by_classes(dialect: str, shape: ActivityFilter, *, is_descending: bool) -> sa.Select[Any]:
    """Return the query for filters of one shape, in which all numbers are parameters; building it takes longer than running it."""
    asked = [name for name in _NUMBERS if getattr(shape, name) is not None]
    numbers: dict[str, Any] = {name: _number(name) for name in asked}
    chosen = shape._replace(**numbers)
    kind = sa.Text() if dialect == "sqlite" else postgresql.ARRAY(sa.BigInteger)
    branches = _Branches(_CLASS_COLUMN, sa.bindparam("classes", type_=kind))
    page = ActivityPage(0, is_descending=is_descending)
    query, order = _merged(dialect, chosen, page, branches, _number("first"))
    return query.order_by(*order).limit(_number("rows")).offset(_number("passed"))


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


def _least_class(*, is_descending: bool) -> sa.Select[Any]:
    """Return the query for the first rows of a class, how many are large enough, and the greatest class; built once."""
    act = activities.c
    first = (
        sa.select(act.cost_units)
        .where(act.is_taker, act.cost_class == sa.bindparam("of_class"))
        .order_by(*_order(activities, ActivityPage(0, is_descending=is_descending)))
        .limit(sa.bindparam("looked_at", type_=sa.BigInteger))
        .subquery()
    )
    matching = sa.func.count().filter(first.c.cost_units >= sa.bindparam("least"))
    greatest = sa.select(sa.func.max(act.cost_class)).where(act.is_taker).scalar_subquery()
    return sa.select(
        sa.func.count().label("rows"), matching.label("matching"), greatest.label("greatest")
    ).select_from(first)


_LEAST_CLASS: Final = {each: _least_class(is_descending=each) for each in (True, False)}


async def _is_rare(tx: Transaction, chosen: ActivityFilter) -> bool:
    """Return whether few activities are so large that they are found faster by their amount than by their time.

    Those of all markets are counted: there is no index of the amounts within one.
    """
    least = chosen.size_units_min, chosen.cost_units_min
    if least == (None, None):
        return False
    wanted = ActivityFilter(wallet=chosen.wallet, size_units_min=least[0], cost_units_min=least[1])
    found = (
        sa.select(sa.literal(1))
        .where(*_conditions(activities, wanted, is_rare=True))
        .limit(RARE_ROWS_MAX + 1)
    )
    count = await tx.scalar(
        sa.select(sa.func.count()).select_from(found.select_from(activities).subquery())
    )
    return bool(count <= RARE_ROWS_MAX)


async def load_last_prices(
    tx: Transaction, token_ids: Collection[AssetId]
) -> Mapping[AssetId, TradePrice]:
    """Return the price of each token's newest fill, all in one statement; tokens before their first trade are left out."""
    fill = exchange_fills.c
    newest = fill.block_number, fill.log_index, fill.part
    keys = [(token_id,) for token_id in token_ids]
    rows = await load_last(tx, exchange_fills, (fill.token_id,), newest, keys)
    return {AssetId(row.token_id): TradePrice(row.cost_units, row.size_units) for row in rows}


def _conditions(
    table: sa.FromClause, chosen: ActivityFilter, *, is_rare: bool
) -> list[sa.ColumnElement[bool]]:
    column = table.c
    size, cost = (each if is_rare else each + 0 for each in (column.size_units, column.cost_units))
    side = None if chosen.side is None else chosen.side.name
    condition_id = column.condition_id + "" if is_rare else column.condition_id
    # In other words than the index of what a wallet took, which SQLite would sort whole for the newest of all.
    took = column.is_taker if chosen.wallet else column.is_taker.is_(sa.true())
    asked = (
        (chosen.wallet, lambda: column.wallet == chosen.wallet),
        (chosen.condition_ids, lambda: condition_id.in_(sorted(chosen.condition_ids or ()))),
        (chosen.kinds, lambda: column.kind.in_(sorted(chosen.kinds or ()))),
        (_has_no_trades(chosen) or None, lambda: column.kind != NO_TRADE),
        (side, lambda: column.side == side),
        (chosen.start_s, lambda: column.timestamp_s >= chosen.start_s),
        (chosen.end_s, lambda: column.timestamp_s <= chosen.end_s),
        (chosen.takers_only or None, lambda: took),
        (chosen.size_units_min, lambda: size >= chosen.size_units_min),
        (chosen.cost_units_min, lambda: cost >= chosen.cost_units_min),
    )
    return [clause() for wanted, clause in asked if wanted is not None]


def _name(side: Side | None) -> str | None:
    return None if side is None else side.name


def activity_row(row: sa.Row[Any]) -> ActivityRow:
    """Return the activity in a row of its table."""
    values = list(row)
    values[_KIND] = _KINDS[values[_KIND]]
    values[_SIDE] = _SIDES[values[_SIDE]]
    return ActivityRow._make(values)
