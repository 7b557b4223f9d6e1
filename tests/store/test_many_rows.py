import pytest
from sqlalchemy import select

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address
from foretell.store import many_rows
from foretell.store.database import Database
from foretell.store.many_rows import insert_many, upsert_many
from foretell.store.tables import allowances, balances

pytestmark = pytest.mark.anyio

ANN = Address("0x" + "aa" * 20)


async def test_rows_are_inserted_and_replaced_in_several_parts(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_rows, "ROWS_PER_ARRAY_MAX", 7)
    rows = [(ANN, AssetId(f"{number:03}"), number, 1) for number in range(20)]
    more = [(ANN, AssetId(f"{number:03}"), 2**63 - 1, 2) for number in range(10, 40)]
    async with database.writing() as tx:
        await insert_many(tx, balances, rows)
        await upsert_many(tx, balances, more)
        await upsert_many(tx, balances, [])
        found = await tx.all(select(balances).order_by(balances.c.asset))
    assert [tuple(row) for row in found] == rows[:10] + more


async def test_values_of_every_kind_come_back(database: Database) -> None:
    rows = [(ANN, "0x", True, 5, 1), (ANN, "0x", False, 2**63 - 1, 1)]
    async with database.writing() as tx:
        await insert_many(tx, allowances, rows)
        found = await tx.all(select(allowances).order_by(allowances.c.is_collateral.desc()))
    assert [tuple(row) for row in found] == rows
