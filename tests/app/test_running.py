import asyncio
import gc
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from structlog.testing import capture_logs
from tests.app.rig import get, processes_left
from tests.rigs.in_process import sandbox_settings
from typing_extensions import override

from foretell.app.installation import Installation
from foretell.app.roles import Role
from foretell.app.running import STOP_SIGNALS, report_thread, run_until_stopped
from foretell.domain.errors.command import NotInTime
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.runtime.failures import report_fault
from foretell.runtime.threads import DEMAND_AFTER_S
from foretell.settings import Settings

LONG_S = 60
ONCE = pytest.mark.xdist_group("logs")

CUT = "=" * 20
LOGGING = f"""
import structlog, sys
from foretell.app.running import set_up_logs
from foretell.settings import Settings

def fail(secret):
    raise ValueError("broken")

def log_with(**given):
    set_up_logs(Settings(**given))
    log = structlog.get_logger()
    log.debug("so quiet")
    log.info("quiet", number=7)
    log.warning("loud", number=8)
    try:
        fail("hunter" + "2")
    except ValueError:
        log.exception("trouble")
    print("{CUT}", file=sys.stderr)

log_with()
log_with(log_level="info")
log_with(log_json=True)
"""


class Logged(NamedTuple):
    """The logs of one process under three settings."""

    plain: str
    from_info: str
    as_json: str


class Run:
    """The steps of a run, in order."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    async def greet_and_stop(self) -> None:
        self.steps.append("greeted")
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)

    async def greet_and_stay(self) -> None:
        self.steps.append("greeted")

    async def greet_and_fail(self) -> None:
        raise NotInTime("a greeting", 1)

    def when_stopped(self) -> None:
        self.steps.append("stopped")


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def installation(settings: Settings) -> Installation:
    return Installation(settings, [Role.DATA])


class Stalling(Installation):
    """An installation that gets a signal while its start hangs."""

    @override
    async def start(self) -> None:
        self.take_folder()
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(LONG_S)


class Failing(Installation):
    """An installation with a part that fails some time after the start."""

    @override
    async def wait(self) -> None:
        await asyncio.sleep(0.05)
        raise ExceptionGroup("parts", [NotInTime("a part", 1)])


def check_nothing_is_left(settings: Settings) -> None:
    assert processes_left(settings) == []
    unlock_folder(lock_folder(settings.data))


def test_an_installation_runs_until_a_signal_comes(
    installation: Installation, settings: Settings, run: Run
) -> None:
    run_until_stopped(installation, run.greet_and_stop, run.when_stopped)
    assert run.steps == ["greeted", "stopped"]
    check_nothing_is_left(settings)


def test_it_answers_when_it_greets(
    installation: Installation, settings: Settings, run: Run
) -> None:
    async def fetch_and_stop() -> None:
        run.steps.append((await get(settings, "/")).text)
        await run.greet_and_stop()

    run_until_stopped(installation, fetch_and_stop, run.when_stopped)
    assert run.steps == ['{"data":"OK"}', "greeted", "stopped"]


def test_attack_m3_faults_of_its_loop_are_logged_with_a_fixed_text(
    installation: Installation, run: Run
) -> None:
    async def note_and_stop() -> None:
        run.steps.append(str(asyncio.get_running_loop().get_exception_handler() is report_fault))
        await run.greet_and_stop()

    run_until_stopped(installation, note_and_stop, run.when_stopped)
    assert run.steps == ["True", "greeted", "stopped"]


def test_attack_h1_its_threads_need_not_wait_for_a_busy_loop(
    installation: Installation, run: Run
) -> None:
    async def note_and_stop() -> None:
        assert sys.getswitchinterval() == pytest.approx(DEMAND_AFTER_S)
        await run.greet_and_stop()

    run_until_stopped(installation, note_and_stop, run.when_stopped)
    assert run.steps == ["greeted", "stopped"]


def test_a_signal_while_it_starts_cancels_the_start(settings: Settings, run: Run) -> None:
    run_until_stopped(Stalling(settings), run.greet_and_stay, run.when_stopped)
    assert run.steps == ["stopped"]
    check_nothing_is_left(settings)


def test_a_start_that_is_refused_raises_and_leaves_nothing(tmp_path: Path, run: Run) -> None:
    settings = sandbox_settings(tmp_path, anvil=tmp_path / "nothing")
    with pytest.raises(Exception, match="anvil is not installed"):
        run_until_stopped(Installation(settings), run.greet_and_stay, run.when_stopped)
    assert run.steps == ["stopped"]
    check_nothing_is_left(settings)


def test_a_greeting_that_fails_stops_it(
    installation: Installation, settings: Settings, run: Run
) -> None:
    with pytest.raises(NotInTime, match="a greeting"):
        run_until_stopped(installation, run.greet_and_fail, run.when_stopped)
    assert run.steps == ["stopped"]
    check_nothing_is_left(settings)


def test_a_part_that_fails_stops_it(settings: Settings, run: Run) -> None:
    with pytest.raises(ExceptionGroup) as group:
        run_until_stopped(Failing(settings, [Role.DATA]), run.greet_and_stay, run.when_stopped)
    assert group.group_contains(NotInTime)
    assert run.steps == ["greeted", "stopped"]
    check_nothing_is_left(settings)


def test_a_part_that_fails_during_the_greeting_stops_it(settings: Settings, run: Run) -> None:
    async def dawdle() -> None:
        await asyncio.sleep(LONG_S)

    with pytest.raises(ExceptionGroup):
        run_until_stopped(Failing(settings, [Role.DATA]), dawdle, run.when_stopped)
    check_nothing_is_left(settings)


class Vanishing(Failing):
    """A failing installation whose stop makes the requests of its greeting fail."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, [Role.DATA])
        self.stopped = asyncio.Event()

    @override
    async def stop(self) -> None:
        await super().stop()
        self.stopped.set()
        await asyncio.sleep(0.01)


