import pytest

from foretell.discovery.context import DiscoveryContext
from foretell.store.database import Database

pytestmark = pytest.mark.anyio


async def test_each_installation_has_its_own_search_index(database: Database) -> None:
    one, other = (DiscoveryContext(database, "") for _ in range(2))
    assert one.search_index is not other.search_index
