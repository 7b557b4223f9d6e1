import asyncio
from collections.abc import Callable

import pytest
import uvloop
from structlog.testing import capture_logs
from tests.rigs.clock import Clock
from typing_extensions import override

from foretell.runtime.event_loop_thread import LoopThread
from foretell.runtime.failures import REMIND_EVERY_S, FailureLog, report_fault
from foretell.runtime.repeated_lines import LINES_MAX, RepeatedEvents, RepeatedLines


def test_a_failure_that_lasts_is_logged_when_it_begins_once_a_minute_and_when_it_ends() -> None:
    clock = Clock()
    failures = FailureLog("a loop", clock.now_s)
    with capture_logs() as logs:
        for _ in range(131):
            failures.failed(OSError("no node"))
            clock.move_s(1)
        failures.passed()
        failures.passed()
    assert [(each["event"], each.get("failures")) for each in logs] == [
        ("step failed and is repeated", None),
        ("step still fails", 1 + REMIND_EVERY_S),
        ("step still fails", 1 + 2 * REMIND_EVERY_S),
        ("step works again", 131),
    ]
    assert [isinstance(each.get("exc_info"), OSError) for each in logs] == [
        True,
        False,
        False,
        False,
    ]


def test_another_cause_is_logged_at_once() -> None:
    failures = FailureLog("a loop", Clock().now_s)
    with capture_logs() as logs:
        for cause in ("one", "one", "two", "one"):
            failures.failed(ValueError(cause))
    assert [each["cause"] for each in logs] == [
        "ValueError: one",
        "ValueError: two",
        "ValueError: one",
    ]


@pytest.mark.parametrize(("is_expected", "level"), [(True, "warning"), (False, "error")])
def test_a_failure_that_is_expected_is_a_warning_without_a_trace(
    is_expected: bool,  # noqa: FBT001 - a case
    level: str,
) -> None:
    with capture_logs() as logs:
        FailureLog("a loop", Clock().now_s).failed(OSError("away"), is_expected=is_expected)
    (line,) = logs
    assert (line["log_level"], "exc_info" in line) == (level, not is_expected)


class Connection:
    """An object that describes itself in words of its own, as a stranger's connection does."""

    def __init__(self, number: int) -> None:
        self.number = number

    @override
    def __repr__(self) -> str:
        return f"<connection of peer {self.number}>"

    def fail(self) -> None:
        raise ValueError(f"request {self.number}")


@pytest.mark.parametrize(
    "make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def test_attack_m3_faults_of_a_loop_are_one_cause_whatever_objects_they_name(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """The message of asyncio has the objects of a fault, so that each was written with its trace."""

    async def fail_often() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_fault)
        for number in range(10 * LINES_MAX):
            loop.call_soon(Connection(number).fail)
        await asyncio.sleep(0)

    repeated = RepeatedEvents(RepeatedLines(Clock().now_s))
    with capture_logs([repeated]) as logs, asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(fail_often())
    assert len(logs) == LINES_MAX
    assert [each["cause"] for each in logs] == ["ValueError"] * LINES_MAX
    assert len({each["what"] for each in logs}) == 1
    assert "peer" not in logs[0]["what"]
    assert ["exc_info" in each for each in logs] == [True] + [False] * (LINES_MAX - 1)


def test_attack_m3_a_fault_without_an_exception_is_one_line() -> None:
    with capture_logs() as logs, asyncio.Runner() as runner:
        given = {"message": "Unclosed connection <peer 7>" + "x" * 100, "peer": Connection(7)}
        report_fault(runner.get_loop(), given)
    (line,) = logs
    assert (line["what"], line["cause"], line["exc_info"]) == ("Unclosed connection", None, None)


def test_attack_m3_the_loop_of_a_thread_reports_its_faults() -> None:
    thread = LoopThread("a thread")
    try:
        assert thread.loop.get_exception_handler() is report_fault
    finally:
        thread.close()
