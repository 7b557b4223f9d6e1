"""The starvation of the process of dear reads: other programs take all of the processors."""

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

STARVED_RUN_SHARE: Final = 0.05
"""Of the time that passed: a process that ran for less, though it had work, is starved."""
STARVED_WAIT_SHARE: Final = 0.5
"""Of the time that passed: one that waited less for a processor waited for something else, such as a database."""
_NS: Final = 1_000_000_000


class RunTime(NamedTuple):
    """How long the threads of a process ran and waited for a processor, in seconds, as the kernel counts them."""

    ran_s: float
    waited_s: float

    def is_starved_since(self, before: "RunTime", elapsed_s: float) -> bool:
        """Return whether others had the processors in the time that passed."""
        ran_s, waited_s = self.ran_s - before.ran_s, self.waited_s - before.waited_s
        return ran_s < STARVED_RUN_SHARE * elapsed_s and waited_s > STARVED_WAIT_SHARE * elapsed_s


def run_time_of(process_id: int) -> RunTime | None:
    """Return the times of a process that runs where others leave time; None for any other, or if nothing counts them."""
    if sys.platform != "linux":
        return None
    ran_ns = waited_ns = 0
    try:
        if os.sched_getscheduler(process_id) != os.SCHED_IDLE:
            return None
        for task in Path(f"/proc/{process_id}/task").iterdir():
            ran, waited, _ = (task / "schedstat").read_bytes().split()
            ran_ns, waited_ns = ran_ns + int(ran), waited_ns + int(waited)
    except (OSError, ValueError):
        return None
    return RunTime(ran_ns / _NS, waited_ns / _NS)


class Starvation:
    """Looks at the process while it has reads."""

    def __init__(self) -> None:
        self._process_id: int | None = None
        self._time: RunTime | None = None
        self._since_s = 0.0

    def look(self, process_id: int | None, now_s: float, after_s: float) -> bool:
        """Return whether a process that has reads was starved for so long; the id is None while none has any.

        The kernel counts a wait when it has ended, so that times that stand still say nothing yet.
        """
        time = None if process_id is None else run_time_of(process_id)
        if time is None or self._time is None or process_id != self._process_id:
            self._process_id, self._time, self._since_s = process_id, time, now_s
            return False
        elapsed_s = now_s - self._since_s
        if elapsed_s < after_s or time == self._time:
            return False
        is_starved = time.is_starved_since(self._time, elapsed_s)
        self._time, self._since_s = time, now_s
        return is_starved
