import io
import re

import pytest
from rich.console import Console
from tests.rigs.journals import query

from foretell.bench import failover
from foretell.bench.failover import Outage, judge, run_bench_failover
from foretell.bench.rigs import leaders
from foretell.bench.rigs.leaders import Leader
from foretell.domain.errors.command import BenchFailed

LEASE_S = 0.6


def test_losses_are_told_by_the_lease_and_nothing_is_lost(
    journal_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover, "LOADED", 30)
    file = io.StringIO()
    run_bench_failover(journal_url, LEASE_S, 1, Console(file=file, width=200))
    told = file.getvalue()
    rows = re.findall(r"│ (\d) +│ (\w+) +│ (\d+\.\d\d) +│ (\d+\.\d\d) ", told)
    assert [(number, how) for number, how, *_ in rows] == [("1", "killed"), ("2", "stopped")]
    assert min(float(seconds) for *_, seconds, _ in rows) > LEASE_S / 3
    largest = max(float(ratio) for *_, ratio in rows)
    assert f" leases without a leader, {largest:.2f} at most (median of 2 losses" in told
    assert "failover-records: 0 gaps, 0 duplicates, 0 acknowledged and lost, of " in told
    ((is_there,),) = query(journal_url, "SELECT to_regnamespace('journal') IS NOT NULL")
    assert not is_there


class Told(Leader):
    """What a leader told, without the process that did."""

    def __init__(self, acknowledged: dict[int, str]) -> None:
        self.acknowledged = acknowledged


def test_a_journal_is_judged_by_what_was_acknowledged() -> None:
    journal = {1: "a-0", 2: "a-1", 4: "a-1"}
    leader = Told({1: "a-0", 2: "a-1", 3: "a-2"})
    assert judge(journal, [leader]) == (3, 1, 1, 1)
    assert judge({}, []) == (0, 0, 0, 0)


def test_a_leader_that_never_leads_fails_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "DEADLINE_S", 0.1)
    leader = Leader("postgresql+asyncpg://u@127.0.0.1:1/none", LEASE_S, "nobody")
    try:
        with pytest.raises(BenchFailed, match="nobody did not tell that it leads"):
            leader.until("leads")
        with pytest.raises(BenchFailed, match="acknowledged what nobody appended"):
            leader.until_acknowledged(1)
    finally:
        monkeypatch.undo()
        leader.kill()


def test_an_outage_is_measured_in_leases() -> None:
    assert Outage("killed", 4.5, 3.0).ratio == 1.5
