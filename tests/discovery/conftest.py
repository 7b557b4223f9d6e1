"""An empty database, and the discovery API over it; the clock stands still."""

import pytest
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, Reader
from tests.rigs.values import NOW_MS

from foretell.discovery.context import DiscoveryContext
from foretell.discovery.routes import build_app
from foretell.store.database import Database


@pytest.fixture
def database(fresh_database: Database) -> Database:
    return fresh_database


@pytest.fixture
def context(database: Database) -> DiscoveryContext:
    return DiscoveryContext(database=database, blob_base_url=BLOBS, now_ms=lambda: NOW_MS)


@pytest.fixture
def reader(context: DiscoveryContext) -> Reader:
    return Reader(an_app(build_app, context))
