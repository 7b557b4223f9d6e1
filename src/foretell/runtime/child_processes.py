"""Processes of our own that are kept running until they are stopped.

One that ends by itself is started again, each time after a longer pause while it keeps ending soon.
A child that outlives its parent would hold what the next start needs, so each has one end of a pipe
as its standard input, and ends when that closes.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

COMMAND: Final = (sys.executable, "-m", "foretell")
RESTART_S: Final = 0.2
RESTART_S_MAX: Final = 5.0
LIVED_WELL_S: Final = 10.0
STOP_DEADLINE_S: Final = 10.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Child:
    """What to run, and what it is called in the log; it inherits these files."""

    name: str
    arguments: Sequence[str]
    files: Sequence[int] = field(default=())
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What it finds in its environment beside ours; it may hold secrets."""


async def supervise(child: Child) -> None:
    """Run a child again whenever it ends, until cancelled; then stop it."""
    loop = asyncio.get_running_loop()
    pause_s = RESTART_S
    while True:
        process = await _start(child)
        started = loop.time()
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await _stop(process)
            raise
        pause_s = RESTART_S if loop.time() - started > LIVED_WELL_S else pause_s * 2
        log.error("a process ended and is started again", process=child.name, code=code)
        await asyncio.sleep(min(pause_s, RESTART_S_MAX))


async def _start(child: Child) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        *child.arguments,
        stdin=asyncio.subprocess.PIPE,
        pass_fds=child.files,
        env={**os.environ, **child.environment},
        start_new_session=True,
    )


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_DEADLINE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
