"""Child processes: supervision of those that serve, and commands that run to their end.

A supervised process that ends is started again, after pauses that grow while it keeps ending soon. One
that refuses to run (a wrong setting, a journal that cannot be used) would refuse again, so it ends its
supervision. A child that outlives its parent would hold what the next start needs: each has a pipe
of the parent as its standard input, and ends when that closes.
"""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import structlog

from foretell.domain.errors.chain import (
    ChainStateDamaged,
    ChainStateTooLarge,
    ProgramMissing,
    WrongChain,
)
from foretell.domain.errors.command import ChildRefused
from foretell.domain.errors.families import Unavailable, Upstream
from foretell.runtime.backoff import pauses_s
from foretell.runtime.spawning import spawn

FORETELL: Final = (sys.executable, "-m", "foretell")
RESTART_S: Final = 0.2
RESTART_S_MAX: Final = 5.0
SETTLED_S: Final = 10.0
"""A process that ran for longer is started again after the first pause."""
STOP_DEADLINE_S: Final = 10.0
ERROR_BYTES_MAX: Final = 4096
"""How much is kept of what a command writes to standard error."""

REFUSED_CODE: Final = os.EX_CONFIG
"""Exit code of a process that cannot run with its settings or data."""
USAGE_CODE: Final = 2
"""Exit code of a command line that is wrong."""
REFUSAL_CODES: Final = frozenset({REFUSED_CODE, USAGE_CODE})
LASTING_REFUSALS: Final = (
    ChainStateDamaged,
    ChainStateTooLarge,
    ChildRefused,
    ProgramMissing,
    WrongChain,
)
"""Refusals of a start that the next one would repeat, or, after a damaged state, answer with a new chain."""

log = structlog.get_logger(__name__)


class ManagedProcess(Protocol):
    """A process that can be started again after its end."""

    async def start(self) -> None:
        """Start the process."""

    async def wait(self) -> int:
        """Return the exit code when the process has ended; an exception ends its supervision."""

    async def stop(self) -> None:
        """End the process if it runs, and release what it held."""


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """Pauses before a process is started again, in seconds: the first, the longest."""

    first_s: float = RESTART_S
    most_s: float = RESTART_S_MAX
    settled_s: float = SETTLED_S

    def begin(self) -> Iterator[float]:
        """Return the pauses from the first one on."""
        return pauses_s(self.first_s, self.most_s)


async def run_supervised(
    name: str, process: ManagedProcess, restarts: RestartBackoff | None = None
) -> None:
    """Start a process, keep it running until cancelled, then stop it."""
    await process.start()
    try:
        await supervise(name, process, restarts)
    finally:
        await process.stop()


async def supervise(
    name: str, process: ManagedProcess, restarts: RestartBackoff | None = None
) -> None:
    """Start a running process again whenever it ends, until cancelled."""
    restarts = RestartBackoff() if restarts is None else restarts
    loop, pauses = asyncio.get_running_loop(), restarts.begin()
    while True:
        started_s = loop.time()
        code = await process.wait()
        await process.stop()
        if loop.time() - started_s > restarts.settled_s:
            pauses = restarts.begin()
        log.error("process ended and is restarted", process=name, code=code)
        await asyncio.sleep(next(pauses))
        await start_when_possible(name, process, pauses)


async def start_when_possible(name: str, process: ManagedProcess, pauses: Iterator[float]) -> None:
    """Start a process as soon as there are descriptors, memory and threads, and what it needs answers."""
    while True:
        try:
            await process.start()
        except LASTING_REFUSALS:
            raise
        except (OSError, RuntimeError, Unavailable, Upstream) as failure:
            log.warning("process cannot be started yet", process=name, cause=str(failure))
            await asyncio.sleep(next(pauses))
        else:
            return


@dataclass(frozen=True, slots=True)
class Child:
    """A command of our own, its name in the log, and the files that it inherits."""

    name: str
    arguments: Sequence[str]
    files: Sequence[int] = field(default=())
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables added to our own environment; they may hold secrets."""


class ChildProcess:
    """A child that runs until it is stopped."""

    def __init__(
        self,
        child: Child,
        *,
        program: Sequence[str] = FORETELL,
        stop_deadline_s: float = STOP_DEADLINE_S,
    ) -> None:
        self._child = child
        self._program = program
        self._stop_deadline_s = stop_deadline_s
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the child."""
        starting = spawn(
            *self._program,
            *self._child.arguments,
            stdin=asyncio.subprocess.PIPE,
            pass_fds=self._child.files,
            env={**os.environ, **self._child.environment},
            start_new_session=True,
        )
        self.process = await start_process(starting)

    async def wait(self) -> int:
        """Return the exit code when the child has ended, or raise if it refused to run."""
        assert self.process is not None, "it was started"
        code = await self.process.wait()
        if code in REFUSAL_CODES:
            raise ChildRefused(self._child.name, code)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the child if it runs."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def stop(self) -> None:
        """End the child if it runs."""
        process, self.process = self.process, None
        if process is not None:
            await end_process(process, self._stop_deadline_s)


