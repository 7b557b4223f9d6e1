"""The dear reads of an installation, over HTTP: their process begins with the first and ends with the installation."""

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.app.rig import get
from tests.rigs.in_process import installed

from foretell.app.read_process import client
from foretell.app.read_process.client import MODULE, DearReadLimits
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

DEAR = ("/data/trades?limit=10000", "/discovery/markets?order=volume24hr&limit=500")
ENDED_WITHIN_S = 60.0
REFUSED = {429, 503}
"""While the process starts, and while it has the read of a request that was refused at its deadline."""
ANSWERED_WITHIN_S = 300.0
BEGINS_S = 600.0
"""Longer than a read before the first dear one takes, after which the process would begin by itself."""


def children() -> Iterator[str]:
    """Yield the ids of the children of this process."""
    for each in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            yield from each.read_text().split()


def read_processes() -> list[int]:
    """Return the children of this process that answer dear reads; those of an exchange that a rig runs are its own."""
    mark, found = MODULE.encode(), list[int]()
    for pid in children():
        with contextlib.suppress(OSError):  # it has ended
            found += [int(pid)] if mark in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


async def answered(settings: Settings, path: str) -> httpx.Response:
    """Return the answer to a read; a process that starts on a busy machine may take longer than a read waits."""
    async with (
        httpx.AsyncClient(base_url=settings.base_url, trust_env=False, timeout=60) as http,
        asyncio.timeout(ANSWERED_WITHIN_S),
    ):
        while (answer := await http.get(path)).status_code in REFUSED:
            pass
    return answer


async def test_an_installation_answers_dear_reads_in_one_process_that_ends_with_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DearReadLimits", partial(DearReadLimits, begins_s=BEGINS_S))
    async with installed(settings):
        assert (await get(settings, "/data/trades")).status_code == 200
        assert read_processes() == []
        for path in DEAR:
            answer = await answered(settings, path)
            assert (answer.status_code, answer.json()) == (200, [])
            assert answer.headers["etag"]
            assert answer.headers["x-request-id"]
        assert len(read_processes()) == 1
        metrics = (await get(settings, "/metrics")).text
        assert 'api="data",method="GET",route="/trades",status="200"}' in metrics
    async with asyncio.timeout(ENDED_WITHIN_S):
        while read_processes():  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(0.01)
