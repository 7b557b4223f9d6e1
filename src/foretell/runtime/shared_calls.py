"""Calls whose one result is for all who ask at the same time."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


class SharedCalls:
    """The calls on the way, by a name each; nothing is kept once it has arrived."""

    def __init__(self) -> None:
        self._task_by_name: dict[str, asyncio.Task[Any]] = {}

    async def result(self, name: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the call with this name that is on the way, or else of a new one.

        It runs on behalf of nobody, and goes on when one who waits for it is canceled.
        """
        task = self._task_by_name.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(call(), context=Context())
            self._task_by_name[name] = task
            task.add_done_callback(lambda done: self._forget(name, done))
        result: T = await asyncio.shield(task)
        return result

    def _forget(self, name: str, task: asyncio.Task[Any]) -> None:
        del self._task_by_name[name]
        if not task.cancelled():
            task.exception()  # all who waited for it may be gone
