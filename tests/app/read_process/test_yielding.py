"""The process of dear reads yields the processor where the system permits it, and works where it does not."""

import errno
import os
import sys

import pytest
from structlog.testing import capture_logs

from foretell.app.read_process import process


def test_a_system_that_refuses_idle_time_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start of the process failed in a container whose filter of system calls refuses it."""
    asked: list[int] = []

    def refuse(_: int, policy: int, __: os.sched_param) -> None:
        asked.append(policy)
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "nice", asked.append)
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with capture_logs() as logs:
        process.yield_processor()
    assert asked == [process.NICENESS, os.SCHED_IDLE]
    [line] = logs
    assert line["log_level"] == "warning"
    assert "Operation not permitted" in line["cause"]


def test_a_system_without_idle_time_is_only_asked_to_be_nice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(os, "nice", asked.append)
    monkeypatch.delattr(os, "sched_setscheduler")
    with capture_logs() as logs:
        process.yield_processor()
    assert (asked, logs) == ([process.NICENESS], [])
