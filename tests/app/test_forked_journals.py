"""M4: two copies of one installation that went on apart, the database of one beside the journal of the other."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from rich.console import Console
from structlog.testing import capture_logs
from tests.app.test_journal_origin import READER, end_of_journal, is_beyond
from tests.app.test_origin import copy_tables
from tests.rigs.in_process import installed, sandbox_settings
from tests.rigs.journals import PostgresJournals, written

from foretell.app.lasting_refusals import LASTING_REFUSALS
from foretell.app.origin import check_journal
from foretell.app.roles import Role
from foretell.chain.rpc import Rpc
from foretell.cli.journal import run_rebuild
from foretell.domain.errors.storage import JournalForked
from foretell.engine.writer.chain_feed import BLOCKS_UNOBSERVED_MAX
from foretell.journal.files.journal import FileJournal
from foretell.journal.framing import payload_digest
from foretell.journal.port import Journal, Snapshot
from foretell.sdk.http import wait_for
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.tables import projection_ends, projections
from foretell.store.trading.projected import ProjectionEnd, load_ends, load_sequences, record_end

pytestmark = pytest.mark.anyio

ROLES = (Role.TRADING, Role.INDEXER)
WITHIN_S = 180.0
COMMANDS = [b"a" * 5_000, b"b" * 5_000, b"c" * 5_000]
SEGMENT_BYTES = 8_192
"""Each command has a segment of its own, which a snapshot may replace."""


async def go_on(settings: Settings, commands: int) -> None:
    """Run an installation until its journal has so many more commands, and start it until its tables have them.

    A start projects also those that changed no row.
    """
    async with installed(settings, ROLES), Rpc(settings.devchain_url) as rpc:
        for _ in range(commands):
            before = end_of_journal(settings)
            await rpc.call("anvil_mine", hex(2 * BLOCKS_UNOBSERVED_MAX))
            await wait_for("a command", partial(is_beyond, settings, before), WITHIN_S)
    async with installed(settings, ROLES):
        await wait_for("the tables", partial(are_complete, settings), WITHIN_S)


async def are_complete(settings: Settings) -> bool | None:
    async with Database(settings.database) as database, database.reading() as tx:
        sequence = (await load_sequences(tx)).get(READER, 0)
    return sequence == end_of_journal(settings) or None


def copy(source: Path, target: Path) -> None:
    """Replace a database and a journal by copies of others."""
    copy_tables(source, target)
    copy_journal(source, target)


def copy_journal(source: Path, target: Path) -> None:
    shutil.rmtree(target / "journal", ignore_errors=True)
    shutil.copytree(source / "journal", target / "journal")


async def test_attack_m4_tables_and_a_journal_that_went_on_apart_are_refused(
    tmp_path: Path,
) -> None:
    """The tables kept rows of commands that the journal did not have, and nothing said so."""
    settings = sandbox_settings(tmp_path)
    before, one, other = (tmp_path / name for name in ("before", "one", "other"))
    await go_on(settings, 1)
    copy(settings.data, before)
    await go_on(settings, 2)
    copy(settings.data, one)
    copy(before, settings.data)
    await go_on(settings, 3)
    copy(settings.data, other)

    copy_tables(one, settings.data)
    with pytest.raises(JournalForked, match="foretell journal rebuild"):
        await go_on(settings, 0)

    copy(one, settings.data)
    await go_on(settings, 3)
    copy_tables(other, settings.data)
    with pytest.raises(JournalForked, match="foretell journal rebuild"):
        await go_on(settings, 0)

    await asyncio.to_thread(run_rebuild, settings, Console(quiet=True))
    with capture_logs() as logs:
        await go_on(settings, 1)
        copy_tables(before, settings.data)  # older, and of this journal
        await go_on(settings, 1)
    assert [each for each in logs if "not compared" in each["event"]] == []


async def test_starts_after_snapshots_compare_what_the_journal_still_has(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, snapshot_every=1)
    with capture_logs() as logs:
        for _ in range(3):
            await go_on(settings, 1)
            sequence = end_of_journal(settings)
            async with installed(settings, ROLES):
                has_snapshot = partial(has_snapshot_from, settings, sequence)
                await wait_for("a snapshot", has_snapshot, WITHIN_S)
    assert [each for each in logs if "not compared" in each["event"]] == []


async def has_snapshot_from(settings: Settings, sequence: int) -> bool | None:
    """Return True for a snapshot of this sequence or a later one: a command may follow at any time."""
    snapshots = (settings.data / "journal").glob("*.snapshot")
    return any(int(path.stem) >= sequence for path in snapshots) or None


async def test_tables_of_an_earlier_release_are_compared_after_their_next_command(
    tmp_path: Path,
) -> None:
    settings = sandbox_settings(tmp_path)
    await go_on(settings, 1)
    async with Database(settings.database) as database, database.writing() as tx:
        await tx.execute(projection_ends.delete())
    await go_on(settings, 0)
    await go_on(settings, 1)
    async with Database(settings.database) as database, database.reading() as tx:
        assert (await load_ends(tx))[READER].sequence == end_of_journal(settings)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'foretell.db'}") as database:
        await upgrade(database)
        yield database


@pytest.fixture(params=["file", "postgresql"])
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Journal]:
    if request.param == "file":
        return partial(FileJournal, tmp_path / "journal", segment_bytes=SEGMENT_BYTES)
    journals = PostgresJournals(request.getfixturevalue("journal_url"))
    return lambda: journals.open("journal")


async def end_tables(database: Database, sequence: int, payload: bytes) -> None:
    end = ProjectionEnd(sequence, payload_digest(payload).hex())
    async with database.writing() as tx:
        await tx.upsert_rows(projections, [(READER, sequence)])
        await record_end(tx, READER, end)


@pytest.mark.parametrize("sequence", [1, 2, 3])
async def test_only_tables_that_end_with_the_record_of_the_journal_accept_it(
    database: Database, tmp_path: Path, open_journal: Callable[[], Journal], sequence: int
) -> None:
    await written(open_journal(), COMMANDS)
    journal = open_journal()
    await end_tables(database, sequence, COMMANDS[sequence - 1])
    await check_journal(database, tmp_path, READER, journal)
    await end_tables(database, sequence, b"other")
    with pytest.raises(JournalForked) as refused:
        await check_journal(database, tmp_path, READER, journal)
    assert refused.value.details == {"sequence": sequence}
    await journal.close()


async def test_a_record_that_snapshots_have_replaced_is_not_compared(
    database: Database, tmp_path: Path, open_journal: Callable[[], Journal]
) -> None:
    for sequence in (1, 2, 3):
        await written(open_journal(), [COMMANDS[sequence - 1]])
        journal = open_journal()
        await journal.keep_snapshot(Snapshot(sequence, b"state"))
        await journal.close()
    journal = open_journal()
    await end_tables(database, 3, COMMANDS[2])
    await check_journal(database, tmp_path, READER, journal)
    await end_tables(database, 3, b"other")
    with pytest.raises(JournalForked):
        await check_journal(database, tmp_path, READER, journal)
    await end_tables(database, 1, b"other")
    with capture_logs() as logs:
        await check_journal(database, tmp_path, READER, journal)
    await journal.close()
    assert [each["sequence"] for each in logs if "not compared" in each["event"]] == [1]


async def test_rebuilt_tables_end_nowhere(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path)
    await written(FileJournal(settings.data / "journal"), COMMANDS)
    async with Database(settings.database) as database:
        await upgrade(database)
        await end_tables(database, 3, b"other")
        await asyncio.to_thread(run_rebuild, settings, Console(quiet=True))
        async with database.reading() as tx:
            assert await tx.scalar(sa.select(sa.func.count()).select_from(projection_ends)) == 0


def test_a_journal_that_went_on_apart_is_a_lasting_refusal() -> None:
    """A supervised engine would be started again for ever."""
    assert issubclass(JournalForked, LASTING_REFUSALS)
