"""Measures of the machine: its ceilings now, and its use by other programs."""

import contextlib
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from foretell.domain.values.eip712 import recover_signer, sign_digest
from foretell.domain.values.hexadecimal import keccak256

RECOVERIES: Final = 3_000
SYNCS: Final = 50
SYNCED_BYTES: Final = 512
DISTURBED_CORES: Final = 0.10
"""A round during which other programs used more of a core than this says little."""


class Usage(NamedTuple):
    """Seconds of processor time up to a moment: of all programs, of our own, and of other virtual machines.

    The kernel counts all programs by ticks and each one exactly, so that our own may seem to use more than all do. What
    other machines took is counted apart, or that would hide it.
    """

    at_s: float
    all_s: float
    own_s: float
    stolen_s: float = 0.0
    """While this machine wanted the processor, and others on the same one had it."""

    def others_cores(self, later: "Usage") -> float:
        """Return the cores that other programs, of this machine and of others, kept busy until a later moment."""
        others_s = (later.all_s - self.all_s) - (later.own_s - self.own_s)
        stolen_s = later.stolen_s - self.stolen_s
        return (max(others_s, 0.0) + stolen_s) / (later.at_s - self.at_s)


class Watched(Protocol):
    """A measure with the use of the machine by other programs."""

    @property
    def others_cores(self) -> float:
        """Cores that other programs kept busy during the measure."""


W = TypeVar("W", bound=Watched)


def usage_with(*child_pids: int) -> Usage:
    """Return the use up to now; children and their children are our own.

    Needs /proc. The time of a process that ended counts for the process that waited for it, so children that
    ended need no mention.
    """
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, _, _, stolen, *_ = Path("/proc/stat").read_text().split()[1:]
    own = os.times()
    own_s = own.user + own.system + own.children_user + own.children_system
    own_ticks = sum(_ticks(pid) for child in child_pids for pid in family(child))
    return Usage(
        at_s=time.perf_counter(),
        all_s=sum(map(int, (user, nice, system))) / ticks_per_s,
        own_s=own_s + own_ticks / ticks_per_s,
        stolen_s=int(stolen) / ticks_per_s,
    )


def family(pid: int) -> Iterator[int]:
    """Yield a process, its children, and theirs."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            for child in children.read_text().split():
                yield from family(int(child))


def _ticks(pid: int) -> int:
    """Return the ticks of a process and of those that it waited for; 0 when it is gone."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))
    return 0


def cpu_s(pid: int) -> float:
    """Return the seconds of processor time of a process that runs; 0 when it is gone."""
    return _ticks(pid) / os.sysconf("SC_CLK_TCK")


def others_words(cores: float) -> str:
    """Return the cores of other programs in words, marked when they are too many."""
    return f"{cores:.2f}" + (" !" if cores > DISTURBED_CORES else "")


def undisturbed(measured: Sequence[W]) -> Sequence[W]:
    """Return the undisturbed measures, or all when every one was disturbed."""
    return [one for one in measured if one.others_cores <= DISTURBED_CORES] or measured


def disturbance(measured: Sequence[Watched]) -> str:
    """Return a warning when other programs disturbed the measures, or nothing."""
    disturbed = sum(one.others_cores > DISTURBED_CORES for one in measured)
    if not disturbed:
        return ""
    if disturbed == len(measured):
        return "every round was disturbed by other programs: the figures say little"
    return f"{disturbed} of {len(measured)} rounds were disturbed by other programs: not counted"


def machine_words() -> str:
    """Return the processor, the memory and the kernel in words."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{os.cpu_count()} cores ({models[0] if models else platform.machine()}),"
        f" {memory_bytes / 2**30:.0f} GiB, {platform.system()} {platform.release()}"
    )


class RecoverySpeed(NamedTuple):
    """Signers that one core recovers: in a second, and in a second of processor time."""

    per_s: float
    per_cpu_s: float


def recovery_speed(recoveries: int = RECOVERIES) -> RecoverySpeed:
    """Return how fast one core recovers signers, now."""
    key, digest = keccak256(b"bench"), keccak256(b"order")
    signature = sign_digest(digest, key)
    started_s, used_s = time.perf_counter(), time.thread_time()
    for _ in range(recoveries):
        recover_signer(digest, signature)
    elapsed_s, used_s = time.perf_counter() - started_s, time.thread_time() - used_s
    return RecoverySpeed(recoveries / elapsed_s, recoveries / used_s)


def sync_s(folder: Path, syncs: int = SYNCS) -> float:
    """Return the median time until a record in a file is durable."""
    path = folder / "synced"
    record = b"\x55" * SYNCED_BYTES
    path.write_bytes(bytes(SYNCED_BYTES * syncs))
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
        return statistics.median(_time_sync(handle, record, number) for number in range(syncs))
    finally:
        os.close(handle)
        path.unlink()


def _time_sync(handle: int, record: bytes, number: int) -> float:
    started = time.perf_counter()
    os.pwrite(handle, record, number * len(record))
    os.fdatasync(handle)
    return time.perf_counter() - started
