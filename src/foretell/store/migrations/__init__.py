"""Migrations from older schemas to today's, applied when a process starts.

A migration is never edited once a release has applied it; `tests/store/test_migrations.py` compares the
result of the last one with the tables.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from foretell.domain.errors.storage import SchemaNewer
from foretell.store.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

FOLDER: Final = Path(__file__).parent
_UPGRADE_LOCK: Final = 0x666F7265
_VERSION: Final = sa.table("alembic_version", sa.column("version_num"))


async def upgrade(database: Database) -> None:
    """Bring the database to today's schema; two processes that start at once do it once.

    Raises SchemaNewer when a later release has brought it further.
    """
    await database.run_sync(_upgrade)


async def is_current(database: Database) -> bool:
    """Return whether the database has today's schema."""
    found: list[bool] = []
    await database.run_sync(lambda connection: found.append(_is_current(connection)))
    return found == [True]


def _upgrade(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
    found = _revisions(connection)
    if newer := [each for each in found if each > head()]:
        raise SchemaNewer(max(newer), head())
    if found != [head()]:
        import alembic.command  # a start that upgrades nothing does not need what this loads

        alembic.command.upgrade(configuration(connection), "head")


def _is_current(connection: sa.Connection) -> bool:
    """Return whether the database has today's schema."""
    return _revisions(connection) == [head()]


def _revisions(connection: sa.Connection) -> list[str]:
    """Return the revision of the database, in a list that is empty before there is any."""
    if not sa.inspect(connection).has_table(_VERSION.name):
        return []
    return [str(each) for each in connection.execute(sa.select(_VERSION.c.version_num)).scalars()]


def head() -> str:
    """Return the newest revision: the number in the name of the last migration's file."""
    return max(path.name for path in FOLDER.glob("versions/v*.py"))[1:].partition("_")[0]


def configuration(connection: sa.Connection, folder: Path = FOLDER) -> "Config":
    """Return Alembic's configuration for this connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder))
    config.attributes["connection"] = connection
    return config


def write_migration(name: str, url: str, folder: Path = FOLDER) -> None:
    """Write the migration from a database's schema to the tables; for maintainers."""

    def write(connection: sa.Connection) -> None:
        import alembic.command

        alembic.command.revision(configuration(connection, folder), name, autogenerate=True)

    async def run() -> None:
        async with Database(url) as database:
            await upgrade(database)
            await database.run_sync(write)

    asyncio.run(run())
