import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
import sqlalchemy as sa

from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.tables import tags

pytestmark = pytest.mark.anyio


def a_tag(number: int) -> dict[str, Any]:
    return {
        "tag_id": number,
        "label": f"Tag {number}",
        "slug": f"tag-{number}",
        "created_at_ms": 0,
        "event_count": 0,
    }


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'foretell.db'}") as database:
        await upgrade(database)
        yield database


@contextmanager
def crossings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Collect what is run on the thread of a connection."""
    made: list[object] = []
    execute: Any = aiosqlite.Connection._execute

    async def count(own: aiosqlite.Connection, run: Any, *arguments: Any) -> Any:
        made.append(run)
        return await execute(own, run, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(aiosqlite.Connection, "_execute", count)
        yield made


async def test_a_statement_crosses_to_the_thread_of_its_connection_once(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sqlite.writing() as tx:
        with crossings(monkeypatch) as made:
            await tx.execute(tags.insert(), [a_tag(1), a_tag(2)])
            await tx.execute(tags.insert().values(**a_tag(3)))
            assert len(await tx.all(sa.select(tags))) == 3
            assert await tx.scalar(sa.select(sa.func.count()).select_from(tags)) == 3
    assert len(made) == 4


async def test_a_statement_returns_its_rows_or_how_many_it_changed(sqlite: Database) -> None:
    async with sqlite.writing() as tx:
        await tx.execute(tags.insert(), [a_tag(1), a_tag(2)])
        assert await tx.execute(tags.update().values(event_count=7)) == 2
        assert await tx.execute(tags.update().where(tags.c.tag_id == 9).values(slug="x")) == 0
        returned = tags.update().where(tags.c.tag_id == 2).values(slug="two")
        [row] = await tx.all(returned.returning(tags.c.tag_id, tags.c.slug))
        assert (row.tag_id, row.slug) == (2, "two")
        assert await tx.scalar(sa.select(tags.c.tag_id).order_by(tags.c.tag_id)) == 1
        assert await tx.first(sa.select(tags.c.tag_id).where(tags.c.tag_id == 9)) is None


async def test_a_failed_statement_raises_the_error_of_the_driver_and_the_next_one_works(
    sqlite: Database,
) -> None:
    async with sqlite.writing() as tx:
        await tx.execute(tags.insert().values(**a_tag(1)))
        with pytest.raises(sa.exc.IntegrityError) as failed:
            await tx.execute(tags.insert(), [a_tag(2), a_tag(1)])
        assert isinstance(failed.value.orig, sqlite3.IntegrityError)
        assert await tx.scalar(sa.select(sa.func.max(tags.c.tag_id))) == 2
    async with sqlite.reading() as tx:
        with pytest.raises(sa.exc.OperationalError, match="no such table"):
            await tx.all(sa.text("SELECT * FROM nowhere"))
        assert len(await tx.all(sa.select(tags))) == 2
