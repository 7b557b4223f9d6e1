"""Processes that lead a shard or wait to, as whoever starts, stops and kills them sees them."""

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

DEADLINE_S: Final = 30.0
LOOK_S: Final = 0.005


class Leader:
    """A process that leads or waits to, so many terms, and what it told."""

    def __init__(self, url: str, lease_s: float, name: str, terms: int = 1) -> None:
        self.name = name
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
        self._hearing = threading.Thread(target=self._hear, args=(self._process.stdout,))
        self._hearing.start()

    def until(self, word: str) -> tuple[float, str]:
        """Return when a line that begins so was told, and the line."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                at_s, line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                raise BenchFailed(f"{self.name} did not tell that it {word}") from None
            if line.startswith(word):
                return at_s, line

    def until_acknowledged(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + DEADLINE_S
        while len(self.acknowledged) < wanted:
            if time.monotonic() > deadline:
                raise BenchFailed(f"nobody acknowledged what {self.name} appended")
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """Let the process do nothing, until it may go on."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a process that was stopped go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process, whatever it does, and take in all that it told."""
        self._process.kill()
        self.wait()

    def wait(self) -> None:
        """Return once the process has ended and all that it told is taken in."""
        assert self._process.stdin is not None
        self._process.wait(DEADLINE_S)
        self._hearing.join()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _hear(self, lines: IO[str]) -> None:
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


class Succession:
    """Leaders of a shard, one after the other; whoever waits is known before it is needed."""

    def __init__(self, url: str, lease_s: float, terms: int = 1) -> None:
        self._url = url
        self._lease_s = lease_s
        self._terms = terms
        self.leaders: list[Leader] = []

    def follow(self) -> Leader:
        """Start one more, and return it once it leads, if it is the first, or waits to."""
        leader = Leader(self._url, self._lease_s, f"leader{len(self.leaders)}", self._terms)
        self.leaders.append(leader)
        leader.until("leads" if len(self.leaders) == 1 else "waits")
        return leader

    def end(self) -> None:
        """Kill all of them."""
        for leader in self.leaders:
            leader.kill()


@contextlib.contextmanager
def succession(url: str, lease_s: float, terms: int = 1) -> Iterator[Succession]:
    """Give leaders that end with the block; each leads again when it lost the lease, so many terms."""
    leaders = Succession(url, lease_s, terms)
    try:
        yield leaders
    finally:
        leaders.end()
