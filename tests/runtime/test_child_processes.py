import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from foretell.domain.errors.chain import (
    ChainStateDamaged,
    ChainStateTooLarge,
    ChainUnavailable,
    DevChainStillRuns,
    ProgramMissing,
)
from foretell.domain.errors.command import ChildRefused
from foretell.runtime import child_processes
from foretell.runtime.child_processes import (
    ERROR_BYTES_MAX,
    REFUSAL_CODES,
    Child,
    ChildProcess,
    RestartBackoff,
    RunLimits,
    run_once,
    run_supervised,
    start_process,
)
from foretell.runtime.spawning import spawn

pytestmark = pytest.mark.anyio

SOON_S = 60.0
PYTHON = (sys.executable, "-c")
QUICK = RestartBackoff(first_s=0.01, most_s=0.1)
GENEROUS = RunLimits(deadline_s=SOON_S)


def a_process(script: str, **environment: str) -> ChildProcess:
    """Return a child that runs a script instead of a command of ours."""
    child = Child("a child", [script], environment=environment)
    return ChildProcess(child, program=PYTHON, stop_deadline_s=0.5)


@contextlib.asynccontextmanager
async def supervised(process: ChildProcess) -> AsyncIterator[None]:
    supervision = asyncio.create_task(run_supervised("a child", process, QUICK))
    try:
        yield
    finally:
        supervision.cancel()
        await asyncio.gather(supervision, return_exceptions=True)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not is_so():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.01)


