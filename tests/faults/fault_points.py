"""Fault points: a process ends, or its disk fails, once a file named `armed` exists."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from foretell.engine.writer import engine as engine_module
from foretell.journal.files.tail import SegmentTail

LAST_SYNCED: Final = "last synced"
LOOK_S: Final = 0.01


def end() -> None:
    """Kill this process, as a power cut does."""
    os.kill(os.getpid(), signal.SIGKILL)


def none(armed: Path) -> None:
    del armed


def at_append(armed: Path) -> None:
    """End before the journal's thread writes anything."""
    write = SegmentTail.write

    def fail(self: SegmentTail, payloads: Sequence[bytes]) -> int:
        if armed.exists():
            end()
        return write(self, payloads)

    SegmentTail.write = fail  # type: ignore[method-assign]


def at_sync(armed: Path) -> None:
    """End when the record is written, instead of syncing it; marks are still synced."""
    sync, write = os.fdatasync, SegmentTail.write
    is_writing = False

    def fail(handle: int) -> None:
        if armed.exists() and is_writing:
            end()
        sync(handle)

    def note(self: SegmentTail, payloads: Sequence[bytes]) -> int:
        nonlocal is_writing
        is_writing = True
        written = write(self, payloads)
        is_writing = False
        return written

    os.fdatasync, SegmentTail.write = fail, note  # type: ignore[method-assign,assignment]


def after_sync(armed: Path) -> None:
    """End when the record is synced, before it is reported."""
    write = SegmentTail.write

    def fail(self: SegmentTail, payloads: Sequence[bytes]) -> int:
        written = write(self, payloads)
        if armed.exists():
            end()
        return written

    SegmentTail.write = fail  # type: ignore[method-assign]


def before_reply(armed: Path) -> None:
    """End when a command is published to tables and streams, before its caller has the result."""
    resolve = engine_module.resolve

    def fail(waiting: Any) -> None:
        if armed.exists():
            end()
        resolve(waiting)

    engine_module.resolve = fail


def failing_sync(armed: Path) -> None:
    """Make every sync fail once armed, and record the last sequence that was synced."""
    sync, write = os.fdatasync, SegmentTail.write
    last_synced = 0

    def fail(handle: int) -> None:
        if armed.exists():
            armed.with_name(LAST_SYNCED).write_text(str(last_synced))
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(handle)

    def note(self: SegmentTail, payloads: Sequence[bytes]) -> int:
        nonlocal last_synced
        written = write(self, payloads)
        last_synced = self.end.sequence
        return written

    os.fdatasync, SegmentTail.write = fail, note  # type: ignore[method-assign,assignment]


def held_start(armed: Path) -> None:
    """Hold a start before it replays its journal, for as long as the file exists."""
    replay = engine_module.Engine.start

    async def hold(self: engine_module.Engine, *arguments: Any, **named: Any) -> None:
        while os.path.exists(armed):  # noqa: ASYNC110, ASYNC240, PTH110 - the test publishes no event
            await asyncio.sleep(LOOK_S)
        await replay(self, *arguments, **named)

    engine_module.Engine.start = hold  # type: ignore[method-assign]


FAULTS: Final[Mapping[str, Callable[[Path], None]]] = MappingProxyType(
    {
        fault.__name__: fault
        for fault in (none, at_append, at_sync, after_sync, before_reply, failing_sync, held_start)
    }
)
