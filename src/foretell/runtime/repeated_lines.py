"""A bound for the lines of a log that one cause can write, such as a client that repeats itself.

Of one cause, a few lines a minute are written, the first of them with its trace. The next one after
that says how many were left out.
"""

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Final, NamedTuple

import structlog
from typing_extensions import override

from foretell.runtime.lru import LruCache

PERIOD_S: Final = 60.0
CAUSES_KEPT_MAX: Final = 1_000
LINES_MAX: Final = 10
TRACES_MAX: Final = 1
"""Of the lines of one cause. A trace is many lines, and says the same as the one before."""

_LIMITED: Final = frozenset({"warning", "error", "critical", "exception"})


class AdmittedLine(NamedTuple):
    """A line that is written: how many were left out before it, and whether its trace is written."""

    left_out: int
    has_trace: bool


class _Period:
    """The lines of one cause since the beginning of a period."""

    __slots__ = ("began_s", "left_out", "lines")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.lines = 0
        self.left_out = 0


class RepeatedLines:
    """Counts the lines of each cause."""

    def __init__(
        self,
        monotonic_s: Callable[[], float] = time.monotonic,
        causes_kept_max: int = CAUSES_KEPT_MAX,
        lines_max: int = LINES_MAX,
    ) -> None:
        self._monotonic_s = monotonic_s
        self._lines_max = lines_max
        self._period_by_cause: LruCache[str, _Period] = LruCache(causes_kept_max)

    def admit(self, cause: str) -> AdmittedLine | None:
        """Return what is written of a line, None if it is left out. A clock that is set back ends the period."""
        now_s = self._monotonic_s()
        period = self._period_by_cause.get(cause)
        left_out = 0
        if period is None or abs(now_s - period.began_s) >= PERIOD_S:
            left_out = 0 if period is None else period.left_out
            period = _Period(now_s)
            self._period_by_cause.put(cause, period)
        if period.lines >= self._lines_max:
            period.left_out += 1
            return None
        period.lines += 1
        return AdmittedLine(left_out, period.lines <= TRACES_MAX)


class RepeatedEvents:
    """A processor of structlog that leaves out what repeats; the events of a kind are one cause."""

    def __init__(self, lines: RepeatedLines) -> None:
        self._lines = lines

    def __call__(
        self, _logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Return the event, without a trace that repeats, or drop it."""
        if method not in _LIMITED:
            return event
        place = _place_of(event.get("exc_info"))
        line = self._lines.admit(f"{event.get('event')} {place}")
        if line is None:
            raise structlog.DropEvent
        if not line.has_trace:
            event.pop("exc_info", None)
        if line.left_out:
            event["left_out"] = line.left_out
        return event


class RepeatedRecords(logging.Filter):
    """A filter of Python's logging that leaves out what repeats; one text before formatting is one cause."""

    def __init__(self, lines: RepeatedLines) -> None:
        super().__init__()
        self._lines = lines

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written; one after others that were not has their number.

        A trace that repeats is left out.
        """
        line = self._lines.admit(f"{record.name} {record.msg} {_place_of(record.exc_info)}")
        if line is None:
            return False
        if not line.has_trace:
            record.exc_info = record.exc_text = None
        if line.left_out:
            record.msg = f"{record.getMessage()} ({line.left_out} more were left out)"
            record.args = None
        return True


def _place_of(given: object) -> str:
    """Return the type of an exception and the place that raised it; empty if there is none."""
    error = given[1] if isinstance(given, tuple) else given
    if error is True:
        error = sys.exception()
    if not isinstance(error, BaseException):
        return ""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return f"{type(error).__name__} {where}"
