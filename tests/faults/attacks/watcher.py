"""A process that looks again and again at what a server holds for strangers.

Arguments: the server's port and process. Prints, as JSON, the most of each figure so far whenever one has grown, and
ends with its input. To read the table of ten thousand connections takes as long as several orders, so the trader, whose
latency is measured, does not do it, and this process leaves others the system for most of the time.
"""

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

LOOK_S: Final = 0.1
"""Between two looks, at least."""
REST_FACTOR: Final = 9.0
"""Between two looks, at least, in lengths of the first: the system delays others while it reads its table."""
NETWORK: Final = "127.0.1."
"""Of the strangers."""
ESTABLISHED: Final = "01"
LOWEST_PRIORITY: Final = 19


class Seen(NamedTuple):
    """The most of what a server held for strangers while it was watched."""

    connections: int = 0
    unsent_bytes: int = 0
    """In the system's buffers of these connections."""
    resident_bytes: int = 0
    """Of the serving process."""

    def most(self, other: "Seen") -> "Seen":
        """Return the larger one of each figure."""
        return Seen(*map(max, self, other))


class ServedConnection(NamedTuple):
    """A connection that a server has accepted, as the system has it: its source, and what it has not taken."""

    source: str
    unsent_bytes: int


def look(port: int, pid: int) -> Seen:
    """Return what the server of a port holds now."""
    strangers = [each for each in served_connections(port) if each.source.startswith(NETWORK)]
    unsent_bytes = sum(each.unsent_bytes for each in strangers)
    return Seen(len(strangers), unsent_bytes, resident_bytes(pid))


def served_connections(port: int) -> Iterator[ServedConnection]:
    """Yield the open connections to a port of this machine that its server has accepted."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, queues, *others = line.split()
        is_accepted = others[4] != "0"  # before that, a connection has no inode
        if local.endswith(f":{port:04X}") and state == ESTABLISHED and is_accepted:
            address = bytes.fromhex(remote.partition(":")[0])[::-1]
            yield ServedConnection(".".join(map(str, address)), int(queues.partition(":")[0], 16))


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; one that has ended is no process, also before its parent knows."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)


def main(port: int, pid: int) -> None:
    """Print what is seen until the input ends."""
    os.nice(LOWEST_PRIORITY)
    seen, rest_s = Seen(), LOOK_S
    while not select.select([sys.stdin], [], [], rest_s)[0]:
        began_s = time.monotonic()
        most = seen.most(look(port, pid))
        rest_s = max(LOOK_S, REST_FACTOR * (time.monotonic() - began_s))
        if most != seen:
            seen = most
            print(json.dumps(seen), flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
