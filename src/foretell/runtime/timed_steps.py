"""The processor time that an awaitable takes of its thread, whatever else the thread does while it waits."""

import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class TimedSteps(Generic[Result]):
    """An awaitable that counts its own steps; not those of tasks that it starts."""

    def __init__(
        self, inner: Awaitable[Result], busy_s: Callable[[], float] = time.thread_time
    ) -> None:
        self._inner = inner
        self._busy_s = busy_s
        self.spent_s = 0.0

    def __await__(self) -> Generator[Any, Any, Result]:
        """Pass on what the inner one awaits, and what it is answered."""
        steps = self._inner.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            began_s = self._busy_s()
            try:
                awaited = step()
            except StopIteration as end:
                result: Result = end.value
                return result
            finally:
                self.spent_s += self._busy_s() - began_s
            try:
                answer = yield awaited
            except BaseException as error:  # noqa: BLE001 - the inner one decides what becomes of it
                step = partial(steps.throw, error)
            else:
                step = partial(steps.send, answer)
