from collections.abc import Callable
from typing import cast

import pytest

from foretell.bench.rigs.journal_writer import JournalWriter
from foretell.domain.errors.command import BenchFailed
from foretell.domain.errors.storage import JournalFailed
from foretell.journal.port import Journal

pytestmark = pytest.mark.anyio


class BrokenJournal:
    """A journal that can make nothing durable."""

    last_sequence = 0

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        del on_synced
        self._on_failed = on_failed

    def append(self, payload: bytes) -> int:
        del payload
        self.last_sequence += 1
        self._on_failed(JournalFailed("the disk is gone"))
        return self.last_sequence


async def test_a_journal_that_fails_ends_the_benchmark() -> None:
    writer = JournalWriter(cast("Journal", BrokenJournal()))
    with pytest.raises(BenchFailed, match="the disk is gone"):
        await writer.write([b"payload"])
