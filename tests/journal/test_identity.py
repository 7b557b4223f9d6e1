"""The ids of journals: the tables of one refuse another."""

from pathlib import Path

import pytest
from tests.journal.rig import Open
from tests.rigs.journals import PostgresJournals, query, written

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.identity import NAME
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Journal

pytestmark = pytest.mark.anyio


async def id_of(journal: Journal) -> str:
    identity = journal.identity
    await journal.close()
    return identity


async def test_a_journal_keeps_its_id_and_no_other_has_it(open_journal: Open) -> None:
    first = await id_of(open_journal("one"))
    await written(open_journal("one"), [b"a", b"b"])
    assert await id_of(open_journal("one")) == first
    assert await id_of(open_journal("other")) != first
    assert len(bytes.fromhex(first)) == 16


async def test_a_journal_of_an_earlier_version_gets_an_id_and_keeps_it(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    await written(FileJournal(folder), [b"a"])
    (folder / NAME).unlink()
    given = await id_of(FileJournal(folder))
    assert await id_of(FileJournal(folder)) == given
    assert (folder / NAME).stat().st_mode & 0o777 == 0o600


async def test_a_journal_in_a_database_of_an_earlier_version_gets_an_id_and_keeps_it(
    journal_url: str,
) -> None:
    await written(PostgresJournals(journal_url).open("j"), [b"a"])
    query(journal_url, "DROP TABLE journal.identity")
    given = await id_of(PostgresJournals(journal_url).open("j"))
    journal = PostgresJournals(journal_url).open("j")
    assert [entry.payload for entry in journal.entries()] == [b"a"]
    assert await id_of(journal) == given


@pytest.mark.parametrize("content", [b"", b"x" * 42, b"0" * 32 + b" 00000000\n"])
async def test_an_id_that_is_damaged_stops_the_start(tmp_path: Path, content: bytes) -> None:
    await id_of(FileJournal(tmp_path))
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(JournalDamaged, match=NAME):
        FileJournal(tmp_path)
    (tmp_path / NAME).unlink()
    await id_of(FileJournal(tmp_path))


async def test_every_changed_byte_of_an_id_is_noticed(tmp_path: Path) -> None:
    await id_of(FileJournal(tmp_path))
    whole = (tmp_path / NAME).read_bytes()
    for at in range(len(whole)):
        (tmp_path / NAME).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(JournalDamaged, match=NAME):
            FileJournal(tmp_path)
