"""Every kind of journal, for the tests that all of them must pass."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.journal.shards import Shards, query

from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Journal

SEGMENT_BYTES = 16 * 1024


class Told:
    """What a journal said, in order, and a way to wait for it."""

    def __init__(self) -> None:
        self.synced: list[int] = []
        self.failures: list[Exception] = []
        self._woken = asyncio.Event()

    def on_synced(self, sequence: int) -> None:
        self.synced.append(sequence)
        self._woken.set()

    def on_failed(self, failure: Exception) -> None:
        self.failures.append(failure)
        self._woken.set()

    async def until_synced(self, sequence: int) -> None:
        """Wait until a sequence is durable."""
        async with asyncio.timeout(30):
            while not self.synced or self.synced[-1] < sequence:
                self._woken.clear()
                await self._woken.wait()

    async def until_failed(self) -> Exception:
        """Wait until the journal gives up, and return why."""
        async with asyncio.timeout(30):
            while not self.failures:
                self._woken.clear()
                await self._woken.wait()
        return self.failures[0]


Open = Callable[[str], Journal]
"""Opens the journal of a name, again and again."""


Stored = Callable[[], list[bytes]]
"""Returns what is stored of every journal, as whoever looks from outside finds it."""


@pytest.fixture(params=["file", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """One more kind of journal is one more parameter."""
    return str(request.param)


@pytest.fixture
def open_journal(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if kind == "file":
        return lambda name: FileJournal(tmp_path / name, segment_bytes=SEGMENT_BYTES)
    return Shards(request.getfixturevalue("journal_url")).open


@pytest.fixture
def stored(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    if kind == "file":
        return lambda: [path.read_bytes() for path in tmp_path.rglob("*.journal")]
    url: str = request.getfixturevalue("journal_url")
    return lambda: [row["payload"] for row in query(url, "SELECT payload FROM journal.record")]


@contextlib.asynccontextmanager
async def writing(journal: Journal) -> AsyncIterator[Told]:
    """Start a journal, and close it in the end."""
    told = Told()
    journal.start(told.on_synced, told.on_failed)
    try:
        yield told
    finally:
        await journal.close()


async def written(journal: Journal, payloads: list[bytes]) -> None:
    """Write payloads and close the journal."""
    async with writing(journal) as told:
        for payload in payloads:
            journal.append(payload)
        if payloads:
            await told.until_synced(journal.last_sequence)