async def end_process(process: asyncio.subprocess.Process, deadline_s: float) -> None:
    """Ask a process to end, and kill it when it has not done so by the deadline.

    A canceled task does this too, while it ends; there `asyncio.timeout` of Python 3.11.2 and before raises
    CancelledError at the deadline, so the deadline is that of `asyncio.wait`.
    """
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    ending = asyncio.ensure_future(process.wait())
    try:
        done, _ = await asyncio.wait({ending}, timeout=deadline_s)
        if not done:
            kill_process(process)
        await ending
    finally:
        ending.cancel()


def kill_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process, which may have ended already."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()


class RunLimits(NamedTuple):
    """Bounds of a command that runs to its end; no bound of memory if None."""

    deadline_s: float
    output_bytes_max: int = 64 * 1024
    memory_bytes_max: int | None = None


class CommandResult(NamedTuple):
    """The end of a command: its exit code, its output, and the last of its error output."""

    code: int
    output: bytes
    errors: str


async def start_process(
    starting: Awaitable[asyncio.subprocess.Process],
    end: Callable[[asyncio.subprocess.Process], Awaitable[None]] | None = None,
) -> asyncio.subprocess.Process:
    """Return a process that is being started; when cancelled, wait for its start, and end it.

    asyncio would wait for ever for one whose start is cancelled before its pipes are open.
    """
    start = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        await asyncio.wait({start})
        if start.exception() is None:
            await (_kill if end is None else end)(start.result())
        raise


async def _kill(process: asyncio.subprocess.Process) -> None:
    kill_process(process)
    await process.wait()


async def run_once(
    command: Sequence[str],
    given: bytes,
    limits: RunLimits,
    *,
    environment: Mapping[str, str] | None = None,
    keeps_input_open: bool = False,
) -> CommandResult:
    """Run a command on the input that is given, and return how it ended; no process stays behind.

    Raises TimeoutError after the deadline, another OSError when no process can be started. A command
    with too much output is killed, and its output is left out. A command that ends with its parent needs its
    input kept open.
    """
    starting = spawn(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    process = await start_process(starting)
    try:
        if limits.memory_bytes_max is not None:
            _limit_memory(process.pid, limits.memory_bytes_max)
        async with asyncio.timeout(limits.deadline_s):
            _, output, errors = await asyncio.gather(
                _write(process, given, keeps_open=keeps_input_open),
                _read_output(process, limits.output_bytes_max),
                _read_errors(process),
            )
            code = await process.wait()
    finally:
        if process.returncode is None:
            kill_process(process)
            await process.communicate()
    return CommandResult(code, output, errors.decode(errors="replace").strip())


def _limit_memory(pid: int, bytes_max: int) -> None:
    """Bound the address space of a process, where the system can do that from outside."""
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_AS, (bytes_max, bytes_max))


async def _write(process: asyncio.subprocess.Process, given: bytes, *, keeps_open: bool) -> None:
    stdin = process.stdin
    assert stdin is not None
    try:
        stdin.write(given)
        await stdin.drain()
    except ConnectionError:  # it ended before it read everything
        with contextlib.suppress(ConnectionError):  # Python 3.11.2 reports it again unless awaited
            await stdin.wait_closed()
    if not keeps_open:
        stdin.close()


async def _read_output(process: asyncio.subprocess.Process, bytes_max: int) -> bytes:
    """Return the whole output, or kill the process and return nothing when it is too long."""
    assert process.stdout is not None
    output = b""
    while part := await process.stdout.read(bytes_max + 1):
        output += part
        if len(output) > bytes_max:
            kill_process(process)
            await process.stdout.read()
            return b""
    return output


async def _read_errors(process: asyncio.subprocess.Process) -> bytes:
    assert process.stderr is not None
    errors = b""
    while part := await process.stderr.read(ERROR_BYTES_MAX):
        errors = (errors + part)[-ERROR_BYTES_MAX:]
    return errors
