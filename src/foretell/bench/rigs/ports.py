"""Ports for what a benchmark or a test starts.

The system takes ports of outgoing connections from a range of its own, and other programs run at the same time. So a
port that is only seen to be free may be taken before the process listens on it. Ports here are outside of
that range, and reserved for this process until it ends, by a name that no two sockets of a machine can have.
"""

import errno
import os
import socket
from functools import cache
from pathlib import Path
from typing import Final

from foretell.domain.errors.command import BenchFailed

OUTGOING: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST: Final = 10_000
RANGE_MIN: Final = 5_000
"""With fewer ports below those of outgoing connections, the system chooses."""
TRIES: Final = 1_000


def free_port() -> int:
    """Return a loopback port that nothing listens on, and that no other test or benchmark gets."""
    end = _end()
    if end is None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])
    for _ in range(TRIES):
        port = FIRST + int.from_bytes(os.urandom(4)) % (end - FIRST)
        if _may_be_bound(port) and _reserve(port):
            return port
    raise BenchFailed(f"no port from {FIRST} to {end} is free")


def is_free(port: int) -> bool:
    """Return whether nothing listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@cache
def _end() -> int | None:
    """Return the first port that an outgoing connection may get; None where that is not known, or too low."""
    if not OUTGOING.exists():
        return None
    end = int(OUTGOING.read_text().split()[0])
    return end if end - FIRST >= RANGE_MIN else None


def _may_be_bound(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _reserve(port: int) -> bool:
    """Reserve a port by a Unix socket without a file, or return False if a process of this machine has done so."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0foretell port {port}")
    except OSError as error:
        claim.close()
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    claim.detach()  # it is open until the process ends
    return True
