import pytest
from tests.rigs.values import a_word, an_address

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Position
from foretell.store.database import Database
from foretell.store.index.positions import PositionRow, load_positions, record_positions

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
