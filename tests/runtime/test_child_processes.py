import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from foretell.runtime import child_processes
from foretell.runtime.child_processes import Child, supervise

pytestmark = pytest.mark.anyio

SOON_S = 20.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_processes, "RESTART_S", 0.01)
    monkeypatch.setattr(child_processes, "STOP_DEADLINE_S", 0.5)


def a_child(monkeypatch: pytest.MonkeyPatch, script: str, **environment: str) -> Child:
    """Return a child that runs a script in the place of a command of ours."""
    monkeypatch.setattr(child_processes, "COMMAND", (sys.executable, "-c"))
    return Child("a child", [script], environment=environment)


@contextlib.asynccontextmanager
async def kept(child: Child) -> AsyncIterator[None]:
    keeping = asyncio.create_task(supervise(child))
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)


def note_of(path: Path, ending: str) -> str:
    """Return a script that notes its process id, and then does something."""
    return f"import os, sys, signal, time\nopen({str(path)!r}, 'a').write(f'{{os.getpid()}}\\n')\n{ending}"


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


async def test_a_process_that_ends_is_started_again_and_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "pids"
    with capture_logs() as logs:
        async with kept(a_child(monkeypatch, note_of(path, "sys.exit(3)"))):
            await until(lambda: len(pids(path)) >= 2)
    ended = [each for each in logs if each["event"] == "a process ended and is started again"]
    assert {(each["process"], each["code"]) for each in ended} == {("a child", 3)}


async def test_a_process_is_asked_to_stop_with_who_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "pids"
    async with kept(a_child(monkeypatch, note_of(path, "time.sleep(60)"))):
        await until(lambda: len(pids(path)) == 1)
    with pytest.raises(ProcessLookupError):
        os.kill(pids(path)[0], 0)


async def test_a_process_that_does_not_stop_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "pids"
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1); time.sleep(60)"
    script = (
        f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{note_of(path, stubborn)}"
    )
    async with kept(a_child(monkeypatch, script)):
        await until(lambda: len(pids(path)) == 1)
    with pytest.raises(ProcessLookupError):
        os.kill(pids(path)[0], 0)


async def test_a_process_finds_what_it_needs_in_its_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "said"
    script = f"import os, time\nopen({str(path)!r}, 'w').write(os.environ['WORD'])\ntime.sleep(60)"
    async with kept(a_child(monkeypatch, script, WORD="swordfish")):
        await until(lambda: path.exists() and path.read_text() == "swordfish")


async def test_a_process_notices_the_end_of_who_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "pids"
    child = a_child(monkeypatch, note_of(path, "os.read(0, 1)"))
    process = await child_processes._start(child)
    await until(lambda: len(pids(path)) == 1)
    assert process.stdin is not None
    process.stdin.close()
    await process.stdin.wait_closed()
    async with asyncio.timeout(SOON_S):
        assert await process.wait() == 0


def test_what_a_child_finds_in_its_environment_is_not_shown() -> None:
    assert "swordfish" not in repr(Child("a child", [], environment={"WORD": "swordfish"}))
