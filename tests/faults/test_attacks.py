"""Attacks by strangers: traders go on, memory is given back, and the log stays short (H1, H2, H5, M2, M3)."""

import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest
from tests.faults.attacks.attacker import SLOW_READERS, UNREAD, UNREAD_OF_ONE, UNREAD_PAGES
from tests.faults.attacks.outcome import GROWTH_BYTES_MAX, IDLE, Outcome, head, misses_of, row_of
from tests.faults.attacks.play import CONNECTIONS, MARKETS, SECONDS, Siege
from tests.faults.attacks.target import Latencies, a_target
from tests.faults.attacks.watcher import resident_bytes
from tests.rigs.installation import Running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e attacked")]

SCALE: Final = float(os.environ.get("FORETELL_TEST_ATTACKS", "0.02"))
"""1: as many connections as the report of the attacks had, and latencies that are judged."""
TRADED_S: Final = 0.5 if SCALE < 1 else SECONDS


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(tmp_path)
    await running.start()
    yield running
    running.stop()


async def test_beside_each_attack_orders_go_on_and_memory_is_given_back(
    running: Running,
    played: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def show(text: str) -> None:
        with capsys.disabled() if SCALE >= 1 else contextlib.nullcontext():
            sys.stdout.write(text)

    async with a_target(running, round(MARKETS * SCALE)) as target:
        siege = await Siege.begin(target)
        show(head())
        missed, judged = [], 0
        for way in CONNECTIONS:
            plays = []
            async for outcome in siege.plays(way, SCALE, TRADED_S):
                show(row_of(outcome))
                plays.append(outcome)
            missed += misses_of(plays, is_whole=SCALE >= 1)
            judged += not plays[0].is_disturbed
        show(f"latencies that no other program disturbed: {judged} of {len(CONNECTIONS)}\n")
        assert missed + await siege.misses() == [], running.output
    played(len(CONNECTIONS))


WELL: Final = Outcome(
    way=IDLE,
    connections=10,
    alone=Latencies(100, 4.0, 10.0),
    beside=Latencies(100, 5.0, 24.0),
    held=10,
    unsent_bytes=0,
    refused_reads=0,
    opened=10,
    closed=0,
    before_bytes=100,
    most_bytes=100,
    after_bytes=120,
    children_before_bytes=200,
    children_after_bytes=240,
    given_back_s=1.0,
    others_cores=0.05,
)
READ_SLOWLY: Final = WELL._replace(way=SLOW_READERS, unsent_bytes=1, closed=1)
UNREAD_MOST: Final = 120 + GROWTH_BYTES_MAX[UNREAD]
LEFT_UNREAD: Final = READ_SLOWLY._replace(way=UNREAD, most_bytes=UNREAD_MOST)
OF_ONE_MOST: Final = 120 + GROWTH_BYTES_MAX[UNREAD_OF_ONE]
LEFT_BY_ONE: Final = WELL._replace(
    way=UNREAD_OF_ONE, unsent_bytes=1, refused_reads=1, most_bytes=OF_ONE_MOST
)
PAGES_MOST: Final = 120 + GROWTH_BYTES_MAX[UNREAD_PAGES]
PAGES_LEFT: Final = READ_SLOWLY._replace(way=UNREAD_PAGES, most_bytes=PAGES_MOST)


@pytest.mark.parametrize("outcome", [WELL, READ_SLOWLY, LEFT_UNREAD, LEFT_BY_ONE, PAGES_LEFT])
def test_an_attack_that_changes_little_meets_all_bars(outcome: Outcome) -> None:
    assert outcome.misses(is_whole=True) == []


@pytest.mark.parametrize(
    ("outcome", "is_whole", "missed"),
    [
        (WELL._replace(held=9), False, "held 9 >= 10"),
        (WELL._replace(opened=9), False, "opened 9 >= 10"),
        (WELL._replace(after_bytes=121), False, "memory 121 <= 1.2 * 100"),
        (
            WELL._replace(children_after_bytes=241),
            False,
            "memory of the other processes 241 <= 1.2 * 200",
        ),
        (
            LEFT_UNREAD._replace(most_bytes=UNREAD_MOST + 1),
            False,
            f"memory during it {UNREAD_MOST + 1} <= {UNREAD_MOST}",
        ),
        (
            LEFT_BY_ONE._replace(most_bytes=OF_ONE_MOST + 1),
            False,
            f"memory during it {OF_ONE_MOST + 1} <= {OF_ONE_MOST}",
        ),
        (
            PAGES_LEFT._replace(most_bytes=PAGES_MOST + 1),
            False,
            f"memory during it {PAGES_MOST + 1} <= {PAGES_MOST}",
        ),
        (PAGES_LEFT._replace(closed=0), True, "closed 0 > 0"),
        (LEFT_UNREAD._replace(unsent_bytes=0), False, "unsent bytes 0 > 0"),
        (LEFT_UNREAD._replace(closed=0), True, "closed 0 > 0"),
        (LEFT_BY_ONE._replace(unsent_bytes=0), False, "unsent bytes 0 > 0"),
        (LEFT_BY_ONE._replace(refused_reads=0), False, "refused reads 0 > 0"),
        (READ_SLOWLY._replace(unsent_bytes=0), False, "unsent bytes 0 > 0"),
        (READ_SLOWLY._replace(closed=0), True, "closed 0 > 0"),
    ],
)
def test_a_figure_that_misses_its_bar_is_named(
    outcome: Outcome, missed: str, *, is_whole: bool
) -> None:
    assert outcome.misses(is_whole=is_whole) == [f"{outcome.way}: {missed}"]


SLOW: Final = WELL._replace(beside=Latencies(100, 5.0, 25.1))


def test_a_latency_misses_its_bar_in_most_plays_of_an_attack() -> None:
    words = f"{IDLE}: p99 beside it 25.1 ms <= 25.0 ms"
    assert misses_of([WELL], is_whole=True) == []
    assert misses_of([SLOW], is_whole=True) == [words]
    assert misses_of([SLOW, WELL, WELL], is_whole=True) == []
    assert misses_of([SLOW, WELL, SLOW], is_whole=True) == [words, words]


def test_other_figures_miss_their_bars_in_any_play_of_an_attack() -> None:
    plays = [SLOW, WELL._replace(after_bytes=121), WELL]
    assert misses_of(plays, is_whole=True) == [f"{IDLE}: memory 121 <= 1.2 * 100"]


@pytest.mark.parametrize(("first", "scale", "played"), [(WELL, 1, 1), (SLOW, 1, 3), (SLOW, 0.1, 1)])
async def test_a_whole_attack_whose_latency_misses_is_played_again(
    monkeypatch: pytest.MonkeyPatch, first: Outcome, scale: float, played: int
) -> None:
    outcomes = iter([first, WELL, WELL])

    async def endure(_siege: Siege, _way: str, _connections: int, _seconds: float) -> Outcome:
        return next(outcomes)

    monkeypatch.setattr(Siege, "endure", endure)
    siege = Siege.__new__(Siege)
    assert len([each async for each in siege.plays(IDLE, scale, 1.0)]) == played


def test_a_latency_that_others_disturbed_is_not_judged() -> None:
    slow = WELL._replace(beside=Latencies(100, 50.0, 900.0))
    assert misses_of([slow], is_whole=True)
    assert misses_of([slow._replace(others_cores=0.5)], is_whole=True) == []
    assert misses_of([slow], is_whole=False) == []


def test_a_process_that_has_ended_has_no_memory_before_its_parent_knows() -> None:
    """A finding: one that ended during a look ended the attacks."""
    with subprocess.Popen(["sleep", "60"]) as running:
        assert resident_bytes(running.pid) > 0
        running.kill()
        os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError):
            resident_bytes(running.pid)
