"""Runs an installation until a signal comes, and stops it without leaving anything behind.

Child processes import this module, and not the settings, whose library is slow to import.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, Self

import structlog
import uvloop
from structlog.dev import plain_traceback
from structlog.typing import Processor

from foretell.runtime.failures import report_fault
from foretell.runtime.repeated_lines import RepeatedEvents, RepeatedLines, RepeatedRecords
from foretell.runtime.threads import let_threads_work

LOOP_CLOSED: Final = "Event loop is closed"
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_JSON: Final = "json"
_TEXT: Final = "text"


class LogSettings(Protocol):
    """The settings of what is logged, among others."""

    @property
    def log_level(self) -> str:
        """The level from which on events are logged."""

    @property
    def log_json(self) -> bool:
        """Whether lines are JSON."""


class LogOptions(NamedTuple):
    """The settings of what is logged alone, which a child process is started with."""

    log_level: str = "warning"
    log_json: bool = False

    @classmethod
    def of(cls, settings: LogSettings) -> Self:
        """Return those of an installation."""
        return cls(settings.log_level, settings.log_json)

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Return the options that a process was started with, the usual ones without any."""
        return cls(words[0], words[1] == _JSON) if words else cls()

    @property
    def words(self) -> tuple[str, str]:
        """The arguments of a process that logs so."""
        return self.log_level, _JSON if self.log_json else _TEXT


DEFAULT_LOGS: Final = LogOptions()


def set_up_logs(settings: LogSettings) -> None:
    """Log to standard error from the level of the settings on.

    Tracebacks never show the values of variables: among them may be secrets. What repeats is
    written a few times a minute: a stranger must not fill a disk with lines.
    """
    lines = RepeatedLines()
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    renderers: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if settings.log_json
        else [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain_traceback)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            RepeatedEvents(lines),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=max(level, logging.WARNING))
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatedRecords(lines))


class Runnable(Protocol):
    """Something that is started, runs, and is stopped."""

    async def start(self) -> None:
        """Start everything."""

    async def wait(self) -> None:
        """Return when something that must not end has ended, raising what ended it."""

    async def stop(self) -> None:
        """Stop everything."""


def run_until_stopped(
    running: Runnable,
    when_started: Callable[[], Coroutine[None, None, None]],
    when_stopped: Callable[[], None],
    *,
    on_hangup: Callable[[], None] | None = None,
    ends_with_parent: bool = False,
) -> None:
    """Start, and run until a signal comes or something that must not end has ended.

    The signal HUP calls `on_hangup` if there is one, else it stops too. A process that ends with
    its parent also stops when its standard input closes.
    """
    threading.excepthook = report_thread
    let_threads_work()
    signals = {} if on_hangup is None else {signal.SIGHUP: on_hangup}
    uvloop.run(
        _run(running, when_started, when_stopped, signals, ends_with_parent=ends_with_parent)
    )


def report_thread(failed: threading.ExceptHookArgs) -> None:
    """Print what ended a thread, but not that it found the event loop closed: nobody waits for its result then.

    The threads of SQLite's driver report the end of a connection that failed, as that of a full disk, so late.
    """
    if failed.exc_type is RuntimeError and str(failed.exc_value) == LOOP_CLOSED:
        return
    threading.__excepthook__(failed)


async def _run(
    running: Runnable,
    when_started: Callable[[], Coroutine[None, None, None]],
    when_stopped: Callable[[], None],
    signals: Mapping[signal.Signals, Callable[[], None]],
    *,
    ends_with_parent: bool,
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report_fault)
    if ends_with_parent:
        threading.Thread(target=_await_parent, args=(loop, stopped), daemon=True).start()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, signals.get(number, stopped.set))
    starting = asyncio.create_task(running.start())
    begun = [starting]
    stopping = asyncio.create_task(stopped.wait())
    try:
        if not await _first(starting, stopping):
            return
        greeting = asyncio.create_task(when_started())
        begun.append(greeting)
        failing = asyncio.create_task(running.wait())
        if await _first(greeting, stopping, failing):
            await _first(failing, stopping)
    finally:
        when_stopped()
        with contextlib.suppress(asyncio.CancelledError):
            await _end(begun)
        await running.stop()


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait for their end; what they raise now is a consequence, and nobody else asks for it."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _await_parent(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    """Stop when the other end of standard input closes, because the parent has ended."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 1):
            pass
    with contextlib.suppress(RuntimeError):  # the loop is closed: this process ends already
        loop.call_soon_threadsafe(stopped.set)


async def _first(task: asyncio.Task[None], *others: asyncio.Task[object]) -> bool:
    """Wait for the task or any other; return whether the task is done, and raise what one of them raised.

    What ended another one comes first: the task may have failed because of it.
    """
    done, _ = await asyncio.wait({task, *others}, return_when=asyncio.FIRST_COMPLETED)
    for finished in (*others, task):
        if finished in done:
            finished.result()
    if task not in done:
        task.cancel()
    return task in done