def noting(path: Path, ending: str) -> str:
    """Return a script that notes its process id, and then does something."""
    return f"import os, sys, signal, time\nopen({str(path)!r}, 'a').write(f'{{os.getpid()}}\\n')\n{ending}"


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_that_ends_is_started_again_and_logged(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    with capture_logs() as logs:
        async with supervised(a_process(noting(path, "sys.exit(3)"))):
            await until(lambda: len(pids(path)) >= 2)
    ended = [each for each in logs if each["event"] == "process ended and is restarted"]
    assert {(each["process"], each["code"]) for each in ended} == {("a child", 3)}


@pytest.mark.parametrize("code", sorted(REFUSAL_CODES))
async def test_a_process_that_refuses_to_run_ends_its_supervision(
    tmp_path: Path, code: int
) -> None:
    path = tmp_path / "pids"
    process = a_process(noting(path, f"sys.exit({code})"))
    with pytest.raises(ChildRefused) as refused:
        await asyncio.wait_for(run_supervised("a child", process, QUICK), SOON_S)
    assert refused.value.details == {"process": "a child", "exit_code": code}
    assert len(pids(path)) == 1


@pytest.mark.case("A-11")
async def test_a_process_that_cannot_be_started_is_started_later() -> None:
    class Starts(ChildProcess):
        count = 0

        @override
        async def start(self) -> None:
            self.count += 1
            if self.count in {2, 3}:
                raise BlockingIOError(11, "no process")
            await super().start()

    process = Starts(Child("a child", ["pass"]), program=PYTHON)
    with capture_logs() as logs:
        async with supervised(process):
            await until(lambda: process.count >= 5)
    warned = [each for each in logs if each["event"] == "process cannot be started yet"]
    assert [each["cause"] for each in warned] == ["[Errno 11] no process"] * 2


class FailsOnce(ChildProcess):
    """A child whose second start fails; it ends at once."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(Child("a child", ["pass"]), program=PYTHON)
        self.count = 0
        self.failure = failure

    @override
    async def start(self) -> None:
        self.count += 1
        if self.count == 2:
            raise self.failure
        await super().start()


@pytest.mark.parametrize(
    "failure",
    [DevChainStillRuns("chain", 7, 120.0), ChainUnavailable("anvil_dumpState", "ended with -9")],
    ids=lambda failure: failure.code,
)
async def test_a_refusal_of_a_restart_that_passes_is_tried_again(failure: Exception) -> None:
    """A child that was killed for memory once ended the whole installation."""
    process = FailsOnce(failure)
    async with supervised(process):
        await until(lambda: process.count >= 3)


@pytest.mark.parametrize(
    "failure",
    [ChainStateDamaged("chain"), ChainStateTooLarge("chain", 2, 1), ProgramMissing("anvil", "npm")],
    ids=lambda failure: failure.code,
)
async def test_a_lasting_refusal_of_a_restart_ends_the_supervision(failure: Exception) -> None:
    process = FailsOnce(failure)
    with pytest.raises(type(failure)):
        await asyncio.wait_for(run_supervised("a child", process, QUICK), SOON_S)
    assert process.count == 2


async def test_the_end_of_the_supervision_stops_the_process(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    async with supervised(a_process(noting(path, "time.sleep(60)"))):
        await until(lambda: len(pids(path)) == 1)
    assert not is_running(pids(path)[0])


async def test_a_process_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    ignoring = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    async with supervised(a_process(ignoring + noting(path, "time.sleep(60)"))):
        await until(lambda: len(pids(path)) == 1)
    assert not is_running(pids(path)[0])


async def test_a_process_has_the_environment_that_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "said"
    script = f"import os, time\nopen({str(path)!r}, 'w').write(os.environ['WORD'])\ntime.sleep(60)"
    async with supervised(a_process(script, WORD="swordfish")):
        await until(lambda: path.exists() and path.read_text() == "swordfish")


async def test_a_process_notices_the_end_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    child = a_process(noting(path, "os.read(0, 1)"))
    await child.start()
    await until(lambda: len(pids(path)) == 1)
    assert child.process is not None
    assert child.process.stdin is not None
    child.process.stdin.close()
    await child.process.stdin.wait_closed()
    assert await asyncio.wait_for(child.wait(), SOON_S) == 0


def test_the_environment_of_a_child_is_not_shown() -> None:
    assert "swordfish" not in repr(Child("a child", [], environment={"WORD": "swordfish"}))


async def test_a_command_runs_to_its_end_on_its_input() -> None:
    script = "import sys; print(sys.stdin.read().upper(), end=''); sys.exit('so it ends')"
    ended = await run_once([*PYTHON, script], b"words", GENEROUS)
    assert ended == (1, b"WORDS", "so it ends")


async def test_a_command_may_leave_its_input_unread() -> None:
    assert (await run_once([*PYTHON, "pass"], bytes(1_000_000), GENEROUS)).code == 0


async def test_a_command_that_ends_with_its_parent_keeps_its_input_open() -> None:
    script = "import os, select\nassert os.read(0, 5) == b'words'\nprint(select.select([0], [], [], 0.1)[0])"
    ended = await run_once([*PYTHON, script], b"words", GENEROUS, keeps_input_open=True)
    assert ended == (0, b"[]\n", "")


async def test_a_command_that_takes_too_long_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[asyncio.subprocess.Process] = []

    async def note(*command: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await spawn(*command, **options))
        return started[-1]

    monkeypatch.setattr(child_processes, "spawn", note)
    with pytest.raises(TimeoutError):
        await run_once([*PYTHON, "import time; time.sleep(60)"], b"", RunLimits(0.2))
    assert [each.returncode for each in started] == [-9]
    assert not is_running(started[0].pid)


async def test_a_command_with_too_much_output_is_killed() -> None:
    script = "import sys, time\nsys.stdout.write('x' * 300_000)\nsys.stdout.flush()\ntime.sleep(60)"
    ended = await run_once([*PYTHON, script], b"", RunLimits(SOON_S, output_bytes_max=1_000))
    assert ended == (-9, b"", "")


async def test_the_last_of_a_long_error_output_is_kept() -> None:
    script = f"import sys; sys.exit('x' * {3 * ERROR_BYTES_MAX} + ' the end')"
    ended = await run_once([*PYTHON, script], b"", GENEROUS)
    assert (len(ended.errors) <= ERROR_BYTES_MAX, ended.errors[-8:]) == (True, " the end")


async def test_a_command_gets_no_more_memory_than_its_limit() -> None:
    script = "import sys; sys.stdin.read(); bytes(500_000_000)"
    limits = RunLimits(SOON_S, memory_bytes_max=300_000_000)
    ended = await run_once([*PYTHON, script], b"", limits)
    assert (ended.code, ended.errors.splitlines()[-1]) == (1, "MemoryError")


async def test_a_program_that_is_missing_is_reported() -> None:
    with pytest.raises(FileNotFoundError):
        await run_once(["/nowhere/program"], b"", GENEROUS)


@pytest.mark.parametrize("turns", range(1, 12))
async def test_a_start_that_is_canceled_at_any_turn_ends_and_leaves_no_process(turns: int) -> None:
    """asyncio waits for ever when it is canceled between the start and the opening of the pipes."""
    started: list[asyncio.subprocess.Process] = []

    async def start() -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            "/bin/sleep", "60", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        started.append(process)
        return process

    starting = asyncio.create_task(start_process(start()))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    async with asyncio.timeout(SOON_S):
        ended = (await asyncio.gather(starting, return_exceptions=True))[0]
    if isinstance(ended, asyncio.subprocess.Process):
        ended.kill()
        await ended.wait()
    else:
        assert isinstance(ended, asyncio.CancelledError)
    assert [process.returncode for process in started] == [-9] * len(started)
