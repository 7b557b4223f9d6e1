import pytest
from tests.rigs.values import a_word

from foretell.domain.exchange.settlement import RefusedOrder
from foretell.store.database import Database
from foretell.store.outbox.refused_orders import (
    load_refused_orders,
    record_refused_orders,
)

pytestmark = pytest.mark.anyio


def refused(trade_id: str, name: str, part: int, cause: str = "InvalidNonce") -> RefusedOrder:
    return RefusedOrder(trade_id, a_word(name), part, cause, is_blamed=True)


async def test_refused_orders_are_loaded_part_by_part(database: Database) -> None:
    rows = [refused("one", "a", 2), refused("one", "b", 1), refused("two", "a", 0)]
    async with database.writing() as tx:
        await record_refused_orders(tx, [*rows, refused("three", "a", 1)])
        await record_refused_orders(tx, [])
        assert await load_refused_orders(tx, ["one", "two"]) == [rows[1], rows[0], rows[2]]


async def test_a_later_finding_replaces_the_earlier_one(database: Database) -> None:
    async with database.writing() as tx:
        await record_refused_orders(tx, [refused("one", "a", 2)])
        await record_refused_orders(tx, [refused("one", "a", 1, "OrderExpired")])
        assert await load_refused_orders(tx, ["one"]) == [refused("one", "a", 1, "OrderExpired")]
