"""The log of a lasting failure: one line when it begins, one a minute, one when it ends; and of faults of an event loop.

A node that does not answer fails every step of a loop. Its traceback is logged once, and later lines
count the failures since then.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

REMIND_EVERY_S: Final = 60.0
FAULT_CHARS_MAX: Final = 80
_OBJECT: Final = re.compile("[<(]")
"""Where a message of asyncio begins to describe an object."""

log = structlog.get_logger(__name__)


class FailureLog:
    """The log of the failures of one loop."""

    def __init__(self, name: str, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._monotonic_s = monotonic_s
        self._count = 0
        self._cause = ""
        self._began_s = 0.0
        self._logged_s = 0.0

    def failed(self, error: Exception, *, is_expected: bool = False) -> None:
        """Log a failed step, unless the same failure was logged within the last minute.

        An expected failure is a warning without a traceback.
        """
        now_s = self._monotonic_s()
        cause = f"{type(error).__name__}: {error}"
        if self._count == 0:
            self._began_s = now_s
        self._count += 1
        if self._count == 1 or cause != self._cause:
            fields = {"loop": self._name, "cause": cause}
            if is_expected:
                log.warning("step failed and is repeated", **fields)
            else:
                log.error("step failed and is repeated", **fields, exc_info=error)
        elif now_s - self._logged_s < REMIND_EVERY_S:
            return
        else:
            log.error("step still fails", loop=self._name, cause=cause, failures=self._count)
        self._cause, self._logged_s = cause, now_s

    def passed(self) -> None:
        """Log that the failure is over, if there was one."""
        if self._count:
            seconds = round(self._monotonic_s() - self._began_s, 1)
            log.warning("step works again", loop=self._name, failures=self._count, seconds=seconds)
        self._count, self._cause = 0, ""


def report_fault(_loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Log what an event loop has caught, as its handler of exceptions.

    The text is the same for all, so that what repeats is one cause. That of asyncio describes the objects of the fault:
    each of them was a cause of its own, with a trace.
    """
    error = context.get("exception")
    what = _OBJECT.split(str(context.get("message", "")), maxsplit=1)[0]
    cause = None if error is None else type(error).__name__
    log.error("event loop fault", what=what[:FAULT_CHARS_MAX].strip(), cause=cause, exc_info=error)
