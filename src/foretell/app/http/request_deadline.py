"""The time that a client has to send one request."""

import asyncio
from collections.abc import Callable
from typing import Final


class RequestDeadline:
    """Ends a request that arrives too slowly.

    It stands still while the server does not read it: that is not the client's time.
    """

    __slots__ = ("_due_at", "_left_s", "_loop", "_timer", "seconds")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = 0.0
        self.seconds: Final = seconds
        """Of a whole request."""
        self._left_s = seconds

    @property
    def is_running(self) -> bool:
        """Whether a request arrives and the client is waited for."""
        return self._timer is not None

    def run(self, expire: Callable[[], None]) -> None:
        """Begin with a request, or go on with it; `expire` is called when the time is over."""
        if self._timer is None:
            self._due_at = self._loop.time() + self._left_s
            self._timer = self._loop.call_later(self._left_s, expire)

    def pause(self) -> None:
        """Stand still until it runs on."""
        if self._timer is not None:
            self._left_s = max(0.0, self._due_at - self._loop.time())
            self._cancel()

    def end(self) -> None:
        """Forget the request: the next one has the whole time."""
        self._cancel()
        self._left_s = self.seconds

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
