import pytest
from tests.rigs.rows import Rows
from tests.rigs.values import a_word

from foretell.store.database import Database
from foretell.store.trading.volumes import load_volumes

pytestmark = pytest.mark.anyio


async def test_volumes_are_those_of_quoted_conditions_without_what_has_failed(
    database: Database,
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", volume_units=5)
        await rows.fail("rain", 2)
    async with database.reading() as tx:
        assert await load_volumes(tx, [a_word("rain"), a_word("none")]) == {a_word("rain"): 3}
