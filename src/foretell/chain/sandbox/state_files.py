"""Store dumps of the sandbox's chain, and prepare the state of its next start, beside the event loop.

A state has some kilobytes for each trade, and decoding it holds the interpreter, so that orders would wait: a
child process does it. A small state takes less than the start of a process, and a thread does it.
"""

import asyncio
import sys
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from foretell.chain.sandbox import state_process
from foretell.chain.sandbox.saved_state import SavedState
from foretell.chain.sandbox.state_process import (
    DUMP,
    DUMP_DEADLINE_S,
    StateJob,
    StateResult,
    carry_out,
)
from foretell.domain.errors.chain import ChainStateDamaged, ChainUnavailable
from foretell.runtime.child_processes import RunLimits, run_once

PREPARE_DEADLINE_S: Final = 300.0
THREAD_BYTES_MAX: Final = 4 * 1024**2
"""A larger state, unpacked, is handled by a child process."""
THREAD_RECEIVE_S: Final = 5.0
"""How long a node may send nothing of a small state: a stop waits for the thread, which cannot be ended."""
OLDER_USED: Final = "an older state is used, and nothing needs to be done"

log = structlog.get_logger(__name__)


class Kept(NamedTuple):
    """A dump that was stored: its bytes, unpacked, and the time that it took."""

    state_bytes: int
    seconds: float


class Loadable(NamedTuple):
    """The file that the next start loads, None before there is any, and its bytes."""

    file: Path | None
    state_bytes: int


async def keep_dump(folder: Path, rpc_url: str, last_bytes: int) -> Kept:
    """Store the state that a node has now; `last_bytes` is about its size.

    A child that is killed leaves the states before.
    """
    job = StateJob(str(folder), rpc_url)
    result = await _carried_out(job, last_bytes, DUMP_DEADLINE_S)
    return Kept(result.state_bytes, result.seconds)


async def prepare_state(folder: Path) -> Loadable:
    """Prepare the newest undamaged state for the next start.

    Raises ChainStateDamaged when there are states, and all are damaged.
    """
    state_bytes = SavedState(folder).bytes_max()
    result = await _carried_out(StateJob(str(folder)), state_bytes, PREPARE_DEADLINE_S)
    is_usable = result.file is not None
    for name in result.damaged:
        consequence = {"consequence": OLDER_USED} if is_usable else {}
        log.error("chain state damaged", folder=str(folder), renamed=name, **consequence)
    if result.damaged and not is_usable:
        raise ChainStateDamaged(folder)
    return Loadable(None if result.file is None else Path(result.file), result.state_bytes)


async def _carried_out(job: StateJob, state_bytes: int, deadline_s: float) -> StateResult:
    """Return the result of a job, or raise the failure."""
    if state_bytes <= THREAD_BYTES_MAX:
        result = await _in_thread(msgspec.structs.replace(job, receive_s=THREAD_RECEIVE_S))
    else:
        result = await _in_child(job, deadline_s)
    if result.failure is not None:
        raise OSError(*result.failure)
    if result.refusal is not None:
        raise ChainUnavailable(DUMP, result.refusal)
    return result


async def _in_thread(job: StateJob) -> StateResult:
    """Carry out a job; when cancelled, end first: the chain's own dump at its end must be newer."""
    work = asyncio.create_task(asyncio.to_thread(carry_out, job))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        raise


async def _in_child(job: StateJob, deadline_s: float) -> StateResult:
    try:
        ended = await run_once(
            (sys.executable, "-m", state_process.__name__),
            msgspec.json.encode(job) + b"\n",
            RunLimits(deadline_s),
            keeps_input_open=True,
        )
    except TimeoutError as error:
        raise ChainUnavailable(DUMP, f"its state was not read within {deadline_s:g} s") from error
    if ended.code:
        cause = ended.errors.splitlines()[-1:]
        raise ChainUnavailable(DUMP, " ".join([f"its reader ended with {ended.code}", *cause]))
    return msgspec.json.decode(ended.output, type=StateResult)
