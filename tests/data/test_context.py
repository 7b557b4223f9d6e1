import pytest

from foretell.data.context import DataContext
from foretell.store.database import Database

pytestmark = pytest.mark.anyio


async def test_seconds_are_whole(database: Database) -> None:
    assert DataContext(database, "", lambda: 1999).now_s == 1
