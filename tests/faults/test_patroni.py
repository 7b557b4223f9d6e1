"""A database that is three servers under Patroni, whose primary is killed or stopped under load.

Collected where FORETELL_TEST_PATRONI is set, as `make faults` sets it.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.faults.leaders import check_journal
from tests.faults.patroni import Cluster, Node, a_cluster, until

from foretell.bench.rigs.leaders import Leader, succession
from foretell.journal.postgres.leases import LEASE_S

KILLS = max(1, int(os.environ.get("FORETELL_TEST_CYCLES", "3")) // 50)
TERMS = 10_000
ACKNOWLEDGED = 200


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with a_cluster() as cluster:
        yield cluster


@contextlib.contextmanager
def two_leaders(cluster: Cluster) -> Iterator[Sequence[Leader]]:
    """Give one process that leads and one that waits to, each as often as it comes to that."""
    with succession(cluster.url, LEASE_S, TERMS) as leaders:
        yield [leaders.follow(), leaders.follow()]


def go_on(*told: Leader) -> None:
    """Return when one of the processes had so many more acknowledged."""
    wanted = count(*told) + ACKNOWLEDGED
    until(lambda: count(*told) >= wanted or None)


def count(*told: Leader) -> int:
    return sum(len(leader.acknowledged) for leader in told)


@pytest.mark.parametrize("kill", [Node.kill, Node.kill_server], ids=["both", "server alone"])
def test_nothing_acknowledged_is_lost_when_the_primary_is_killed_again_and_again(
    cluster: Cluster, kill: Callable[[Node], None]
) -> None:
    with two_leaders(cluster) as told:
        for _ in range(KILLS):
            go_on(*told)
            primary = cluster.primary()
            kill(primary)
            cluster.primary(other_than=primary)
            go_on(*told)
            cluster.start_node(primary)
            cluster.until_whole()
        go_on(*told)
    check_journal(cluster.url, told)


def test_nothing_acknowledged_is_lost_when_the_primary_is_stopped_and_goes_on(
    cluster: Cluster,
) -> None:
    with two_leaders(cluster) as told:
        for _ in range(KILLS):
            go_on(*told)
            primary = cluster.primary()
            primary.signal(signal.SIGSTOP)
            cluster.primary(other_than=primary)
            go_on(*told)
            primary.signal(signal.SIGCONT)
            cluster.until_whole()
        go_on(*told)
    check_journal(cluster.url, told)
