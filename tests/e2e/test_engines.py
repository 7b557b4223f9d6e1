"""Engines in processes of their own, their journals in PostgreSQL, killed while a market is played."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.e2e.running import FORETELL, Running
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e engines")]

SHARDS = 1
WITHIN_S = 180.0


@pytest.fixture
def apart(
    blank: Running, postgres: PostgresServer, journal_url: str, monkeypatch: pytest.MonkeyPatch
) -> Running:
    """An installation, not started, whose engines are to run apart."""
    postgres.empty_database()
    monkeypatch.setenv("FORETELL_DATABASE_URL", journal_url)
    monkeypatch.setenv("FORETELL_JOURNAL", "postgres")
    monkeypatch.setenv("FORETELL_SHARDS", str(SHARDS))
    return blank


def engines(running: Running) -> list[int]:
    """Return the ids of the engines' processes."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "serve engine" in line and str(running.data) in line:
                found.append(int(folder.name))
    return found


async def test_the_demo_plays_its_story_while_leaders_are_killed(apart: Running) -> None:
    await apart.start()
    assert len(engines(apart)) == SHARDS
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
    told = asyncio.create_task(playing.communicate())
    for _ in range(2):
        await asyncio.sleep(5)
        for pid in engines(apart):
            os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(WITHIN_S):
        output = (await told)[0].decode()
    assert playing.returncode == 0, output + apart.output
    assert "1080 in = 990 out + 90 still locked" in output
    assert apart.output.count("a process ended and is started again") == 2 * SHARDS
    assert apart.stop() == 0, apart.output
    assert apart.processes() == []
