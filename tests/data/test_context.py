import pytest
from tests.rigs.read_apis import a_data_context

from foretell.store.database import Database

pytestmark = pytest.mark.anyio


async def test_seconds_are_whole(database: Database) -> None:
    assert a_data_context(database, "", lambda: 1999).now_s == 1
