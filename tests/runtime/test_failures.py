import pytest
from structlog.testing import capture_logs
from tests.rigs.clock import Clock

from foretell.runtime.failures import REMIND_EVERY_S, FailureLog


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
