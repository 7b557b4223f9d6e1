"""M4: starts with another number of shards than that of the journals and the tables."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.rigs.in_process import sandbox_settings
from tests.rigs.journals import written
from tests.rigs.postgres import PostgresServer
from tests.rigs.values import a_key

from foretell.app.installation import Installation
from foretell.app.lasting_refusals import LASTING_REFUSALS
from foretell.app.origin import FILE, check_journal, check_shards
from foretell.app.roles import Role
from foretell.bench.rigs.world import make_world
from foretell.chain.deploy import store_deployment
from foretell.domain.errors.sources import JournalOfAnotherReader
from foretell.domain.errors.storage import ForeignJournal, ShardCountChanged
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.files.journal import FileJournal
from foretell.journal.postgres.leases import JournalPlace, find_endpoint
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.identity import JOURNAL, SHARDS, load_fact, record_fact
from foretell.store.migrations import upgrade
from foretell.store.tables import identity, projections

pytestmark = pytest.mark.anyio

CHANGES = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 3), (3, 0)]
SILENT = "http://127.0.0.1:1"


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url) as database:
        yield database


def of(folder: Path, shards: int, **given: Any) -> Settings:
    """Return the settings of a data folder with this number of shards."""
    (folder / "data").mkdir(exist_ok=True)
    return sandbox_settings(folder, shards=shards, **given)


def make_journals(settings: Settings, *names: str) -> None:
    for name in names:
        (settings.data / name).mkdir()


async def facts_of(database: Database) -> dict[str, str]:
    async with database.reading() as tx:
        return {row.name: row.value for row in await tx.all(sa.select(identity))}


async def fill(
    database: Database, sequences: Mapping[str, int], facts: Collection[str] = ()
) -> None:
    """Write the rows that engines of an earlier release have left."""
    async with database.writing() as tx:
        await tx.upsert_rows(projections, list(sequences.items()))
        for reader in facts:
            await record_fact(tx, JOURNAL.format(reader), f"id of {reader}")


@pytest.mark.parametrize(("before", "after"), CHANGES)
async def test_attack_m4_another_number_of_shards_is_refused_and_nothing_is_written(
    database: Database, tmp_path: Path, before: int, after: int
) -> None:
    """Orders rested in two books, or stayed live in the tables and in none."""
    await check_shards(database, of(tmp_path, before))
    noted = (tmp_path / "data" / FILE).read_bytes(), await facts_of(database)
    text = f"created with {before} shards, and {after} are configured.*FORETELL_SHARDS={before}"
    with pytest.raises(ShardCountChanged, match=text):
        await check_shards(database, of(tmp_path, after))
    assert noted == ((tmp_path / "data" / FILE).read_bytes(), await facts_of(database))
    await check_shards(database, of(tmp_path, before))


async def test_attack_m4_a_new_database_does_not_change_the_number_of_a_folder_with_journals(
    database: Database, tmp_path: Path
) -> None:
    settings = of(tmp_path, 2)
    await check_shards(database, settings)
    make_journals(settings, "journal-0")  # of two: the other engine had no time to create its own
    async with database.writing() as tx:
        await tx.execute(identity.delete())
    with pytest.raises(ShardCountChanged, match="created with 2 shards, and 1 are configured"):
        await check_shards(database, of(tmp_path, 1))
    assert await facts_of(database) == {}
    await check_shards(database, settings)
    assert await facts_of(database) == {SHARDS: "2"}


TRADED = {"trading": 3}
TRADED_BY_TWO = {"trading:0": 3, "trading:1": 2}


class Earlier(NamedTuple):
    """What an earlier release has left: folders, readers of the tables, and other readers that the database knows."""

    shards: int
    another: int
    folders: tuple[str, ...] = ()
    sequences: Mapping[str, int] = MappingProxyType({})
    readers: tuple[str, ...] = ()


ONE = ("journal-0",)
TWO = ("journal-0", "journal-1", "journal-treasury")
EARLIER = [
    Earlier(0, 1, ("journal",), TRADED),
    Earlier(0, 2, ("journal",)),
    Earlier(1, 0, ONE, TRADED, ("trading",)),
    Earlier(1, 2, ONE, TRADED),
    Earlier(2, 1, TWO, TRADED_BY_TWO, ("treasury",)),
    Earlier(2, 0, TWO, TRADED_BY_TWO, ("trading:0", "trading")),
    Earlier(2, 3, TWO),
    Earlier(2, 0, ("journal", *TWO), TRADED_BY_TWO),
    Earlier(2, 0, (), TRADED_BY_TWO),
    Earlier(3, 1, (), {"trading:0": 1}, ("trading:2",)),
    Earlier(1, 2, (), TRADED),
    Earlier(0, 3, (), TRADED),
]


@pytest.mark.parametrize("earlier", EARLIER)
async def test_attack_m4_an_installation_of_an_earlier_release_keeps_its_number(
    database: Database, tmp_path: Path, earlier: Earlier
) -> None:
    settings = of(tmp_path, earlier.shards)
    make_journals(settings, *earlier.folders)
    await fill(database, earlier.sequences, earlier.readers)
    before = await facts_of(database)
    with pytest.raises(ShardCountChanged):
        await check_shards(database, of(tmp_path, earlier.another))
    assert await facts_of(database) == before
    await check_shards(database, settings)
    assert (await facts_of(database))[SHARDS] == str(earlier.shards)


@pytest.mark.parametrize("count", [0, 2])
async def test_an_installation_that_ran_with_two_numbers_keeps_the_configured_one(
    database: Database, tmp_path: Path, count: int
) -> None:
    """An earlier release started with one after the other; neither is refused at the upgrade, and one is afterwards."""
    settings = of(tmp_path, count)
    make_journals(settings, "journal", "journal-0", "journal-1")
    await fill(database, TRADED | TRADED_BY_TWO)
    with capture_logs() as logs:
        await check_shards(database, settings)
    assert [(each["shards"], each["others"]) for each in logs] == [(count, [2 - count])]
    with pytest.raises(ShardCountChanged):
        await check_shards(database, of(tmp_path, 2 - count))


async def test_of_two_first_starts_at_once_with_different_numbers_one_is_refused(
    database: Database, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    starts = (check_shards(database, of(at, n)) for n, at in enumerate(folders, 1))
    ended = await asyncio.gather(*starts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in ended) == ["NoneType", "ShardCountChanged"]


@pytest.fixture
def emptied(postgres: PostgresServer) -> str:
    """The URL of a database of PostgreSQL without rows."""
    postgres.empty_database()
    return postgres.database_url


async def test_the_number_is_not_noted_when_the_journals_in_postgresql_have_another(
    emptied: str, journal_url: str, tmp_path: Path
) -> None:
    assert journal_url == emptied
    await find_endpoint(JournalPlace(journal_url, ShardNumber(0), 2))
    given = {"journal": "postgres", "database_url": SecretStr(journal_url)}
    async with Database(journal_url) as database:
        with pytest.raises(ShardCountChanged, match="created with 2 shards, and 3 are configured"):
            await check_shards(database, of(tmp_path, 3, **given))
        assert await facts_of(database) == {}
        await check_shards(database, of(tmp_path, 2, **given))
        assert await facts_of(database) == {SHARDS: "2"}


async def test_the_number_is_not_noted_while_the_database_of_a_journal_is_silent(
    emptied: str, tmp_path: Path
) -> None:
    silent = SecretStr("postgresql+asyncpg://user@127.0.0.1:1/none")
    settings = of(tmp_path, 1, journal="postgres", database_url=silent)
    async with Database(emptied) as database:
        await check_shards(database, settings)
        assert await facts_of(database) == {}


@asynccontextmanager
async def journal_with_commands(folder: Path) -> AsyncIterator[FileJournal]:
    await written(FileJournal(folder), [b"a", b"b"])
    journal = FileJournal(folder)
    yield journal
    await journal.close()


async def test_attack_m4_a_journal_that_is_noted_under_another_name_is_refused(
    database: Database, tmp_path: Path
) -> None:
    """Its commands were written to the tables again, under another name, and its id was noted under both."""
    async with journal_with_commands(tmp_path / "journal-0") as journal:
        await check_journal(database, tmp_path, "trading:0", journal)
        before = await facts_of(database)
        with pytest.raises(JournalOfAnotherReader, match="is that of trading:0") as refused:
            await check_journal(database, tmp_path, "trading", journal)
        assert refused.value.details == {"reader": "trading:0", "seen": journal.identity}
        assert await facts_of(database) == before
        await check_journal(database, tmp_path, "trading:0", journal)


async def test_a_journal_that_an_earlier_release_noted_twice_opens_under_its_own_name(
    database: Database, tmp_path: Path
) -> None:
    async with journal_with_commands(tmp_path / "journal-0") as journal:
        async with database.writing() as tx:
            for reader in ("trading", "trading:0"):
                await record_fact(tx, JOURNAL.format(reader), journal.identity)
        await check_journal(database, tmp_path, "trading:0", journal)


def test_refusals_of_journals_and_numbers_are_lasting() -> None:
    """A supervised engine would be started again for ever."""
    assert issubclass(ShardCountChanged, LASTING_REFUSALS)
    assert issubclass(JournalOfAnotherReader, ForeignJournal)
    assert issubclass(ForeignJournal, LASTING_REFUSALS)


@pytest.fixture
async def of_two_shards(tmp_path: Path, emptied: str) -> Settings:
    """Settings of an operator whose installation has two shards, with a node that does not answer now."""
    settings = of(
        tmp_path,
        2,
        rpc_url=SecretStr(SILENT),
        database_url=SecretStr(emptied),
        master_key=SecretStr(a_key("master").hex()),
    )
    store_deployment(settings.deployment_file, make_world(a_key("shards")).deployment)
    async with Database(settings.database) as database:
        await upgrade(database)
        await check_shards(database, settings)
    return settings


@pytest.mark.parametrize("role", [Role.TRADING, Role.ENGINE, Role.TREASURY])
@pytest.mark.parametrize("count", [1, 3])
async def test_attack_m4_every_role_that_opens_journals_or_asks_engines_refuses_another_number(
    of_two_shards: Settings, role: Role, count: int
) -> None:
    changed = of_two_shards.model_copy(update={"shards": count})
    with pytest.raises(ShardCountChanged, match=f"created with 2 shards, and {count} are"):
        await Installation(changed, [role]).start()
    assert list(changed.data.glob("journal*")) == []


async def test_attack_m4_the_engine_in_the_trading_process_counts_as_no_shard(
    of_two_shards: Settings,
) -> None:
    changed = of_two_shards.model_copy(update={"shards": 0})
    with pytest.raises(ShardCountChanged, match="created with 2 shards, and 0 are configured"):
        await Installation(changed, [Role.TRADING]).start()
    assert not (changed.data / "journal").exists()


async def test_a_role_without_journals_and_engines_needs_no_number(of_two_shards: Settings) -> None:
    running = Installation(of_two_shards.model_copy(update={"shards": 0}), [Role.DATA])
    await running.start()
    await running.stop()
    async with Database(of_two_shards.database) as database, database.reading() as tx:
        assert await load_fact(tx, SHARDS) == "2"
