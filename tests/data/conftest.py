"""An empty database, and the data API over it; the clock stands still."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.build import NOW_MS
from tests.reading import BLOBS, Reader, open_copy
from tests.routing import an_app

from foretell.data.routes import build_app
from foretell.data.services import DataServices
from foretell.store.database import Database


@pytest.fixture
async def database(empty_database: Path, tmp_path: Path) -> AsyncIterator[Database]:
    async for database in open_copy(empty_database, tmp_path):
        yield database


@pytest.fixture
def services(database: Database) -> DataServices:
    return DataServices(database=database, blob_base_url=BLOBS, now_ms=lambda: NOW_MS)


@pytest.fixture
def reader(services: DataServices) -> Reader:
    return Reader(an_app(build_app, services))
