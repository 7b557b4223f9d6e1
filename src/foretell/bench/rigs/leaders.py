"""Processes that lead a shard or wait to lead it, started, stopped and killed by a benchmark or a test."""

import contextlib
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Final

from foretell.bench.rigs import leader_process
from foretell.domain.errors.command import BenchFailed

DEADLINE_S: Final = 300.0
POLL_S: Final = 0.005


class Leader:
    """A process that leads or waits to, for this many terms, and what it has reported."""

    def __init__(
        self,
        url: str,
        lease_s: float,
        name: str,
        terms: int = 1,
        *,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.name = name
        self._deadline_s = deadline_s
        self.acknowledged: dict[int, str] = {}
        self.first_at_s: float | None = None
        self.last_at_s: float | None = None
        self._process = subprocess.Popen(  # noqa: S603 - a module of our own
            [sys.executable, "-m", leader_process.__name__, str(lease_s), name, str(terms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{url}\n")
        self._process.stdin.flush()
        self._lines: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
        self._reading = threading.Thread(target=self._read, args=(self._process.stdout,))
        self._reading.start()

    def until(self, word: str) -> tuple[float, str]:
        """Return the next line that begins with a word, and when it was reported."""
        deadline = time.monotonic() + self._deadline_s
        while True:
            try:
                at_s, line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                raise BenchFailed(f"{self.name} did not report that it {word}") from None
            if line.startswith(word):
                return at_s, line

    def until_acknowledged(self, count: int) -> None:
        """Wait until this many more records are acknowledged."""
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + self._deadline_s
        while len(self.acknowledged) < wanted:
            if time.monotonic() > deadline:
                raise BenchFailed(f"records that {self.name} appended were not acknowledged")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop the process until it is resumed."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a stopped process."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self, deadline_s: float = DEADLINE_S) -> None:
        """Kill the process, and read all that it has reported."""
        self._process.kill()
        self.wait(deadline_s)

    def wait(self, deadline_s: float = DEADLINE_S) -> None:
        """Return when the process has ended and all that it has reported is read."""
        assert self._process.stdin is not None
        self._process.wait(deadline_s)
        self._reading.join()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _read(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                at_s = time.monotonic()
                if not line.endswith("\n"):
                    return
                if line[0].isdigit():
                    self._count(line, at_s)
                else:
                    self._lines.put((at_s, line.rstrip("\n")))

    def _count(self, line: str, at_s: float) -> None:
        sequence, payload = line.split()
        if self.first_at_s is None:
            self.first_at_s = at_s
        self.last_at_s = at_s
        self.acknowledged[int(sequence)] = payload


class LeaderSuccession:
    """Leaders of a shard, one after the other; the next one waits before it is needed."""

    def __init__(self, url: str, lease_s: float, terms: int = 1) -> None:
        self._url = url
        self._lease_s = lease_s
        self._terms = terms
        self.leaders: list[Leader] = []

    def follow(self) -> Leader:
        """Start one more, and return it when it leads, or waits if it is not the first."""
        leader = Leader(self._url, self._lease_s, f"leader{len(self.leaders)}", self._terms)
        self.leaders.append(leader)
        leader.until("leads" if len(self.leaders) == 1 else "waits")
        return leader

    def end(self) -> None:
        """Kill all of them."""
        for leader in self.leaders:
            leader.kill()


@contextlib.contextmanager
def succession(url: str, lease_s: float, terms: int = 1) -> Iterator[LeaderSuccession]:
    """Give leaders that end with the block; each leads again after a lost lease, for this many terms."""
    leaders = LeaderSuccession(url, lease_s, terms)
    try:
        yield leaders
    finally:
        leaders.end()
