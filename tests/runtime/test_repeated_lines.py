"""Lines of strangers' making are bounded, and counted."""

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from foretell.runtime.repeated_lines import (
    LINES_MAX,
    PERIOD_S,
    RepeatedEvents,
    RepeatedLines,
    RepeatedRecords,
)


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_s = 5.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def caught(number: int) -> Exception:
    try:
        raise (ValueError, TypeError)[number % 2](f"request {number}")
    except (ValueError, TypeError) as error:
        return error


def written(
    events: RepeatedEvents, method: str, event: str, **fields: Any
) -> dict[str, Any] | None:
    try:
        return dict(events(None, method, {"event": event, **fields}))
    except structlog.DropEvent:
        return None


def test_attack_m3_a_kind_of_line_is_written_a_few_times_a_minute(clock: Clock) -> None:
    """Each malformed request of a stranger once wrote a line, and some a trace."""
    events = RepeatedEvents(RepeatedLines(clock))
    lines = [written(events, "warning", "refused", peer=number) for number in range(1_000)]
    assert sum(line is not None for line in lines) == LINES_MAX
    assert written(events, "warning", "another") == {"event": "another"}
    clock.now_s += PERIOD_S
    later = written(events, "warning", "refused", peer=7)
    assert later == {"event": "refused", "peer": 7, "left_out": 1_000 - LINES_MAX}
    assert written(events, "warning", "refused") == {"event": "refused"}


def test_attack_m3_a_trace_is_written_once_a_minute_whatever_it_says(clock: Clock) -> None:
    events = RepeatedEvents(RepeatedLines(clock))
    errors = [caught(number) for number in range(100)]
    lines = [written(events, "error", "unhandled error", exc_info=each) for each in errors]
    assert [line is not None and "exc_info" in line for line in lines] == [
        True,
        True,
        *[False] * 98,
    ]
    assert sum(line is not None for line in lines) == 2 * LINES_MAX
    clock.now_s += PERIOD_S
    later = written(events, "error", "unhandled error", exc_info=errors[0])
    assert later is not None
    assert (later["left_out"], later["exc_info"]) == (50 - LINES_MAX, errors[0])


def test_two_loops_that_fail_at_one_place_each_have_a_line(clock: Clock) -> None:
    """The line of the second loop, with its name and its cause, was left out with its trace."""
    events = RepeatedEvents(RepeatedLines(clock))
    written(events, "error", "step failed", loop="settlement", cause="0", exc_info=caught(0))
    second = written(events, "error", "step failed", loop="indexer", cause="2", exc_info=caught(2))
    assert second == {"event": "step failed", "loop": "indexer", "cause": "2"}


def test_lines_of_work_that_is_asked_for_are_all_written(clock: Clock) -> None:
    events = RepeatedEvents(RepeatedLines(clock))
    assert all(written(events, "debug", "request") for _ in range(100))


@pytest.fixture
def text() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logger(clock: Clock, text: io.StringIO) -> Iterator[logging.Logger]:
    """Give a library's logger that writes to the text."""
    logger = logging.getLogger("a library")
    logger.propagate = False
    handler = logging.StreamHandler(text)
    handler.addFilter(RepeatedRecords(RepeatedLines(clock)))
    logger.addHandler(handler)
    yield logger
    logger.removeHandler(handler)


def test_attack_m3_records_of_libraries_are_bounded_too(
    clock: Clock, logger: logging.Logger, text: io.StringIO
) -> None:
    """Of records without a trace only one a minute was written, as if each had one."""
    for number in range(100):
        logger.warning("Unsupported upgrade request of %d", number)
    clock.now_s += PERIOD_S
    logger.warning("Unsupported upgrade request of %d", 100)
    assert text.getvalue().splitlines() == [
        *(f"Unsupported upgrade request of {number}" for number in range(LINES_MAX)),
        f"Unsupported upgrade request of 100 ({100 - LINES_MAX} more were left out)",
    ]


def test_a_record_of_a_library_has_its_trace_once_a_minute(
    logger: logging.Logger, text: io.StringIO
) -> None:
    for number in range(2):
        logger.error("Task %d failed", number, exc_info=caught(0))
    lines = text.getvalue().splitlines()
    assert (lines[0], lines[-1]) == ("Task 0 failed", "Task 1 failed")
    assert lines.count("Traceback (most recent call last):") == 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=60))
def test_no_line_is_lost_from_the_count(steps: list[tuple[int, int]]) -> None:
    clock = Clock()
    lines, offered, admitted, counted = RepeatedLines(clock), 0, 0, 0
    for seconds, count in steps:
        clock.now_s += 15 * seconds
        for _ in range(count):
            offered += 1
            line = lines.admit("cause")
            if line is not None:
                admitted += 1
                counted += line.left_out
    clock.now_s += PERIOD_S
    line = lines.admit("cause")
    assert line is not None
    assert admitted + counted + line.left_out == offered
