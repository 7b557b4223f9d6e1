"""Heaps of a process with many threads."""

import ctypes
import subprocess
import sys

import pytest

from foretell.runtime.heaps import HEAPS_MAX, share_heaps

THREADS = 12
PROGRAM = f"""
import ctypes, threading
{{}}
together = threading.Barrier({THREADS})
def allocate():
    together.wait()
    kept.append(bytearray(50_000))
    together.wait()
kept = []
threads = [threading.Thread(target=allocate) for _ in range({THREADS})]
for each in threads:
    each.start()
for each in threads:
    each.join()
ctypes.CDLL(None).malloc_stats()
"""
SHARING = "from foretell.runtime.heaps import share_heaps; share_heaps()"


def heaps_of(program: str) -> int:
    """Return the number of heaps that a process has at its end."""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return ran.stderr.count("Arena ")


def test_many_threads_share_few_heaps() -> None:
    """A finding: a server kept what the largest read of each of its connections had needed."""
    assert heaps_of(PROGRAM.format("")) > HEAPS_MAX
    assert heaps_of(PROGRAM.format(SHARING)) == HEAPS_MAX


def test_another_library_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    share_heaps()
