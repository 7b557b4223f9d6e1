"""Processes are started without a fork, in both kinds of loops, and end as asyncio's own."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest
import uvloop
from typing_extensions import override

from foretell.runtime import spawning
from foretell.runtime.spawning import spawn

PYTHON: Final = (sys.executable, "-c")
SOON_S: Final = 60.0
FILES: Final = Path("/proc/self/fd")
Run = Callable[[Coroutine[Any, Any, Any]], Any]

forks: list[int] = []
os.register_at_fork(before=lambda: forks.append(os.getpid()))


def _in_time(run: Run) -> Run:
    def run_in_time(work: Coroutine[Any, Any, Any]) -> Any:
        return run(asyncio.wait_for(work, SOON_S))

    return run_in_time


@pytest.fixture(params=[uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Run:
    return _in_time(request.param)


async def output_of(process: Process, given: bytes | None = None) -> tuple[int, bytes, bytes]:
    output, errors = await process.communicate(given)
    return await process.wait(), output, errors


def test_a_start_copies_no_memory_of_this_process(run: Run) -> None:
    """A finding: each start stopped the loop for as long as the fork took, which grew with the memory of an engine."""

    async def start() -> int:
        return await (await spawn("true")).wait()

    before = len(forks)
    assert run(start()) == 0
    assert len(forks) == before


def test_uvloops_own_start_is_a_fork() -> None:
    """If this fails, uvloop starts processes by itself as it should."""

    async def start() -> int:
        return await (await asyncio.create_subprocess_exec("true")).wait()

    before = len(forks)
    assert uvloop.run(start()) == 0
    assert len(forks) == before + 1


def test_all_of_the_pipes_is_read_and_written(run: Run) -> None:
    script = (
        "import sys; given = sys.stdin.buffer.read(); sys.stdout.buffer.write(given[::-1]);"
        " sys.stderr.write('said'); sys.exit(3)"
    )
    given = b"".join(b"%d " % number for number in range(200_000))

    async def play() -> tuple[int, bytes, bytes]:
        process = await spawn(*PYTHON, script, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        return await output_of(process, given)

    assert run(play()) == (3, given[::-1], b"said")


def test_a_process_has_the_environment_the_files_and_the_session_that_it_is_given(run: Run) -> None:
    script = (
        "import os, sys; os.write(int(sys.argv[1]), os.environ['WORD'].encode());"
        " print(os.getsid(0) == os.getpid(), len(os.listdir('/proc/self/fd')))"
    )

    async def play() -> tuple[bytes, bytes]:
        reading, writing = os.pipe()
        process = await spawn(
            *PYTHON,
            script,
            str(writing),
            stdin=DEVNULL,
            stdout=PIPE,
            env={"WORD": "word"},
            pass_fds=[writing],
            start_new_session=True,
        )
        os.close(writing)
        _, output, _ = await output_of(process)
        word = os.read(reading, 100)
        os.close(reading)
        return word, output

    word, output = run(play())
    assert word == b"word"
    has_session, files = output.split()
    assert has_session == b"True"
    assert int(files) == 5, "its three streams, the one that it got, and that of the listing"


def test_a_process_that_is_killed_has_the_signal_as_its_code(run: Run) -> None:
    async def play() -> tuple[int, int | None]:
        process = await spawn(*PYTHON, "import time; time.sleep(60)", stdin=PIPE)
        assert process.returncode is None
        process.send_signal(signal.SIGTERM)
        code = await process.wait()
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # of a process that has ended, so that another one may have its number
        return code, process.returncode

    assert run(play()) == (-signal.SIGTERM, -signal.SIGTERM)


def test_an_end_is_seen_while_another_process_has_its_pipes(run: Run) -> None:
    script = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()']); sys.exit(4)"

    async def play() -> int:
        process = await spawn(*PYTHON, script, stdin=PIPE, stdout=PIPE)
        code = await process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # the other one ends with it
        await process.stdout.read()
        return code

    assert run(play()) == 4


def test_all_who_wait_get_the_code_of_each_of_many_processes(run: Run) -> None:
    async def play() -> list[int]:
        processes = await asyncio.gather(
            *(spawn(*PYTHON, f"raise SystemExit({n})") for n in range(8))
        )
        return await asyncio.gather(*(each.wait() for each in [*processes, *processes]))

    assert run(play()) == [*range(8), *range(8)]


def test_a_program_that_is_missing_is_an_error_and_leaves_no_file_open(run: Run) -> None:
    async def play() -> None:
        before = len(list(FILES.iterdir()))
        for _ in range(3):
            with pytest.raises(FileNotFoundError):
                await spawn("/no/such/program", stdin=PIPE, stdout=PIPE)
        assert len(list(FILES.iterdir())) == before

    run(play())


def test_a_process_whose_end_cannot_be_watched_is_killed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[int]()

    def refuse(pid: int) -> int:
        started.append(pid)
        raise OSError("too many open files")

    async def play() -> None:
        monkeypatch.setattr(os, "pidfd_open", refuse)
        with pytest.raises(OSError, match="too many"):
            await spawn(
                *PYTHON, "import time; time.sleep(60)", stdin=PIPE, stdout=PIPE, stderr=PIPE
            )

    # The first loop of uvloop in a process opens a pipe for signals that stays.
    run(asyncio.sleep(0))
    before = len(list(FILES.iterdir()))
    run(play())
    assert len(list(FILES.iterdir())) == before
    with pytest.raises(ProcessLookupError):
        os.kill(started[-1], 0)


def test_a_process_whose_start_is_given_up_ends(run: Run) -> None:
    """A finding: it ran on, and nobody had it."""
    started = list[int]()

    class Noted(spawning._Transport):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self._process.pid)

    async def play() -> None:
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(spawning, "_Transport", Noted)
            starting = asyncio.create_task(
                spawn(*PYTHON, "import time; time.sleep(60)", stdin=DEVNULL)
            )
            await asyncio.sleep(0)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        while True:
            try:
                os.kill(started[0], 0)
            except ProcessLookupError:
                return
            await asyncio.sleep(0.01)

    run(play())


def test_no_descriptor_is_closed_by_a_file_beside_the_loop(run: Run) -> None:
    """A finding: uvloop closes the descriptor of a file, and then the file: another thread's, if it was opened meanwhile."""
    ends = list[Any]()

    class Noted(spawning._Transport):
        @override
        async def _connect_pipes(self, waiter: Any) -> None:
            ends.extend(getattr(self._process, name) for name in ("stdin", "stdout", "stderr"))
            await super()._connect_pipes(waiter)

    async def play() -> None:
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(spawning, "_Transport", Noted)
            process = await spawn(*PYTHON, "pass", stdin=PIPE, stdout=PIPE, stderr=PIPE)
        await output_of(process)

    run(play())
    assert [type(each) for each in ends] == [socket.socket] * 3


def test_a_system_without_descriptors_of_processes_has_asyncios_own_start(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawning, "_ends_are_seen", lambda: False)

    async def play() -> int:
        return await (await spawn(*PYTHON, "raise SystemExit(5)")).wait()

    assert run(play()) == 5
