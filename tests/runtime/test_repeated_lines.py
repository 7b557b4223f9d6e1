"""Lines of strangers' making are bounded, and counted."""

import io
import logging
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
    assert [line is not None for line in lines] == [True, True, *[False] * 98]
    clock.now_s += PERIOD_S
    later = written(events, "error", "unhandled error", exc_info=errors[0])
    assert later is not None
    assert later["left_out"] == 49


def test_lines_of_work_that_is_asked_for_are_all_written(clock: Clock) -> None:
    events = RepeatedEvents(RepeatedLines(clock))
    assert all(written(events, "debug", "request") for _ in range(100))


def test_attack_m3_records_of_libraries_are_bounded_too(clock: Clock) -> None:
    logger = logging.getLogger("a library")
    text = io.StringIO()
    logger.propagate = False
    handler = logging.StreamHandler(text)
    handler.addFilter(RepeatedRecords(RepeatedLines(clock)))
    logger.addHandler(handler)
    for number in range(100):
        logger.warning("Unsupported upgrade request of %d", number)
    clock.now_s += PERIOD_S
    logger.warning("Unsupported upgrade request of %d", 100)
    assert text.getvalue().splitlines() == [
        "Unsupported upgrade request of 0",
        "Unsupported upgrade request of 100 (99 more were left out)",
    ]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=60))
def test_no_line_is_lost_from_the_count(steps: list[tuple[int, int]]) -> None:
    clock = Clock()
    lines, offered, admitted, counted = RepeatedLines(clock), 0, 0, 0
    for seconds, count in steps:
        clock.now_s += 15 * seconds
        for _ in range(count):
            offered += 1
            left_out = lines.admit("cause", 2)
            if left_out is not None:
                admitted += 1
                counted += left_out
    clock.now_s += PERIOD_S
    left_out = lines.admit("cause", 2)
    assert left_out is not None
    assert admitted + counted + left_out == offered
