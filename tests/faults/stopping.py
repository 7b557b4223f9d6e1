"""A process that works on a journal's files, and is ended at the call that it is told.

Arguments: what it does (`snapshot` or `let-go`), the journal's folder, and before which of the calls
that change files it is ended: 1 is the first. One that comes to its end tells how many there were.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foretell.journal.files.segments import find_end
from foretell.journal.files.snapshots import let_go
from foretell.journal.snapshot_process import take_snapshot

CALLS = ("open", "fsync", "rename", "unlink")


class Countdown:
    """Counts calls, and ends the process before the last one."""

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


def main(act: str, folder: Path, calls: int) -> None:
    countdown = Countdown(calls)
    for name in CALLS:
        setattr(os, name, countdown.watch(getattr(os, name)))
    if act == "snapshot":
        take_snapshot(folder, find_end(folder).sequence)
    else:
        let_go(folder)
    sys.stdout.write(f"{countdown.made}\n")


main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
