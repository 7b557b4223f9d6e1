"""The processor time that an awaitable takes of its thread, whatever else the thread does while it waits."""

import time
from collections.abc import Awaitable, Callable, Generator
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
        answer: Any = None
        error: BaseException | None = None
        while True:
            began_s = self._busy_s()
            try:
                if error is not None:
                    awaited = steps.throw(error)
                elif answer is None:
                    awaited = next(steps)
                else:
                    awaited = steps.send(answer)
            except StopIteration as end:
                result: Result = end.value
                return result
            finally:
                error = None  # it has this frame, and both would wait for the collector
                self.spent_s += self._busy_s() - began_s
            try:
                answer = yield awaited
            except BaseException as thrown:  # noqa: BLE001 - the inner one decides what becomes of it
                error = thrown
