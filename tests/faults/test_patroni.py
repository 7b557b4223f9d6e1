"""A database of three servers under Patroni; its primary is killed or stopped under load."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.faults.led_rig import check_journal
from tests.faults.patroni import Cluster, Node, a_cluster, until

from foretell.bench.rigs.leaders import Leader, succession
from foretell.journal.postgres.leases import LEASE_S

pytestmark = pytest.mark.skipif(
    not os.environ.get("FORETELL_TEST_PATRONI"),
    reason="a cluster takes minutes and installed programs: make faults sets FORETELL_TEST_PATRONI",
)

KILLS = max(1, int(os.environ.get("FORETELL_TEST_CYCLES", "3")) // 50)
TERMS = 10_000
ACKNOWLEDGED = 200


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with a_cluster() as cluster:
        yield cluster


@contextlib.contextmanager
def two_leaders(cluster: Cluster) -> Iterator[Sequence[Leader]]:
    """Yield one process that leads and one that waits to, in turns."""
    with succession(cluster.url, LEASE_S, TERMS) as started:
        yield [started.follow(), started.follow()]


def go_on(*leaders: Leader) -> None:
    """Return when the processes together had this many more payloads acknowledged."""
    wanted = count(*leaders) + ACKNOWLEDGED
    until(lambda: count(*leaders) >= wanted or None)


def count(*leaders: Leader) -> int:
    return sum(len(leader.acknowledged) for leader in leaders)


@pytest.mark.parametrize("kill", [Node.kill, Node.kill_server], ids=["both", "server alone"])
def test_nothing_acknowledged_is_lost_when_the_primary_is_killed_repeatedly(
    cluster: Cluster, played: Callable[[int], None], kill: Callable[[Node], None]
) -> None:
    with two_leaders(cluster) as leaders:
        for _ in range(KILLS):
            go_on(*leaders)
            primary = cluster.primary()
            kill(primary)
            cluster.primary(other_than=primary)
            go_on(*leaders)
            cluster.start_node(primary)
            cluster.until_whole()
        go_on(*leaders)
    check_journal(cluster.url, leaders)
    played(KILLS)


def test_nothing_acknowledged_is_lost_when_the_primary_is_stopped_and_resumes(
    cluster: Cluster, played: Callable[[int], None]
) -> None:
    with two_leaders(cluster) as leaders:
        for _ in range(KILLS):
            go_on(*leaders)
            primary = cluster.primary()
            primary.signal(signal.SIGSTOP)
            cluster.primary(other_than=primary)
            go_on(*leaders)
            primary.signal(signal.SIGCONT)
            cluster.until_whole()
        go_on(*leaders)
    check_journal(cluster.url, leaders)
    played(KILLS)
