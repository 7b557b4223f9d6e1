"""The end of a framed process, whichever of its threads still works."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from foretell.app.running import LogOptions
from foretell.runtime.threads import DEMAND_AFTER_S

TIMEOUT_S: Final = 60.0
PROGRAM: Final = """
import asyncio
import threading
import time

from foretell.app.framed_process import ServingConnection, run_framed


def return_a_result(loop: asyncio.AbstractEventLoop) -> None:
    while not loop.is_closed():
        time.sleep(0.001)
    loop.call_soon_threadsafe(print)


class Connection(ServingConnection):
    def take(self, message: bytes) -> None:
        pass

    async def run(self) -> None:
        threading.Thread(target=return_a_result, args=[asyncio.get_running_loop()]).start()
        await asyncio.Event().wait()


run_framed(Connection)
"""
"""A process with a thread that returns its result when nobody waits for it, as a driver's of SQLite may."""

FAILING: Final = """
import asyncio

from foretell.app.framed_process import ServingConnection, run_framed


class Thing:
    def __repr__(self) -> str:
        return "<an object>"

    def fail(self) -> None:
        1 / 0


class Connection(ServingConnection):
    def take(self, message: bytes) -> None:
        pass

    async def run(self) -> None:
        asyncio.get_running_loop().call_soon(Thing().fail)
        await asyncio.sleep(0.01)


run_framed(Connection)
"""


INTERVAL: Final = """
import sys

from foretell.app.framed_process import ServingConnection, run_framed


class Connection(ServingConnection):
    def take(self, message: bytes) -> None:
        pass

    async def run(self) -> None:
        print(sys.getswitchinterval(), flush=True)


run_framed(Connection)
"""


def test_attack_h1_its_threads_need_not_wait_for_a_busy_loop() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ran = subprocess.run(
            [sys.executable, "-c", INTERVAL, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert float(ran.stdout) == pytest.approx(DEMAND_AFTER_S)


def test_a_thread_that_outlives_its_loop_is_no_traceback() -> None:
    """The children of an installation that was killed wrote four."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", PROGRAM, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE) as it:
        theirs.close()
        ours.shutdown(socket.SHUT_RDWR)
        _, errors = it.communicate(timeout=TIMEOUT_S)
    assert errors == b""
    assert it.returncode == 0


def test_attack_m3_faults_of_its_loop_are_logged_with_a_fixed_text() -> None:
    """The words of asyncio would have the object that failed."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", FAILING, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE) as it:
        theirs.close()
        _, errors = it.communicate(timeout=TIMEOUT_S)
    assert errors.count(b"event loop fault") == 1
    assert b"ZeroDivisionError" in errors
    assert b"an object" not in errors


def failing(folder: Path, *words: str) -> str:
    """Return what a process that fails logs, started in this folder with these words."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ran = subprocess.run(
            [sys.executable, "-c", FAILING, str(theirs.fileno()), *words],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            cwd=folder,
        )
    return ran.stderr


def test_it_logs_as_its_parent_and_reads_no_settings(tmp_path: Path) -> None:
    """A file of settings that is changed while an exchange runs does not stop what is started again."""
    (tmp_path / "foretell.toml").write_text('log_level = "nonsense"\n')
    [line] = failing(tmp_path, *LogOptions("warning", log_json=True).words).splitlines()
    assert json.loads(line)["event"] == "event loop fault"
    assert "[error    ] event loop fault" in failing(tmp_path)


@pytest.mark.parametrize(
    "options", [LogOptions(), LogOptions("debug"), LogOptions("error", log_json=True)]
)
def test_the_words_of_a_process_are_how_it_logs(options: LogOptions) -> None:
    assert LogOptions.parse(options.words) == LogOptions.of(options) == options


@pytest.mark.parametrize("name", ["read", "settlement", "tables"])
def test_it_starts_without_the_library_of_settings(name: str) -> None:
    script = (
        f"import sys, foretell.app.{name}_process.process;"
        "print(sorted(sys.modules.keys() & {'foretell.settings', 'pydantic', 'pydantic_settings'}))"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "[]\n"
