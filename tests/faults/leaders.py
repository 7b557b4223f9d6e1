"""Processes that lead a shard or wait to, what they tell, and whether the journal has it."""

import contextlib
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from foretell.journal.rows import read_entries

LEADING = Path(__file__).with_name("leading.py")
DEADLINE_S = 30.0


class Leader:
    """A process that leads or waits to, and what it told."""

    def __init__(self, url: str, lease_s: float, name: str, terms: int) -> None:
        self.acknowledged: dict[int, str] = {}
        self.name = name
        arguments = [sys.executable, str(LEADING), url, "0", str(lease_s), name, str(terms)]
        self.process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        self._lines: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
        self._hearing = threading.Thread(target=self._hear, args=(self.process.stdout,))
        self._hearing.start()

    def until(self, word: str) -> tuple[float, str]:
        """Return when a line that begins so was told, and the line."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            at, line = self._lines.get(timeout=deadline - time.monotonic())
            if line.startswith(word):
                return at, line

    def until_acknowledged(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + DEADLINE_S
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def end(self) -> None:
        """Kill the process, whatever it does, and take in all that it told."""
        self.process.kill()
        self.process.wait()
        self._hearing.join()

    def _hear(self, lines: IO[str]) -> None:
        with lines:
            self._sort(lines)

    def _sort(self, lines: IO[str]) -> None:
        for line in lines:
            if line[0].isdigit() and line.endswith("\n"):
                sequence, payload = line.split()
                self.acknowledged[int(sequence)] = payload
            else:
                self._lines.put((time.monotonic(), line))


@contextlib.contextmanager
def leaders(url: str, lease_s: float, *names: str, terms: int = 1) -> Iterator[list[Leader]]:
    """Give processes of these names, the first of which leads; each may lose the lease so often."""
    started = []
    try:
        for name in names:
            started.append(Leader(url, lease_s, name, terms))
            started[-1].until("leads" if len(started) == 1 else "waits")
        yield started
    finally:
        for leader in started:
            leader.end()


def check_journal(url: str, *told: Leader) -> None:
    """Check that all who were acknowledged are in the journal, and nobody twice.

    To read it checks that it has no gap, and that each entry follows the one before.
    """
    payload_by_sequence = {entry.sequence: entry.payload.decode() for entry in read_entries(url, 0)}
    payloads = list(payload_by_sequence.values())
    assert len(payloads) == len(set(payloads))
    for leader in told:
        assert leader.acknowledged.items() <= payload_by_sequence.items()
    numbers_by_term: dict[str, list[int]] = {}
    for payload in payloads:
        term, _, number = payload.rpartition("-")
        numbers_by_term.setdefault(term, []).append(int(number))
    for numbers in numbers_by_term.values():
        assert numbers == list(range(len(numbers)))
