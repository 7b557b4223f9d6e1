"""Fixtures of every kind of journal, for the tests that all of them must pass."""

from pathlib import Path

import pytest
from tests.journal.rig import SEGMENT_BYTES, Open, Stored
from tests.rigs.journals import NEVER_INLINE, PostgresJournals, query

from foretell.journal.files.group_commit import INLINE
from foretell.journal.files.journal import FileJournal


@pytest.fixture(params=["file", "file by its thread", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of journal; another one is another parameter."""
    return str(request.param)


@pytest.fixture
def open_journal(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if kind.startswith("file"):
        inline = INLINE if kind == "file" else NEVER_INLINE
        return lambda name: FileJournal(tmp_path / name, segment_bytes=SEGMENT_BYTES, inline=inline)
    return PostgresJournals(request.getfixturevalue("journal_url")).open


@pytest.fixture
def stored(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    if kind.startswith("file"):
        return lambda: [path.read_bytes() for path in tmp_path.rglob("*.journal")]
    url: str = request.getfixturevalue("journal_url")
    return lambda: [row["payload"] for row in query(url, "SELECT payload FROM journal.record")]
