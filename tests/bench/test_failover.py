import io
import re

import pytest
from rich.console import Console
from tests.rigs.journals import query

from foretell.bench.failover import Outage, judge, run_bench_failover
from foretell.bench.rigs.leaders import Leader
from foretell.domain.errors.command import BenchFailed

LEASE_S = 3.0
"""That of an exchange: on a busy machine a leader with a shorter one may not renew it in time."""


def test_outages_are_printed_in_leases_and_nothing_is_lost(journal_url: str) -> None:
    file = io.StringIO()
    run_bench_failover(journal_url, LEASE_S, 1, Console(file=file, width=200), loaded=30)
    printed = file.getvalue()
    rows = re.findall(r"│ (\d) +│ (\w+) +│ (\d+\.\d\d) +│ (\d+\.\d\d) ", printed)
    assert [(number, how) for number, how, *_ in rows] == [("1", "killed"), ("2", "stopped")]
    assert min(float(seconds) for *_, seconds, _ in rows) > LEASE_S / 3
    largest = max(float(ratio) for *_, ratio in rows)
    assert f" leases without a leader, {largest:.2f} at most (median of 2 losses" in printed
    assert "failover-records: 0 gaps, 0 duplicates, 0 acknowledged and lost, of " in printed
    ((is_there,),) = query(journal_url, "SELECT to_regnamespace('journal') IS NOT NULL")
    assert not is_there


class FormerLeader(Leader):
    """The acknowledgements of a leader, without its process."""

    def __init__(self, acknowledged: dict[int, str]) -> None:
        self.acknowledged = acknowledged


def test_a_journal_is_compared_with_the_acknowledgements() -> None:
    journal = {1: "a-0", 2: "a-1", 4: "a-1"}
    leader = FormerLeader({1: "a-0", 2: "a-1", 3: "a-2"})
    assert judge(journal, [leader]) == (3, 1, 1, 1)
    assert judge({}, []) == (0, 0, 0, 0)


def test_a_leader_that_never_leads_fails_the_benchmark() -> None:
    url = "postgresql+asyncpg://u@127.0.0.1:1/none"
    leader = Leader(url, LEASE_S, "anna", deadline_s=0.1)
    try:
        with pytest.raises(BenchFailed, match="anna did not report that it leads"):
            leader.until("leads")
        with pytest.raises(BenchFailed, match="that anna appended were not acknowledged"):
            leader.until_acknowledged(1)
    finally:
        leader.kill(60.0)


def test_an_outage_is_measured_in_leases() -> None:
    assert Outage("killed", 4.5, 3.0).ratio == 1.5
