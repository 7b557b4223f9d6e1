"""Requests to an installation, and the processes that it leaves."""

import contextlib
import time
from pathlib import Path

import httpx

from foretell.settings import Settings

POLL_S = 0.005
ENDED_WITHIN_S = 60.0


async def get(settings: Settings, path: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=settings.base_url, trust_env=False, timeout=60) as http:
        return await http.get(path)


def anvil_pid(settings: Settings) -> int:
    """Return the process id of the chain, as its shell wrote it down."""
    return int((settings.data / "chain" / "anvil.pid").read_text())


def processes_on(settings: Settings) -> list[int]:
    """Return every process whose command line names the data folder."""
    mark, found = str(settings.data).encode(), []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                found += [int(folder.name)] if mark in (folder / "cmdline").read_bytes() else []
    return found


def processes_left(settings: Settings) -> list[int]:
    """Return the processes that still work on the data folder some time after they were stopped."""
    ends_at_s = time.monotonic() + ENDED_WITHIN_S
    while (found := processes_on(settings)) and time.monotonic() < ends_at_s:
        time.sleep(POLL_S)
    return found
