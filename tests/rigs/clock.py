"""Clocks for rigs: one stands still until a test moves it, one passes only while everything waits."""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVarTuple

from tests.rigs.values import NOW_MS
from typing_extensions import override

Ts = TypeVarTuple("Ts")


class Clock:
    """A clock that a test moves, and may break."""

    def __init__(self) -> None:
        self.at_ms = NOW_MS
        self.is_broken = False

    def command_time(self, at_ms: int) -> int:
        """Return the time with which a command of a test is submitted."""
        return at_ms

    def now_ms(self) -> int:
        if self.is_broken:
            raise RuntimeError("the clock is broken")
        return self.at_ms

    def now_s(self) -> float:
        return self.now_ms() / 1000

    def move(self, ms: int) -> None:
        self.at_ms += ms

    def move_s(self, seconds: float) -> None:
        self.at_ms += int(seconds * 1000)


class RunningClock(Clock):
    """A clock that goes on with that of the machine."""

    def __init__(self) -> None:
        super().__init__()
        self._began_s = time.monotonic()

    @override
    def now_ms(self) -> int:
        return super().now_ms() + int((time.monotonic() - self._began_s) * 1000)


class _Selector(selectors.DefaultSelector):
    """A selector that does not wait, but moves the time of its loop."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is not None and timeout > 0:
            self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own."""

    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    @override
    def time(self) -> float:
        return self.selector.now_s

    def now_ms(self) -> int:
        return round(self.time() * 1e6) // 1000


class CountingLoop(VirtualLoop):
    """A loop that counts its turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0

    def _run_once(self) -> None:
        self.turns += 1
        super()._run_once()  # type: ignore[misc] # not public


class TickingLoop(VirtualLoop):
    """A loop whose timers count whole milliseconds, as those of uvloop do."""

    @override
    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return super().call_later(round(delay, 3), callback, *args, context=context)


def run_virtually(work: Coroutine[Any, Any, Any], loop: VirtualLoop) -> Any:
    """Run a coroutine in a loop's own time."""
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
