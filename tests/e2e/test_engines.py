"""Engines in processes of their own, with journals in PostgreSQL, killed during a demo."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.rigs.installation import FORETELL, Running
from tests.rigs.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e engines")]

SHARDS = 2
WITHIN_S = 900.0
KILLED_EVERY_S = 3.0
POLL_S = 0.05


@pytest.fixture
def apart(
    fresh: Running, postgres: PostgresServer, journal_url: str, monkeypatch: pytest.MonkeyPatch
) -> Running:
    """An installation that was not started, with engines in processes of their own."""
    postgres.empty_database()
    monkeypatch.setenv("FORETELL_DATABASE_URL", journal_url)
    monkeypatch.setenv("FORETELL_JOURNAL", "postgres")
    monkeypatch.setenv("FORETELL_SHARDS", str(SHARDS))
    return fresh


def leaders(running: Running) -> dict[str, int]:
    """Return the ids of the processes of the engines and of the treasury, by what they serve."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "--member" in line and str(running.data) in line:
                served = line.partition(" --member ")[0].rpartition(" serve ")[2]
                found[served] = int(folder.name)
    return found


async def leader(running: Running, served: str, other_than: int | None = None) -> int:
    """Return the id of the process that serves this, once there is another one than the last."""
    pid = leaders(running).get(served)
    while pid is None or pid == other_than:
        await asyncio.sleep(POLL_S)
        pid = leaders(running).get(served)
    return pid


async def test_the_demo_passes_while_leaders_are_killed(apart: Running) -> None:
    await apart.start()
    served = list(leaders(apart))
    assert len(served) == SHARDS + 1
    playing = await asyncio.create_subprocess_exec(
        FORETELL,
        "demo",
        "--data",
        str(apart.data),
        cwd=apart.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "200"},
    )
    output_task = asyncio.create_task(playing.communicate())
    async with asyncio.timeout(WITHIN_S):
        killed = {}
        for each in served:
            await asyncio.sleep(KILLED_EVERY_S)
            killed[each] = await leader(apart, each)
            os.kill(killed[each], signal.SIGKILL)
        output = (await output_task)[0].decode()
        for each, pid in killed.items():
            await leader(apart, each, other_than=pid)
    assert playing.returncode == 0, output + apart.output
    assert "1580 in = 1490 out + 90 still locked" in output
    ended = [line for line in apart.output.splitlines() if "ended and is restarted" in line]
    assert len([line for line in ended if "code=-9" in line]) == SHARDS + 1, apart.output
    assert apart.stop() == 0, apart.output
    assert apart.processes() == []
