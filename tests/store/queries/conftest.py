"""A history of some fills, and one of ten times as many."""

from collections.abc import AsyncIterator

import pytest
from tests.store.queries.grown import FILLS, Grown


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a hundred rows many."""
    monkeypatch.setattr("foretell.store.index.activities.RARE_ROWS_MAX", 100)


@pytest.fixture(scope="session")
async def grown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Grown, Grown]]:
    """The two histories, on SQLite."""
    folder = tmp_path_factory.mktemp("grown")
    both = Grown(folder / "small.db", FILLS[0]), Grown(folder / "large.db", FILLS[1])
    for each in both:
        await each.fill()
    yield both
    for each in both:
        await each.database.close()
