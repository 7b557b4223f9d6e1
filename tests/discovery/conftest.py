"""An empty database, and the discovery API over it; the clock stands still."""

import pytest
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, ListedReader, Reader

from foretell.discovery.context import DiscoveryContext
from foretell.discovery.routes import build_app
from foretell.store.database import Database


@pytest.fixture
def database(fresh_database: Database) -> Database:
    return fresh_database


@pytest.fixture
def context(database: Database) -> DiscoveryContext:
    return DiscoveryContext(database=database, blob_base_url=BLOBS)


@pytest.fixture
def reader(context: DiscoveryContext, database: Database) -> Reader:
    return ListedReader(an_app(build_app, context), database)
