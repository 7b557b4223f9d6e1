"""M4: journals of another origin under the tables of an installation."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from structlog.testing import capture_logs
from tests.app.test_origin import TABLES, copy_tables, parts_named
from tests.rigs.in_process import installed, sandbox_settings
from tests.rigs.journals import PostgresJournals, written

from foretell.app.lasting_refusals import LASTING_REFUSALS
from foretell.app.origin import FILE, check_journal
from foretell.app.roles import Role
from foretell.chain.rpc import Rpc
from foretell.cli.journal import run_rebuild
from foretell.domain.errors.storage import ForeignJournal
from foretell.engine.writer.chain_feed import BLOCKS_UNOBSERVED_MAX
from foretell.journal.files.identity import NAME
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.port import Journal
from foretell.sdk.http import wait_for
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.tables import identity, projections

pytestmark = pytest.mark.anyio

ROLES = (Role.TRADING, Role.INDEXER)
READER = "trading"
LEASE_S = 60.0
"""A machine that is busy with other tests does not let one of seconds be renewed in time."""
WITHIN_S = 180.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return sandbox_settings(tmp_path)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'foretell.db'}") as database:
        await upgrade(database)
        yield database


async def run_until_written(settings: Settings, commands: int) -> None:
    """Run an installation until its journal has so many more commands, and its tables one of them."""
    async with installed(settings, ROLES):
        for _ in range(commands):
            before = end_of_journal(settings)
            async with Rpc(settings.devchain_url) as rpc:
                await rpc.call("anvil_mine", hex(2 * BLOCKS_UNOBSERVED_MAX))
            await wait_for("a command", partial(is_beyond, settings, before), WITHIN_S)
    if commands:
        async with Database(settings.database) as database:
            await write_sequence(database, 1)


async def is_beyond(settings: Settings, before: int) -> bool | None:
    return end_of_journal(settings) > before or None


def end_of_journal(settings: Settings) -> int:
    return max((each.sequence for each in read_entries(settings.data / "journal")), default=0)


def remove_tables(settings: Settings) -> None:
    for name in TABLES:
        (settings.data / name).unlink(missing_ok=True)


async def test_attack_m4_another_journal_under_tables_with_commands_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    """A longer journal was taken for that of the tables: its first commands were never written to them."""
    await run_until_written(settings, 1)
    copy_tables(settings.data, tmp_path / "first")
    (settings.data / "journal").rename(tmp_path / "first journal")
    remove_tables(settings)
    await run_until_written(settings, 3)
    copy_tables(tmp_path / "first", settings.data)
    with pytest.raises(ForeignJournal, match="foretell journal rebuild"):
        await run_until_written(settings, 0)

    await asyncio.to_thread(run_rebuild, settings, Console(quiet=True))
    with capture_logs() as logs:
        await run_until_written(settings, 1)
    assert "journal" not in parts_named(logs), "the data folder had the second one before"
    shutil.rmtree(settings.data / "journal")
    (tmp_path / "first journal").rename(settings.data / "journal")
    remove_tables(settings)
    with capture_logs() as logs:
        await run_until_written(settings, 1)
    assert parts_named(logs) == ["database", "journal"]


async def test_an_installation_of_an_earlier_version_notes_its_journal_at_its_next_start(
    settings: Settings,
) -> None:
    await run_until_written(settings, 1)
    (settings.data / "journal" / NAME).unlink()
    (settings.data / FILE).unlink()
    async with Database(settings.database) as database, database.writing() as tx:
        await tx.execute(identity.delete().where(identity.c.name.startswith("journal")))
    with capture_logs() as logs:
        await run_until_written(settings, 1)
        await run_until_written(settings, 1)
    assert parts_named(logs) == []


async def test_an_installation_whose_journal_lost_its_id_starts(
    settings: Settings,
) -> None:
    """It was refused for good when its journal was compacted, which no rebuild takes."""
    await run_until_written(settings, 1)
    file = settings.data / "journal" / NAME
    before = file.read_bytes()
    file.unlink()
    with capture_logs() as logs:
        await run_until_written(settings, 1)
    assert file.read_bytes() == before
    assert len([each for each in logs if "journal was lost" in each["event"]]) == 1
    assert parts_named(logs) == []


@pytest.fixture(params=["file", "postgresql"])
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Journal]:
    if request.param == "file":
        return lambda name: FileJournal(tmp_path / name)
    return PostgresJournals(request.getfixturevalue("journal_url"), LEASE_S).open


@pytest.fixture
async def journals(
    open_journal: Callable[[str], Journal],
) -> AsyncIterator[tuple[Journal, Journal]]:
    """Two journals with three commands each."""
    for name in ("one", "other"):
        await written(open_journal(name), [b"a", b"b", b"c"])
    one, other = open_journal("one"), open_journal("other")
    yield one, other
    await one.close()
    await other.close()


async def write_sequence(database: Database, sequence: int, name: str = READER) -> None:
    async with database.writing() as tx:
        await tx.upsert_rows(projections, [(name, sequence)])


async def test_tables_accept_the_journal_that_they_have_noted_and_refuse_another(
    database: Database, journals: tuple[Journal, Journal], tmp_path: Path
) -> None:
    one, other = journals
    await check_journal(database, tmp_path, READER, one)
    await write_sequence(database, 2)
    await check_journal(database, tmp_path, READER, one)
    with pytest.raises(ForeignJournal) as refused:
        await check_journal(database, tmp_path, READER, other)
    assert refused.value.details == {"noted": one.identity, "seen": other.identity}
    await write_sequence(database, 4)
    await check_journal(database, tmp_path, READER, other)  # it is behind: the engine refuses it
    await write_sequence(database, 2)
    await check_journal(database, tmp_path, READER, one)


async def test_the_treasury_refuses_another_journal_while_a_shard_has_commands(
    database: Database, tmp_path: Path
) -> None:
    one, other = FileJournal(tmp_path / "one"), FileJournal(tmp_path / "other")
    await check_journal(database, tmp_path, "treasury", one)
    await check_journal(database, tmp_path, "treasury", other)
    await write_sequence(database, 1, "trading:0")
    with pytest.raises(ForeignJournal, match="the tables of treasury"):
        await check_journal(database, tmp_path, "treasury", one)
    await one.close()
    await other.close()


@pytest.mark.parametrize(("commands", "tables_sequence"), [([], 0), ([b"a"], 2)])
async def test_a_journal_without_a_file_of_its_id_that_is_empty_or_behind_gets_no_noted_id(
    database: Database, tmp_path: Path, commands: list[bytes], tables_sequence: int
) -> None:
    folder = tmp_path / "journal"
    journal = FileJournal(folder)
    noted = journal.identity
    await check_journal(database, tmp_path, READER, journal)
    await journal.close()
    await written(FileJournal(folder), commands)
    (folder / NAME).unlink()
    await write_sequence(database, tables_sequence)
    journal = FileJournal(folder)
    await check_journal(database, tmp_path, READER, journal)
    assert journal.identity != noted
    await journal.close()


def test_a_journal_of_others_is_a_lasting_refusal() -> None:
    """A supervised engine would be started again for ever."""
    assert issubclass(ForeignJournal, LASTING_REFUSALS)
