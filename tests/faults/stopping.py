"""A process that works on a journal's files, and is killed before a chosen call.

Arguments: its task (`snapshot` or `compact`), the journal's folder, and the number of the
file-changing call before which it is killed: 1 is the first. A process that completes prints how
many there were.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foretell.journal.files.segments import find_end
from foretell.journal.files.snapshots import compact
from foretell.journal.snapshot_process import take_snapshot

CALLS = ("open", "fsync", "rename", "unlink")


class Countdown:
    """Counts calls, and kills the process before the last one."""

    def __init__(self, calls: int) -> None:
        self.left = calls
        self.made = 0

    def watch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.made += 1
            return call(*arguments, **named)

        return counted


def main(task: str, folder: Path, calls: int) -> None:
    countdown = Countdown(calls)
    for name in CALLS:
        setattr(os, name, countdown.watch(getattr(os, name)))
    if task == "snapshot":
        take_snapshot(folder, find_end(folder).sequence)
    else:
        compact(folder)
    sys.stdout.write(f"{countdown.made}\n")


main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
