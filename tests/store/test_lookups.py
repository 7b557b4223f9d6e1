import gc

import pytest
import sqlalchemy as sa
from tests.rigs.values import an_address
from tests.store.queries.recorded_queries import recorded

from foretell.domain.exchange.ledger import AssetId
from foretell.store.database import ROWS_PER_STATEMENT_MAX, Database
from foretell.store.index.balances import Balance, record_balances
from foretell.store.lookups import load_newest, load_rows, one_of, rows_with
from foretell.store.tables import balance_changes, balances, tags

pytestmark = pytest.mark.anyio

ANN, BOB = an_address("ann"), an_address("bob")


async def test_rows_of_the_keys_are_found_each_once(database: Database) -> None:
    async with database.writing() as tx:
        await record_balances(
            tx, [Balance(ANN, AssetId("1"), 5, 1), Balance(BOB, AssetId("2"), 6, 1)]
        )
        keys = [(ANN, "1"), (ANN, "1"), (ANN, "2"), (BOB, "1")]
        rows = await load_rows(tx, balances, balances.primary_key, keys)
    assert [Balance._make(row) for row in rows] == [Balance(ANN, AssetId("1"), 5, 1)]


async def test_more_keys_than_fit_a_statement_are_loaded_in_parts(database: Database) -> None:
    many = [Balance(ANN, AssetId(str(number)), number, 1) for number in range(1201)]
    async with database.writing() as tx:
        await record_balances(tx, many)
        keys = [(ANN, str(number)) for number in range(1201)]
        rows = await load_rows(tx, balances, balances.primary_key, keys)
    assert sorted(row.units for row in rows) == list(range(1201))


async def test_no_keys_find_nothing(database: Database) -> None:
    async with database.reading() as tx:
        assert await load_rows(tx, balances, [balances.c.wallet], []) == []


async def test_keys_are_looked_up_in_the_index(database: Database) -> None:
    many = [Balance(ANN, AssetId(str(number)), number, 1) for number in range(2000)]
    async with database.writing() as tx:
        await record_balances(tx, many)
        await tx.execute(sa.text("ANALYZE"))
        keys = [*((ANN, str(number)) for number in range(ROWS_PER_STATEMENT_MAX)), (BOB, "2")]
        query, values = rows_with(tx.dialect, balances, tuple(balances.primary_key), keys)
        dialect = sa.make_url(f"{tx.dialect}://").get_dialect()()
        bound = query.bindparams(**values)
        text = str(bound.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
        plan = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
        lines = str(await tx.all(sa.text(plan + text.replace(":", r"\:")))).lower()
    assert "index" in lines
    assert "scan balances" not in lines
    assert "scan on balances" not in lines


async def test_one_of_many_ids_is_found_along_the_index(database: Database) -> None:
    ids = range(1, 40_001)
    names = ("label", "slug")
    async with database.writing() as tx:
        await tx.insert_rows(
            tags, [(each, *(f"{name} {each}" for name in names), 0, 0) for each in ids]
        )
        await tx.execute(sa.text("ANALYZE"))
        wanted = sa.select(tags.c.slug).where(one_of(tags.c.tag_id, "ids"))
        found = await tx.all(wanted, {"ids": [7, 9, 0]})
        assert sorted(row.slug for row in found) == ["slug 7", "slug 9"]
        assert len(await tx.all(wanted, {"ids": [*ids]})) == len(ids)
        assert await tx.all(wanted) == []
        with recorded() as queries:
            await tx.all(sa.select(tags.c.slug).where(one_of(tags.c.tag_id, "ids", [7, 9])))
        [(sql, values)] = queries
        plan = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
    lines: list[str] = []

    def explain(connection: sa.Connection) -> None:
        lines.extend(str(row).lower() for row in connection.exec_driver_sql(plan + sql, values))

    await database.run_sync(explain)
    assert "index" in str(lines)
    assert not any(each in str(lines) for each in ("scan tags", "seq scan on tags"))


async def test_keys_are_freed_without_a_collection_of_garbage(database: Database) -> None:
    keys = [(ANN, "1" * 1_000)]
    async with database.reading() as tx:
        await load_rows(tx, balances, balances.primary_key, keys)
        gc.collect()
        gc.disable()
        try:
            before = parameters()
            await load_rows(tx, balances, balances.primary_key, keys)
            assert parameters() == before
        finally:
            gc.enable()


def parameters() -> int:
    return sum(isinstance(each, sa.BindParameter) for each in gc.get_objects())


async def test_the_newest_row_of_each_key_is_found(database: Database) -> None:
    """Rows of other keys, some of them newer, are passed over."""
    rows = [
        (ANN, "1", 5, 1),
        (ANN, "1", 6, 3),
        (ANN, "1", 7, 2),
        (ANN, "2", 8, 9),
        (BOB, "1", 9, 4),
    ]
    async with database.writing() as tx:
        await tx.insert_rows(balance_changes, rows)
        found = await load_newest(tx, balance_changes, [(ANN, "1"), (BOB, "1"), (BOB, "2")])
        assert sorted(tuple(row) for row in found) == sorted([rows[1], rows[4]])
        assert await load_newest(tx, balance_changes, []) == []
