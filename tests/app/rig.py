"""Installations in this process, each with a folder and ports of its own, and the processes they leave."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.rigs.ports import free_port

from foretell.app.gateway import bind, build_server
from foretell.app.http.bounded_connection import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.fast_connection import NO_FAST_ROUTES, FastRoutes
from foretell.app.installation import Installation
from foretell.app.roles import ALL_ROLES, Role
from foretell.edge.telemetry import AsgiApp
from foretell.settings import Settings

POLL_S = 0.005
ENDED_WITHIN_S = 20.0


def forget_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Isolate the settings from the developer's environment and file."""
    for name in [name for name in os.environ if name.startswith("FORETELL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(folder)


def sandbox_settings(folder: Path, **given: Any) -> Settings:
    """Return the settings of `foretell up`, on ports that nothing listens on."""
    ports = {"port": free_port(), "chain_port": free_port()}
    return Settings(**{"data": folder / "data", **ports, **given})


@contextlib.asynccontextmanager
async def installed(
    settings: Settings, roles: Collection[Role] = ALL_ROLES, **options: Any
) -> AsyncIterator[Installation]:
    """Give an installation that answers, and stop it at the end of the block."""
    installation = Installation(settings, roles, **options)
    await installation.start()
    try:
        yield installation
    finally:
        await installation.stop()


@contextlib.asynccontextmanager
async def serving(
    app: AsgiApp,
    fast_routes: FastRoutes = NO_FAST_ROUTES,
    limits: ConnectionLimits = CONNECTION_LIMITS,
) -> AsyncIterator[str]:
    """Serve an application by the real server on a free port, and give its host and port."""
    listener = bind("127.0.0.1", 0, "FORETELL_PORT")
    server = build_server(app, "127.0.0.1", 0, fast_routes, limits)
    running = asyncio.create_task(server.serve([listener]))
    while not server.started:  # noqa: ASYNC110 - the server has no event to wait for
        await asyncio.sleep(POLL_S)
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


async def get(settings: Settings, path: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=settings.base_url, trust_env=False) as http:
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


def is_free(port: int) -> bool:
    """Return whether nothing listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
