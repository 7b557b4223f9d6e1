"""The sandbox of a soak: `foretell up` on a data folder and ports of its own, and its load in another process."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from foretell.bench.rigs.fleet import end_process
from foretell.bench.rigs.ports import free_port
from foretell.bench.rigs.soak.messages import Line, SoakOutcome, SoakPlan, SoakWindow
from foretell.domain.errors.command import BenchFailed
from foretell.settings import PREFIX

READY_DEADLINE_S: Final = 120.0
STOP_DEADLINE_S: Final = 60.0
LINE_DEADLINE_S: Final = 120.0
"""How much later than due a line of the load may come; its audit is the longest wait."""
LOOKUPS_PER_S: Final = 50.0
"""Orders that the audit looks up in a second, at the least."""
FILLED_PER_S: Final = 100.0
"""Orders before the load that are placed and canceled in a second, at the least."""
POLL_S: Final = 0.1


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that what it has started ends too."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def running_sandbox(folder: Path) -> Iterator[int]:
    """Give the process id of a sandbox that answers; it ends with the block. It inherits none of our settings."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    ports = [word for name in ("--port", "--chain-port") for word in (name, str(free_port()))]
    command = [sys.executable, "-m", "foretell", "up", "--data", str(folder / "data"), *ports]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, cwd=folder, env=others, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _await_ready(process, folder)
        yield process.pid
    finally:
        end_process(process, STOP_DEADLINE_S)


def _await_ready(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    give_up_at_s = time.monotonic() + READY_DEADLINE_S
    while not (folder / "data" / "ready.json").exists():
        if process.poll() is not None or time.monotonic() > give_up_at_s:
            raise BenchFailed(f"the sandbox did not start: {_last_line(folder / 'output')}")
        time.sleep(POLL_S)


class LoadProcess:
    """The load on a sandbox, whose lines are read as they come."""

    def __init__(self, process: "subprocess.Popen[bytes]", plan: SoakPlan, window_s: float) -> None:
        self.pid = process.pid
        self._plan = plan
        self._window_s = window_s
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        assert process.stdout is not None
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def lines(self) -> Iterator[Line]:
        """Yield the windows, and the outcome as the last one."""
        filled_within_s = self._plan.filling_orders / FILLED_PER_S
        deadline_s = self._window_s + LINE_DEADLINE_S + filled_within_s
        while True:
            line = self._next(deadline_s)
            yield line
            if isinstance(line, SoakOutcome):
                return
            deadline_s = self._window_s + LINE_DEADLINE_S
            if line.at_s + 2 * self._window_s > self._plan.seconds:
                deadline_s = 2 * self._window_s + self._audit_s()

    def _audit_s(self) -> float:
        """Return how long the audit may take."""
        plan = self._plan
        orders = (plan.orders_per_s + 2 * plan.trades_per_s) * plan.seconds
        return LINE_DEADLINE_S + orders / LOOKUPS_PER_S

    def _next(self, deadline_s: float) -> Line:
        try:
            raw = self._lines.get(timeout=deadline_s)
        except queue.Empty:
            raise BenchFailed(f"the load printed nothing for {deadline_s:g} s") from None
        if not raw:
            raise BenchFailed("the load ended before its time")
        line: Line = msgspec.json.decode(raw, type=SoakWindow | SoakOutcome)
        return line

    def _read(self, printed: IO[bytes]) -> None:
        for line in printed:
            self._lines.put(line)
        self._lines.put(b"")


@contextlib.contextmanager
def running_load(folder: Path, plan: SoakPlan, window_s: float) -> Iterator[LoadProcess]:
    """Give a load on the sandbox of a folder; it ends with the block."""
    words = (str(folder / "data"), msgspec.json.encode(plan).decode(), str(window_s))
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "foretell.bench.rigs.soak.load", *words], stdout=subprocess.PIPE
    )
    try:
        yield LoadProcess(process, plan, window_s)
    finally:
        end_process(process, STOP_DEADLINE_S)
        if process.stdout is not None:
            process.stdout.close()


def _last_line(output: Path) -> str:
    lines = output.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"
