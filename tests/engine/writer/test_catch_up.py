from pathlib import Path

import pytest
from tests.rigs.clock import Clock
from tests.rigs.values import TOKEN, a_buy, a_placing, a_sell, an_open_market, some_funds

from foretell.domain.errors.storage import JournalDamaged, TablesBehindSnapshot
from foretell.domain.exchange.commands import Command
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.catch_up import CatchUp
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import FileJournalAddress
from foretell.journal.snapshot_process import take_snapshot

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 8 * 1024


def some_commands() -> list[Command]:
    """Return commands of which most match the one before."""
    sides = (a_buy, a_sell)
    names = ("alice", "bob")
    orders = [
        a_placing(sides[salt % 2](names[salt % 2], 50, 5 * TOKEN, salt=str(salt)))
        for salt in range(58)
    ]
    return [an_open_market(), some_funds(*names), *orders]


@pytest.fixture
async def published(tmp_path: Path) -> list[CommittedCommand]:
    """The commands as the engine published them; a snapshot after ten of them is in the folder."""
    published: list[CommittedCommand] = []
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    await engine.start()
    engine.subscribe(published.append)
    for command in some_commands():
        await engine.submit(command)
    await engine.close()
    take_snapshot(tmp_path, 10)
    return published


def read(catch_up: CatchUp, until: int) -> list[CommittedCommand]:
    return [each for each in catch_up.committed(until) if each is not None]


@pytest.mark.parametrize("sequence", [0, 9, 10, 14, 60])
async def test_the_journal_gives_what_the_engine_published(
    published: list[CommittedCommand], tmp_path: Path, sequence: int
) -> None:
    catch_up = CatchUp(FileJournalAddress(str(tmp_path)), sequence)
    later = [each for each in published if each.sequence > sequence]
    first, last = max(sequence, 15), published[-1].sequence
    assert read(catch_up, first) + read(catch_up, last) == later


async def test_the_last_command_comes_even_without_an_effect(
    published: list[CommittedCommand], tmp_path: Path
) -> None:
    assert 2 not in {each.sequence for each in published}
    last = read(CatchUp(FileJournalAddress(str(tmp_path)), 0), 2)[-1]
    assert last is not None
    assert (last.sequence, last.effects) == (2, [])


async def test_tables_that_lack_removed_commands_are_refused(
    published: list[CommittedCommand], tmp_path: Path
) -> None:
    for sequence in (55, 60):
        take_snapshot(tmp_path, sequence)
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    assert await journal.compact() > 0
    await journal.close()
    with pytest.raises(TablesBehindSnapshot):
        CatchUp(FileJournalAddress(str(tmp_path)), published[0].sequence)


async def test_m1_tables_between_two_snapshots_get_what_they_lack(
    published: list[CommittedCommand], tmp_path: Path
) -> None:
    """A finding: a standby without the last commits took over, and only the newest snapshot was looked at."""
    for sequence in (50, 60):
        take_snapshot(tmp_path, sequence)
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    assert await journal.compact() > 0
    await journal.close()
    later = [each for each in published if each.sequence > 57]
    assert read(CatchUp(FileJournalAddress(str(tmp_path)), 57), 60) == later


async def test_a_damage_of_a_journal_without_a_snapshot_is_said_to_be_one(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    engine = Engine(journal, Clock().now_ms)
    await engine.start()
    await engine.submit(an_open_market())
    await engine.close()
    spoil_the_segment(tmp_path)
    catch_up = CatchUp(FileJournalAddress(str(tmp_path)), 0)
    with pytest.raises(JournalDamaged):
        read(catch_up, 1)


def spoil_the_segment(folder: Path) -> None:
    """Change a byte of the first command."""
    (segment,) = folder.glob("*.journal")
    found = bytearray(segment.read_bytes())
    found[60] ^= 0xFF
    segment.write_bytes(found)
