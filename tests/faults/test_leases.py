"""Leaders of a shard, in processes of their own, are killed and stopped under load.

`make faults` kills many times.
"""

import os
from collections.abc import Callable, Iterator

import pytest
from tests.faults.led_rig import check_journal
from tests.rigs.journals import query

from foretell.bench.rigs.leaders import LeaderSuccession
from foretell.journal.postgres.leases import LEASE_S as USUAL_LEASE_S

KILLS = int(os.environ.get("FORETELL_TEST_CYCLES", "1"))
LEASE_S = USUAL_LEASE_S if KILLS > 1 else 3 * USUAL_LEASE_S
"""One kill is beside other tests, which may stop a leader for longer than the usual lease."""

Lead = Callable[[], LeaderSuccession]


@pytest.fixture
def lead(journal_url: str) -> Iterator[Lead]:
    """Start a succession with a lease that no leader loses before it is killed or stopped."""
    begun: list[LeaderSuccession] = []

    def begin() -> LeaderSuccession:
        begun.append(LeaderSuccession(journal_url, LEASE_S))
        return begun[-1]

    yield begin
    for leaders in begun:
        leaders.end()


def test_another_leads_soon_after_a_leader_was_killed_and_nothing_is_lost(
    journal_url: str, lead: Lead, played: Callable[[int], None]
) -> None:
    leaders = lead()
    leader, waiting = leaders.follow(), leaders.follow()
    for _ in range(KILLS):
        leader.until_acknowledged(200)
        leader.kill()
        waiting.until("leads")  # it fails after a time; `foretell bench failover` measures it
        leader, waiting = waiting, leaders.follow()
    leader.until_acknowledged(200)
    leaders.end()
    check_journal(journal_url, leaders.leaders)
    played(KILLS)


@pytest.mark.case("A-08")
def test_a_leader_that_was_stopped_for_a_while_is_fenced(journal_url: str, lead: Lead) -> None:
    leaders = lead()
    first, second = leaders.follow(), leaders.follow()
    first.until_acknowledged(100)
    first.stop()
    second.until("leads")
    second.until_acknowledged(100)
    first.resume()
    _, line = first.until("lost")
    assert "the lease of shard 0 is lost" in line
    second.until_acknowledged(100)
    first.wait()
    leaders.end()
    check_journal(journal_url, leaders.leaders)
    ((epochs,),) = query(journal_url, "SELECT count(DISTINCT epoch) FROM journal.record")
    assert epochs == 2
