import pytest
from tests.build import a_word, an_address

from foretell.domain.holdings import Position
from foretell.domain.ledger import AssetId
from foretell.store.database import Database
from foretell.store.positions import (
    PositionRow,
    load_positions,
    load_positions_of,
    record_positions,
)

pytestmark = pytest.mark.anyio

ANN = an_address("ann")


def a_row(token: str, condition: str, size_units: int, block_number: int) -> PositionRow:
    return PositionRow(
        ANN, AssetId(token), a_word(condition), size_units, 4, 10, 6, -3, 1000, block_number
    )


async def test_the_last_change_of_a_position_is_current(database: Database) -> None:
    async with database.writing() as tx:
        await record_positions(tx, [a_row("1", "rain", 5, 1), a_row("1", "rain", 6, 2)])
        rows = await load_positions(tx, [(ANN, AssetId("1")), (ANN, AssetId("9"))])
    assert rows == [a_row("1", "rain", 6, 2)]
    assert rows[0].position == Position(6, 4, 10, 6, -3)


async def test_positions_of_a_wallet_may_be_narrowed_to_conditions(database: Database) -> None:
    rain, snow = a_row("1", "rain", 5, 1), a_row("2", "snow", 6, 1)
    async with database.writing() as tx:
        await record_positions(tx, [rain, snow])
        assert sorted(await load_positions_of(tx, ANN)) == [rain, snow]
        assert await load_positions_of(tx, ANN, [a_word("snow")]) == [snow]
        assert await load_positions_of(tx, ANN, []) == []
        assert await load_positions_of(tx, an_address("bob")) == []
