import contextlib
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_sell, a_word, an_address, an_asset

from foretell.domain.exchange.order import OrderStatus, OrderType, SignedOrder
from foretell.store.database import Database
from foretell.store.tables import is_live, orders
from foretell.store.trading.orders import (
    OrderChange,
    OrderFilter,
    OrderRow,
    load_live_orders,
    load_order,
    load_orders,
    record_changes,
    record_orders,
)

pytestmark = pytest.mark.anyio

ALICE = an_address("alice")


def a_row(number: int, signed: SignedOrder | None = None, market: str = "market") -> OrderRow:
    signed = signed or a_buy("alice", salt=str(2**200 + number))
    return OrderRow(
        order_id=a_word(f"order {number}"),
        sequence=number,
        condition_id=a_word(market),
        is_yes=signed.token_id == an_asset(is_yes=True, market=market),
        owner="key-of-alice",
        order_type=OrderType.GTC,
        price_ticks=50,
        ticks_per_one=100,
        size_units=10 * TOKEN,
        matched_units=0,
        status=OrderStatus.LIVE,
        close_reason=None,
        placed_at_ms=NOW_MS,
        updated_at_ms=NOW_MS,
        signed=signed,
    )


async def record(database: Database, *rows: OrderRow) -> None:
    async with database.writing() as tx:
        await record_orders(tx, rows)


async def live(
    database: Database, wanted: OrderFilter | None = None, offset: int = 0, limit: int = 10
) -> list[int]:
    async with database.reading() as tx:
        rows = await load_live_orders(tx, ALICE, wanted or OrderFilter(), offset, limit)
    return [row.sequence for row in rows]


async def test_a_stored_order_is_loaded_as_it_was_signed(database: Database) -> None:
    row = a_row(1)
    await record(database, row)
    async with database.reading() as tx:
        assert await load_order(tx, row.order_id) == row
        assert await load_order(tx, a_word("nothing")) is None
        assert await load_orders(tx, [row.order_id, a_word("nothing")]) == {row.order_id: row}


async def test_orders_of_several_shards_are_paged_by_time(database: Database) -> None:
    rows = [
        a_row(number + 7 * (number % 2))._replace(placed_at_ms=NOW_MS + number)
        for number in range(6)
    ]
    await record(database, *rows[::2], *rows[1::2])
    pages = [await live(database, offset=n, limit=2) for n in (0, 2, 4)]
    assert [sequence for page in pages for sequence in page] == [12, 4, 10, 2, 8, 0]


async def test_a_changed_order_is_loaded_with_its_new_state(database: Database) -> None:
    row = a_row(1)
    await record(database, row, a_row(2))
    change = OrderChange(row.order_id, 10 * TOKEN, OrderStatus.MATCHED, "filled", NOW_MS + 5)
    async with database.writing() as tx:
        await record_changes(tx, [change])
        await record_changes(tx, [])
    async with database.reading() as tx:
        assert await load_order(tx, row.order_id) == row._replace(
            matched_units=10 * TOKEN,
            status=OrderStatus.MATCHED,
            close_reason="filled",
            updated_at_ms=NOW_MS + 5,
        )
    assert await live(database) == [2]


async def test_a_signers_live_orders_are_paged_newest_first(database: Database) -> None:
    await record(database, *(a_row(number) for number in range(1, 6)), a_row(9, a_buy("bob")))
    await record(database)
    pages = [await live(database, offset=offset, limit=2) for offset in (0, 2, 4)]
    assert pages == [[5, 4], [3, 2], [1]]


@pytest.mark.parametrize(
    ("wanted", "sequences"),
    [
        (OrderFilter(), [3, 2, 1]),
        (OrderFilter(order_id=a_word("order 2")), [2]),
        (OrderFilter(condition_id=a_word("market")), [2, 1]),
        (OrderFilter(token_id=an_asset(is_yes=False)), [2]),
        (OrderFilter(condition_id=a_word("other"), token_id=an_asset(is_yes=False)), []),
    ],
)
async def test_live_orders_are_filtered(
    database: Database, wanted: OrderFilter, sequences: list[int]
) -> None:
    await record(
        database,
        a_row(1),
        a_row(2, a_sell("alice", is_yes=False)),
        a_row(3, a_buy("alice", market="other"), market="other"),
    )
    assert await live(database, wanted) == sequences


@pytest.mark.parametrize("column", ["signer", "condition_id"])
def test_live_orders_have_indexes_of_their_own(empty_database: Path, column: str) -> None:
    query = sa.select(orders.c.order_id).where(orders.c[column] == ALICE, is_live)
    sql = query.compile(dialect=sqlite.dialect(), compile_kwargs={"render_postcompile": True})
    with contextlib.closing(sqlite3.connect(empty_database)) as connection:
        (*_, plan), *_ = connection.execute(f"EXPLAIN QUERY PLAN {sql}", [ALICE])
    assert f"USING INDEX ix_orders_live_{column}" in plan
