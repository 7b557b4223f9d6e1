"""The single writer of the treasury: the same as the engine of a shard, over another state.

A command is applied at once, and its result returned when the journal has it. If the journal fails
the engine stops, and only a start from the journal resumes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from foretell.domain.errors.exchange import EngineRestarting, EngineStopped
from foretell.domain.treasury.commands import (
    TreasuryCommand,
    decode_treasury_command,
    encode_treasury_command,
)
from foretell.domain.treasury.snapshot import decode_treasury
from foretell.domain.treasury.treasury import (
    GrantResult,
    Treasury,
    TreasuryOutcome,
    apply_to_treasury,
)
from foretell.journal.port import Journal

REPLAY_BATCH: Final = 2_000

log = structlog.get_logger(__name__)


class _Waiting(NamedTuple):
    sequence: int
    result: GrantResult | None
    reply: asyncio.Future[GrantResult | None]


class TreasuryEngine:
    """The treasury: the state that its journal folds into."""

    def __init__(self, journal: Journal, now_ms: Callable[[], int]) -> None:
        self._journal = journal
        self._waiting: deque[_Waiting] = deque()
        self._failure: Exception | None = None
        self._is_ready = False
        self._sequence = 0
        self.synced_sequence = 0
        """The sequence up to which everything applied is durable."""
        self.failed = asyncio.Event()
        self.now_ms = now_ms
        self.state = Treasury()

    async def start(self) -> None:
        """Restore the newest snapshot, replay the rest of the journal, and take commands."""
        await self._replay()
        self._journal.start(self._synced, self.fail)
        self._is_ready = True

    async def _replay(self) -> None:
        snapshot = await asyncio.to_thread(self._journal.snapshot)
        if snapshot is not None:
            self.state = decode_treasury(snapshot.payload)
            self._sequence = snapshot.sequence
        for entry in self._journal.entries(self._sequence):
            apply_to_treasury(self.state, decode_treasury_command(entry.payload))
            self._sequence = entry.sequence
            if entry.sequence % REPLAY_BATCH == 0:
                await asyncio.sleep(0)
        self.synced_sequence = self._sequence

    async def submit(self, command: TreasuryCommand) -> GrantResult | None:
        """Return the result of the command, once it and all before it are durable."""
        self._check_open()
        outcome = self._apply(command)
        if not (outcome.is_change or self._waiting):
            return outcome.result
        return await self._enqueue(outcome.result)

    async def sync(self) -> None:
        """Return once everything that was applied until now is durable."""
        self._check_open()
        if self._waiting:
            await self._enqueue(None)

    async def close(self) -> None:
        """Stop accepting commands, and make durable those that were taken."""
        self._is_ready = False
        await self._journal.close()
        await asyncio.sleep(0)

    def _check_open(self) -> None:
        if self._failure is not None:
            raise EngineStopped(str(self._failure))
        if not self._is_ready:
            raise EngineRestarting

    def _apply(self, command: TreasuryCommand) -> TreasuryOutcome:
        """Return the outcome after appending the command; an exception stops the engine."""
        try:
            outcome = apply_to_treasury(self.state, command)
            if outcome.is_change:
                self._sequence = self._journal.append(encode_treasury_command(command))
        except BaseException as fault:
            self.fail(EngineStopped(f"{type(fault).__name__} while taking a command"))
            raise
        return outcome

    def _enqueue(self, result: GrantResult | None) -> asyncio.Future[GrantResult | None]:
        reply: asyncio.Future[GrantResult | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(self._sequence, result, reply))
        return reply

    def _synced(self, sequence: int) -> None:
        self.synced_sequence = sequence
        while self._waiting and self._waiting[0].sequence <= sequence:
            waiting = self._waiting.popleft()
            if not waiting.reply.done():
                waiting.reply.set_result(waiting.result)

    def fail(self, failure: Exception) -> None:
        """Stop: refuse the commands that wait, and all later ones."""
        self._failure = failure
        log.error("treasury journal failed", cause=str(failure))
        for waiting in self._waiting:
            if not waiting.reply.done():
                waiting.reply.set_exception(EngineStopped(str(failure)))
                waiting.reply.exception()  # retrieved here, since its caller may be gone
        self._waiting.clear()
        self.failed.set()
