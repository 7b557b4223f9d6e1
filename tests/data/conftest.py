"""An empty database, and the data API over it; the clock stands still."""

import pytest
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.rigs.values import NOW_MS

from foretell.data.context import DataContext
from foretell.data.routes import build_app
from foretell.store.database import Database


@pytest.fixture
def database(fresh_database: Database) -> Database:
    return fresh_database


@pytest.fixture
def context(database: Database) -> DataContext:
    return a_data_context(database, BLOBS, lambda: NOW_MS)


@pytest.fixture
def reader(context: DataContext) -> Reader:
    return Reader(an_app(build_app, context))
