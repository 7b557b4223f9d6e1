"""A process with limited files: it writes to a journal until that fails, and prints the outcome.

Arguments: the journal's folder, and the largest size of a file.
"""

import asyncio
import resource
import signal
import sys
from pathlib import Path

from foretell.journal.files.journal import FileJournal

SEGMENT_BYTES = 8 * 1024


async def main(folder: Path, file_bytes_max: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    await asyncio.sleep(0.2)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, unlimited[1]))
    synced: list[int] = []
    failed = asyncio.Event()
    failures: list[Exception] = []

    def on_failed(failure: Exception) -> None:
        failures.append(failure)
        failed.set()

    journal.start(synced.append, on_failed)
    while not failed.is_set():
        journal.append(b"x" * 500)
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    sys.stdout.write(f"{synced[-1] if synced else 0} {len(failures)} {failures[0]}\n")


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