def test_attack_m4_a_greeting_that_fails_after_a_part_is_no_fault_of_the_loop(
    settings: Settings, run: Run
) -> None:
    """Its failure was logged with a trace when nobody had asked for it."""
    installation = Vanishing(settings)

    async def greet() -> None:
        await installation.stopped.wait()
        raise NotInTime("a greeting", 1)

    with capture_logs() as logs:
        with pytest.raises(ExceptionGroup, match="parts"):
            run_until_stopped(installation, greet, run.when_stopped)
        gc.collect()  # nothing here may keep the trace, which keeps the tasks
    assert [each["event"] for each in logs if each["event"] == "event loop fault"] == []


def test_attack_m4_a_greeting_that_fails_with_a_part_hides_no_cause(
    settings: Settings, run: Run
) -> None:
    class Failed(Failing):
        @override
        async def wait(self) -> None:
            raise ExceptionGroup("parts", [NotInTime("a part", 1)])

    with capture_logs() as logs:
        with pytest.raises(ExceptionGroup):
            run_until_stopped(Failed(settings, [Role.DATA]), run.greet_and_fail, run.when_stopped)
        gc.collect()
    assert [each["event"] for each in logs if each["event"] == "event loop fault"] == []


def test_the_signals_of_terminals_and_supervisors_stop_it() -> None:
    assert set(STOP_SIGNALS) == {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@pytest.fixture(scope="session")
def logged() -> Logged:
    """The logs of a process with default settings, from a lower level on, and as JSON."""
    called = subprocess.run(
        [sys.executable, "-c", LOGGING], cwd="/", capture_output=True, text=True, check=True
    )
    assert called.stdout == ""
    plain, from_info, as_json, rest = called.stderr.split(f"{CUT}\n")
    assert rest == ""
    return Logged(plain, from_info, as_json)


@ONCE
def test_warnings_are_logged_and_lower_levels_are_not(logged: Logged) -> None:
    assert "loud" in logged.plain
    assert "quiet" not in logged.plain


@ONCE
def test_the_level_is_the_one_that_is_set(logged: Logged) -> None:
    assert "number=7" in logged.from_info
    assert "so quiet" not in logged.from_info


@ONCE
def test_logs_may_be_json_lines(logged: Logged) -> None:
    lines = [json.loads(line) for line in logged.as_json.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("loud", "warning"),
        ("trouble", "error"),
    ]
    assert lines[0]["number"] == 8
    assert "ValueError: broken" in lines[1]["exception"]


@ONCE
def test_a_trace_never_shows_the_values_of_variables(logged: Logged) -> None:
    traces = [text for text in logged if "ValueError: broken" in text]
    assert len(traces) == len(logged)
    assert [text for text in logged if "hunter2" in text] == []


def test_a_thread_that_finds_the_loop_closed_says_nothing_and_another_failure_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for message in ("Event loop is closed", "another"):
        error = RuntimeError(message)
        failed = threading.ExceptHookArgs((RuntimeError, error, None, threading.current_thread()))
        report_thread(failed)
    printed = capsys.readouterr().err
    assert "RuntimeError: another" in printed
    assert "closed" not in printed
