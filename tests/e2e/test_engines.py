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
WITHIN_S = 180.0
KILLED_EVERY_S = 3.0


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


def leaders(running: Running) -> list[int]:
    """Return the ids of the processes of the engines and of the treasury."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "--member" in line and str(running.data) in line:
                found.append(int(folder.name))
    return found


async def test_the_demo_passes_while_leaders_are_killed(apart: Running) -> None:
    await apart.start()
    assert len(leaders(apart)) == SHARDS + 1
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
    for pid in leaders(apart):
        await asyncio.sleep(KILLED_EVERY_S)
        os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(WITHIN_S):
        output = (await output_task)[0].decode()
    assert playing.returncode == 0, output + apart.output
    assert "1580 in = 1490 out + 90 still locked" in output
    assert apart.output.count("process ended and is restarted") == SHARDS + 1
    assert apart.stop() == 0, apart.output
    assert apart.processes() == []
