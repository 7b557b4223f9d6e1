"""Journals in files as each version of the product writes them, for tests of the files."""

import asyncio
import random
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.journal.files.version_1 import write_version_1
from tests.rigs.journals import writing

from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import find_end

SEGMENT_BYTES = 32 * 1024
PAYLOADS = [
    random.Random(number).randbytes(random.Random(number).choice((5, 90, 300, 1_300)))
    for number in range(300)
]
UPGRADED_AFTER = 120


def open_journal(folder: Path, segment_bytes: int = SEGMENT_BYTES) -> FileJournal:
    return FileJournal(folder, segment_bytes=segment_bytes)


def read(folder: Path) -> list[bytes]:
    """Return the payloads of a journal, as a start reads them."""
    find_end(folder)
    return [entry.payload for entry in read_entries(folder)]


def overwrite(path: Path, contents: bytes) -> None:
    """Give a file other contents where it is: the disk gets a file that was emptied when it closes."""
    with path.open("r+b") as file:
        file.write(contents)
        file.truncate()


def batches(payloads: list[bytes]) -> Iterator[list[bytes]]:
    """Yield payloads in batches that give both small and large frames."""
    rng, start = random.Random(len(payloads)), 0
    while start < len(payloads):
        count = rng.choice((1, 2, 12, 50))
        yield payloads[start : start + count]
        start += count


async def write_batches(folder: Path, payloads: list[bytes]) -> None:
    """Write payloads in several batches, and close the journal."""
    journal = open_journal(folder)
    async with writing(journal) as calls:
        for batch in batches(payloads):
            for payload in batch:
                journal.append(payload)
            await calls.until_synced(journal.last_sequence)


class Client:
    """A connection from which the running loop reads."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._theirs, self._ours = socket.socketpair()
        asyncio.get_running_loop().add_reader(self._ours, self._receive)

    def _receive(self) -> None:
        self.received.append(self._ours.recv(100))

    def send(self) -> None:
        self._theirs.send(b"x")

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._ours)
        self._theirs.close()
        self._ours.close()


def write_with_version_1(folder: Path) -> None:
    write_version_1(folder, batches(PAYLOADS), SEGMENT_BYTES)


def write_with_version_2(folder: Path) -> None:
    asyncio.run(write_batches(folder, PAYLOADS))


def write_with_both(folder: Path) -> None:
    """Write a journal that was upgraded in between."""
    write_version_1(folder, batches(PAYLOADS[:UPGRADED_AFTER]), SEGMENT_BYTES)
    asyncio.run(write_batches(folder, PAYLOADS[UPGRADED_AFTER:]))


WRITERS = {
    "version 1": write_with_version_1,
    "version 2": write_with_version_2,
    "both": write_with_both,
}
