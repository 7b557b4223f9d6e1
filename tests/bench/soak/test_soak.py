"""A short soak from end to end, and its exit codes."""

import contextlib
import io
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from rich.console import Console
from tests.rigs.installation import FORETELL, command_lines, run_foretell

from foretell.bench.rigs.soak import sandbox_process
from foretell.bench.rigs.soak.messages import Line, SoakOutcome, SoakPlan, SoakWindow
from foretell.bench.rigs.soak.samples import PROCESSES
from foretell.bench.rigs.soak.sandbox_process import LoadProcess, running_sandbox
from foretell.bench.rigs.soak.trends import GROWTH_BARS, LEVEL_BARS, JudgedTrend, TrendVerdict
from foretell.bench.soak import SoakResult, outcome_words, run_bench_soak
from foretell.domain.errors.command import BenchFailed

ROOT = Path(__file__).parents[3]
STARTED_WITHIN_S = 600.0
CLEAN = SoakOutcome(10, 8, 1, 20, 30, 2.0, 3.0, 4, 1, 0.5, 0, 0, 0)
WINDOW = SoakWindow(3.0, 1.0, 2.0, None, None, 3.0, 0.0, 0.5, 2, 7, 0)


def test_a_short_soak_loses_nothing_and_writes_its_page_and_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ran = run_foretell(
        *("bench", "soak", "--fill", "300", "--minutes", "0.3", "--write", "soak.md"), cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = " ".join(ran.stdout.split())
    found = re.search(
        r"soak: (\d+) orders accepted, (\d+) canceled, (\d+) trades \(settled in \S+ s, \S+ s at most\),"
        r" backlog \d+ at most and \d+ when the load ended \(0 after \S+ s\),"
        r" (\d+) reads, (\d+) messages on streams; 0 orders lost, 0 trades unsettled, 0 faults,"
        r" ([\d,]+) rows of tables compared with the chain",
        printed,
    )
    assert found is not None, printed
    *counts, rows = found.groups()
    orders, cancels, trades, reads, messages = map(int, counts)
    assert int(rows.replace(",", "")) > trades
    assert (orders, cancels, trades, reads) == (180 + 2 * 9, 180, 9, 180)
    assert messages > orders
    page = (tmp_path / "soak.md").read_text()
    assert all(f"| {bar.name} |" in page for bar in (*GROWTH_BARS, *LEVEL_BARS))
    assert "| lag settlement s | ≤ 30 |" in page
    assert all(f"| memory {name} MB | ≤ 2%/h | - |" not in page for name in PROCESSES)
    assert re.search(
        r"^\| memory server less orders and SQLite MB \| ≤ 2%/h \| \d", page, re.MULTILINE
    )
    assert re.search(r"^\| memory SQLite of server MB \| ≤ \d+ \| [1-9]", page, re.MULTILINE)
    assert "300 orders to fill what is kept up to a number" in page
    assert page.rstrip().endswith("(soak.svg)")
    chart = (tmp_path / "soak.svg").read_text()
    ET.fromstring(chart)
    assert all(f"memory {name} MB" in chart for name in PROCESSES)
    assert len(re.findall(r"^ *\d\.\d  ", ran.stdout, re.MULTILINE)) == 6
    assert "written: soak.md and soak.svg" in printed
    assert lines_of(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "page"), [([], "build/soak.md"), (["WRITE=mine.md"], "mine.md")], ids=["", "WRITE"]
)
def test_make_soak_always_writes_its_page_and_chart(given: list[str], page: str) -> None:
    command = ["make", "--dry-run", "soak", *given]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert f"bench soak --minutes 60 --write {page}\n" in ran.stdout
    assert "build/" in (ROOT / ".gitignore").read_text().splitlines()


def test_a_soak_that_is_terminated_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [FORETELL, "bench", "soak", "--fill", "0", "--minutes", "5"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
    ) as process:
        give_up_at_s = time.monotonic() + STARTED_WITHIN_S
        while not any("soak.load" in line for line in lines_of(tmp_path)):
            assert time.monotonic() < give_up_at_s
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STARTED_WITHIN_S) == 128 + signal.SIGTERM
    assert lines_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def lines_of(folder: Path) -> list[str]:
    """Return the command lines of the processes that work in a folder."""
    return [line for line in command_lines() if str(folder) in line]


