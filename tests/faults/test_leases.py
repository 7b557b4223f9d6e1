"""Leaders of a shard, in processes of their own, that are killed and stopped under load."""

import contextlib
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tests.journal.shards import query

from foretell.journal.rows import read_entries

LEADING = Path(__file__).with_name("leading.py")
DEADLINE_S = 30.0
KILLED_LEASE_S = 1.2
STOPPED_LEASE_S = 0.5
OUTAGE_PER_LEASE = 1.5


class Leader:
    """A process that leads or waits to, and what it told."""

    def __init__(self, url: str, lease_s: float, name: str) -> None:
        self.acknowledged: dict[int, str] = {}
        self.name = name
        arguments = [sys.executable, str(LEADING), url, "0", str(lease_s), name]
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
def leaders(url: str, lease_s: float, *names: str) -> Iterator[list[Leader]]:
    started = []
    try:
        for name in names:
            started.append(Leader(url, lease_s, name))
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
        assert leader.acknowledged
        assert leader.acknowledged.items() <= payload_by_sequence.items()
        theirs = [payload for payload in payloads if payload.startswith(f"{leader.name}-")]
        assert theirs == [f"{leader.name}-{number}" for number in range(len(theirs))]


def test_another_leads_soon_after_a_leader_was_killed_and_nothing_is_lost(journal_url: str) -> None:
    with leaders(journal_url, KILLED_LEASE_S, "first", "second") as (leader, waiting):
        leader.until_acknowledged(200)
        killed_at = time.monotonic()
        leader.process.kill()
        leads_at, _ = waiting.until("leads")
        assert leads_at - killed_at < OUTAGE_PER_LEASE * KILLED_LEASE_S
        waiting.until_acknowledged(200)
        leader.end()
        waiting.end()
    check_journal(journal_url, leader, waiting)


def test_a_leader_that_was_stopped_for_a_while_is_fenced(journal_url: str) -> None:
    with leaders(journal_url, STOPPED_LEASE_S, "first", "second") as (first, second):
        first.until_acknowledged(100)
        first.process.send_signal(signal.SIGSTOP)
        second.until("leads")
        second.until_acknowledged(100)
        first.process.send_signal(signal.SIGCONT)
        _, line = first.until("lost")
        assert "the lease of shard 0 is lost" in line
        second.until_acknowledged(100)
        first.process.wait(DEADLINE_S)
        second.end()
    check_journal(journal_url, first, second)
    ((epochs,),) = query(journal_url, "SELECT count(DISTINCT epoch) FROM journal.record")
    assert epochs == 2
