"""A process that makes the next snapshot by a replay, so that the engine never stops for one.

Arguments: the journal's folder, and a sequence that is durable. It folds what came after the newest
snapshot and writes the next; it locks nothing and removes nothing. It is as nice as it can be, and
it ends with the process that started it, whose end closes its standard input.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Final

from foretell.domain.errors import ForetellError
from foretell.domain.snapshot import encode_state
from foretell.domain.storage_errors import JournalDamaged
from foretell.journal.port import Snapshot
from foretell.journal.reading import fold
from foretell.journal.segments import chain_at
from foretell.journal.snapshots import (
    ChainedSnapshot,
    newest_snapshot,
    write_snapshot,
)

NICENESS: Final = 19


def take_snapshot(folder: Path, until: int) -> Path:
    """Write the snapshot after a sequence that is durable, and return where."""
    state, sequence = fold(folder, newest_snapshot(folder), until)
    if sequence != until:
        raise JournalDamaged(str(folder), 0, f"it ends at {sequence}, and {until} was durable")
    snapshot = Snapshot(until, encode_state(state))
    return write_snapshot(folder, ChainedSnapshot(snapshot, chain_at(folder, until)))


def main(folder: Path, until: int) -> None:
    """Take the snapshot; what goes wrong is told in one line, and ends with 1."""
    os.nice(NICENESS)

    def end_with_parent() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        take_snapshot(folder, until)
    except ForetellError as error:
        sys.exit(error.message)
    except OSError as error:
        sys.exit(f"{error.filename or folder}: {error.strerror}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