def result(outcome: SoakOutcome, *verdicts: TrendVerdict) -> SoakResult:
    return SoakResult(
        [], outcome, [JudgedTrend("memory", "", "", each, "") for each in verdicts], 0.0
    )


@pytest.mark.parametrize(
    ("outcome", "verdicts", "code"),
    [
        (CLEAN, (TrendVerdict.MET, TrendVerdict.SHORT, TrendVerdict.NOISY), 0),
        (CLEAN, (TrendVerdict.MET, TrendVerdict.MISSED), 3),
        (msgspec.structs.replace(CLEAN, lost=1), (TrendVerdict.MISSED,), 1),
        (msgspec.structs.replace(CLEAN, unsettled=1), (), 1),
        (msgspec.structs.replace(CLEAN, faults=1), (), 1),
    ],
)
def test_a_fault_weighs_more_than_a_missed_bar(
    outcome: SoakOutcome, verdicts: tuple[TrendVerdict, ...], code: int
) -> None:
    assert result(outcome, *verdicts).exit_code == code


def test_faults_are_described() -> None:
    faulty = msgspec.structs.replace(CLEAN, lost=1, faults=1, examples=("order 0x1 is gone",))
    assert outcome_words(faulty).splitlines()[1:] == ["fault: order 0x1 is gone"]
    assert "backlog 4 at most and 1 when the load ended (0 after 0.5 s)" in outcome_words(CLEAN)
    never = msgspec.structs.replace(CLEAN, drained_s=None)
    assert "1 when the load ended (not 0 again)" in outcome_words(never)
    assert "(none settled)" in outcome_words(msgspec.structs.replace(CLEAN, settled_p50_s=None))


def test_a_page_without_a_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    with pytest.raises(BenchFailed, match="is no folder"):
        run_bench_soak(SoakPlan(1.0), tmp_path / "none" / "soak.md", console)


def test_a_sandbox_that_does_not_start_gives_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    with pytest.raises(BenchFailed, match="the sandbox did not start: "), running_sandbox(tmp_path):
        pass


@contextlib.contextmanager
def a_load(*command: str) -> Iterator[LoadProcess]:
    """Give the load of a process that runs this instead."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        yield LoadProcess(process, SoakPlan(0.1), 3.0)
        process.kill()


def printing(*lines: Line) -> list[str]:
    return ["printf", "".join(f"{msgspec.json.encode(each).decode()}\\n" for each in lines)]


def test_the_lines_of_a_load_end_with_its_outcome() -> None:
    with a_load(*printing(WINDOW, WINDOW, CLEAN)) as load:
        assert list(load.lines()) == [WINDOW, WINDOW, CLEAN]


def test_a_load_that_ends_too_early_is_no_success() -> None:
    with a_load(*printing(WINDOW)) as load:
        lines = load.lines()
        assert next(lines) == WINDOW
        with pytest.raises(BenchFailed, match="the load ended before its time"):
            next(lines)


def test_a_load_may_take_longer_before_its_first_line_by_the_orders_that_fill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finding: a busy machine that filled 110,000 orders was given up after two minutes."""
    monkeypatch.setattr(sandbox_process, "LINE_DEADLINE_S", 0.0)
    plan = SoakPlan(0.1, filling_orders=int(60 * sandbox_process.FILLED_PER_S))
    slow = ["sh", "-c", 'sleep 0.3; exec "$@"', "sh", *printing(CLEAN)]
    with subprocess.Popen(slow, stdout=subprocess.PIPE) as process:
        assert list(LoadProcess(process, plan, 0.05).lines()) == [CLEAN]


def test_a_silent_load_is_given_up() -> None:
    with a_load("sleep", "60") as load, pytest.raises(BenchFailed, match=r"nothing for 0\.05 s"):
        load._next(0.05)
