"""Samples of a running sandbox: memory and open files of its processes, sizes of its files."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from foretell.bench.rigs.machine import family
from foretell.bench.rigs.soak.messages import SoakWindow
from foretell.bench.rigs.startup import resident_bytes
from foretell.domain.exchange.state import PLACEMENTS_KEPT_MAX

PROCESSES: Final = {
    "server": "foretell up",
    "tables": "foretell.app.tables_process",
    "recovery": "foretell.app.signer_recovery",
    "settlement": "foretell.app.settlement_process",
    "reads": "foretell.app.read_process",
    "chain": "/bin/anvil",
}
"""The processes of a sandbox by a part of their command line; others are the shells around the chain."""
FILES: Final = {"database": "foretell.db*", "journal": "journal/*", "chain": "chain/*"}
"""The files of a data folder, by what they hold."""
MB: Final = 1e6
SERVER: Final = "memory server MB"
SQLITE: Final = "memory SQLite of server MB"
"""A part of the memory of the server: pages, which fill the caches of its connections in hours."""
SERVER_LESS_KNOWN: Final = "memory server less orders and SQLite MB"
"""The memory of the server without that of SQLite and of orders: whole up to a bound, and then their ids."""
ORDER_BYTES: Final = 600
"""What a server keeps of an order until newer ones have taken its place, with its ids."""
ORDER_ID_BYTES: Final = 80
"""What it keeps of an older order without an expiration until its market ends: 32 bytes, as Python stores them.

They are in a set, which grows by steps.
"""


def sample(pid: int, data: Path, window: SoakWindow, filled: int = 0) -> dict[str, float]:
    """Return all values of a moment by name; those that clients did not measure are left out.

    `filled` orders were placed before the load began.
    """
    values = {"at_s": window.at_s}
    files = 0
    for name, one in processes(pid).items():
        with contextlib.suppress(OSError):  # it has ended
            values[f"memory {name} MB"] = resident_bytes(one) / MB
            files += len(os.listdir(f"/proc/{one}/fd"))  # noqa: PTH208 - names of a process's files
    if window.sqlite_bytes is not None:
        values[SQLITE] = window.sqlite_bytes / MB
    if SERVER in values and SQLITE in values:
        of_orders = order_bytes(filled + window.orders) / MB
        values[SERVER_LESS_KNOWN] = values[SERVER] - values[SQLITE] - of_orders
    values["files open"] = files
    for name, pattern in FILES.items():
        values[f"files {name} MB"] = size_bytes(data, pattern) / MB
    seen: Mapping[str, float | None] = {
        "orders p50 ms": window.orders_p50_ms,
        "orders p99 ms": window.orders_p99_ms,
        "reads p50 ms": window.reads_p50_ms,
        "reads p99 ms": window.reads_p99_ms,
        "lag tables ms": window.tables_ms,
        "lag index blocks": window.index_blocks,
        "lag settlement s": window.unsettled_s,
        "backlog": window.backlog,
        "faults": window.faults,
    }
    return values | {name: value for name, value in seen.items() if value is not None}


def order_bytes(orders: int) -> int:
    """Return the memory that a server needs for so many orders of a load, of which none expires."""
    kept = min(orders, PLACEMENTS_KEPT_MAX)
    return kept * ORDER_BYTES + (orders - kept) * ORDER_ID_BYTES


def processes(pid: int) -> dict[str, int]:
    """Return the processes of a sandbox by name."""
    found: dict[str, int] = {}
    for one in family(pid):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            for name, part in PROCESSES.items():
                if part in words and not words.startswith("/bin/sh"):
                    found.setdefault(name, one)
    return found


def size_bytes(data: Path, pattern: str) -> int:
    """Return the sizes of the files that fit a pattern."""
    total = 0
    for file in data.glob(pattern):
        with contextlib.suppress(OSError):  # it was replaced
            total += file.stat().st_size
    return total
