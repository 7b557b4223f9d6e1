"""Leaders of a shard, in processes of their own, that are killed and stopped under load."""

import signal
import time

from tests.faults.leaders import DEADLINE_S, check_journal, leaders
from tests.journal.shards import query

KILLED_LEASE_S = 1.2
STOPPED_LEASE_S = 0.5
OUTAGE_PER_LEASE = 1.5


def test_another_leads_soon_after_a_leader_was_killed_and_nothing_is_lost(journal_url: str) -> None:
    with leaders(journal_url, KILLED_LEASE_S, "first", "second") as (leader, waiting):
        leader.until_acknowledged(200)
        killed_at = time.monotonic()
        leader.process.kill()
        leads_at, _ = waiting.until("leads")
        assert leads_at - killed_at < OUTAGE_PER_LEASE * KILLED_LEASE_S
        waiting.until_acknowledged(200)
        leader.end()
        waiting.end()
    check_journal(journal_url, leader, waiting)


def test_a_leader_that_was_stopped_for_a_while_is_fenced(journal_url: str) -> None:
    with leaders(journal_url, STOPPED_LEASE_S, "first", "second") as (first, second):
        first.until_acknowledged(100)
        first.process.send_signal(signal.SIGSTOP)
        second.until("leads")
        second.until_acknowledged(100)
        first.process.send_signal(signal.SIGCONT)
        _, line = first.until("lost")
        assert "the lease of shard 0 is lost" in line
        second.until_acknowledged(100)
        first.process.wait(DEADLINE_S)
        second.end()
    check_journal(journal_url, first, second)
    ((epochs,),) = query(journal_url, "SELECT count(DISTINCT epoch) FROM journal.record")
    assert epochs == 2
