"""Pages of sorted lists.

A list continues after a cursor, the sort values and the id of its last row, so that a page stays the same
when rows are added before it. Rows without a value come last in both directions.
"""

import enum
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction

Key = sa.ColumnElement[Any]
Clause = sa.ColumnElement[bool]
SortValue = str | int | float | None

NO_VALUES: Final[Mapping[str, Any]] = MappingProxyType({})
_ROWS: Final = "rows"
_SKIPPED: Final = "skipped"
_PART_ROWS: Final = "part_rows"
USUAL_PAGE_ENDS: Final = (21, 51, 101)
"""The last rows of usual pages, with the one after which another page follows."""


class SortField(enum.Enum):
    """Sort keys of lists."""

    ID = enum.auto()
    SLUG = enum.auto()
    TITLE = enum.auto()
    CREATED = enum.auto()
    UPDATED = enum.auto()
    ENDS = enum.auto()
    CLOSED = enum.auto()
    IS_OPEN = enum.auto()
    VOLUME = enum.auto()
    VOLUME_DAY = enum.auto()
    VOLUME_WEEK = enum.auto()
    VOLUME_MONTH = enum.auto()
    VOLUME_YEAR = enum.auto()
    LIQUIDITY = enum.auto()
    COMPETITIVE = enum.auto()
    BEST_BID = enum.auto()
    LAST_PRICE = enum.auto()
    FEATURED = enum.auto()

    @property
    def is_text(self) -> bool:
        """Whether its values are texts; all others are numbers."""
        return self in {SortField.SLUG, SortField.TITLE}


NULLABLE: Final = frozenset(
    {SortField.CLOSED, SortField.BEST_BID, SortField.LAST_PRICE, SortField.FEATURED}
)
"""Sort keys that some rows have no value for."""


class Cursor(NamedTuple):
    """The place of a row in a list: its sort values and its id."""

    values: tuple[SortValue, ...]
    row_id: int


class ListPage(NamedTuple):
    """One page of a sorted list; equal rows are in the order of their ids."""

    limit: int
    offset: int = 0
    fields: tuple[SortField, ...] = ()
    is_ascending: bool = False
    after: Cursor | None = None


async def load_page(
    tx: Transaction, query: sa.Select[Any], keys: Mapping[SortField, Key], page: ListPage
) -> Sequence[Cursor]:
    """Return the cursors of one page of a query of ids."""
    return await load_cursors(tx, page_query(query, keys, page), page)


def page_query(
    query: sa.Select[Any],
    keys: Mapping[SortField, Key],
    page: ListPage,
    nullable: Collection[SortField] = NULLABLE,
) -> sa.Select[Any]:
    """Return the query of a page, whatever its limit and its offset; some rows may have no value of a nullable key."""
    row_id = keys[SortField.ID]
    chosen = [keys[field] for field in page.fields]
    if page.after is not None:
        query = query.where(_is_after(chosen, row_id, page, nullable))
    return (
        query.add_columns(*(key.label(f"key_{index}") for index, key in enumerate(chosen)))
        .order_by(
            *(
                _sorted(key, is_ascending=page.is_ascending, is_nullable=field in nullable)
                for key, field in zip((*chosen, row_id), (*page.fields, SortField.ID), strict=True)
            )
        )
        .limit(sa.bindparam(_ROWS, type_=sa.BigInteger))
        .offset(sa.bindparam(_SKIPPED, type_=sa.BigInteger))
    )


def split_page_query(
    query: sa.Select[Any], keys: Mapping[SortField, Key], page: ListPage
) -> sa.Select[Any]:
    """Return the query of a page by one key that some rows have no value of: those with one, then the others.

    Each part is along an index of the key. An order with nulls last is along none in one of its directions. How many
    rows a part reaches is in the text: without it, PostgreSQL reckons that a plan for any page reads a tenth of all
    rows, and plans again for each read.
    """
    key = keys[page.fields[0]]
    has_value = page.after is None or page.after.values[0] is not None
    whole = page._replace(after=None)
    parts = [(1, query.where(key.is_(None)), whole if has_value else page)]
    if has_value:
        parts.append((0, query.where(key.is_not(None)), page))
    most = sa.bindparam(_PART_ROWS, type_=sa.BigInteger, literal_execute=True)
    found = sa.union_all(
        *(
            sa.select(
                page_query(part, keys, of_part, ())
                .add_columns(sa.literal_column(str(number)).label("part"))
                .limit(most)
                .offset(None)
                .subquery()
            )
            for number, part, of_part in parts
        )
    ).subquery()
    row, value, number = found.c
    order = [each.asc() if page.is_ascending else each.desc() for each in (value, row)]
    return (
        sa.select(row, value)
        .order_by(number, *order)
        .limit(sa.bindparam(_ROWS, type_=sa.BigInteger))
        .offset(sa.bindparam(_SKIPPED, type_=sa.BigInteger))
    )


async def load_cursors(
    tx: Transaction,
    query: sa.Select[Any],
    page: ListPage,
    values: Mapping[str, Any] = NO_VALUES,
) -> Sequence[Cursor]:
    """Return the cursors of one page by its query, and the values of its other parameters."""
    rows = await tx.all(
        query,
        {**values, _ROWS: page.limit, _SKIPPED: page.offset, _PART_ROWS: _rounded_page_end(page)},
    )
    return [Cursor(tuple(map(_plain, row[1:])), row[0]) for row in rows]


def _rounded_page_end(page: ListPage) -> int:
    """Return the last row of a page, rounded up to one of few numbers: each is a statement that a connection keeps."""
    rows = page.limit + page.offset
    return next((each for each in USUAL_PAGE_ENDS if rows <= each), 1 << rows.bit_length())


def _plain(value: Any) -> SortValue:
    """Return a value fit for JSON: PostgreSQL sums integers to decimals."""
    return int(value) if isinstance(value, Decimal) else value


def _sorted(key: Key, *, is_ascending: bool, is_nullable: bool) -> Key:
    """Return the order by a key; PostgreSQL walks no index in an order with nulls last."""
    ordered = key.asc() if is_ascending else key.desc()
    return ordered.nulls_last() if is_nullable else ordered


def _is_after(
    keys: Sequence[Key], row_id: Key, page: ListPage, nullable: Collection[SortField]
) -> Clause:
    """Return the condition that a row comes after the cursor; without nulls it is a place of an index."""
    cursor = page.after
    assert cursor is not None
    if not set(nullable).intersection(page.fields) and None not in cursor.values:
        place, after = sa.tuple_(*keys, row_id), (*cursor.values, cursor.row_id)
        return place > after if page.is_ascending else place < after
    equal: list[Clause] = []
    clauses: list[Clause] = []
    for key, value in zip(keys, cursor.values, strict=True):
        if value is None:
            equal.append(key.is_(None))
            continue
        beyond = key > value if page.is_ascending else key < value
        clauses.append(sa.and_(*equal, sa.or_(beyond, key.is_(None))))
        equal.append(key == value)
    beyond_id = row_id > cursor.row_id if page.is_ascending else row_id < cursor.row_id
    return sa.or_(*clauses, sa.and_(*equal, beyond_id))
