"""`foretell bench failover`: the time without a leader after a shard loses one (failover).

Real processes lead one shard of a journal in PostgreSQL under load; each is killed or stopped, and
another one takes over. The measure is the lease, because the next leader has to wait for its end.
"""

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.bench.rigs.figures import FAILOVER, Measurement
from foretell.bench.rigs.leader_process import SHARD
from foretell.bench.rigs.leaders import Leader, LeaderSuccession, succession
from foretell.bench.rigs.scratch_database import scratch_database

LOADED: Final = 200
"""Acknowledgements before a leader is lost, and after another leads."""
LOSS_TURN_S: Final = 0.13
"""The time by which each leader is killed later in its lease than the one before."""
_RECORDS: Final = "SELECT sequence, payload FROM journal.record WHERE shard = $1"


class Outage(NamedTuple):
    """The loss of a leader, and the time from its last acknowledgement to the first of the next."""

    how: str
    seconds: float
    lease_s: float

    @property
    def ratio(self) -> float:
        """The outage in leases."""
        return self.seconds / self.lease_s


class FailoverFigures(NamedTuple):
    """The records of a journal after all losses."""

    records: int
    gaps: int
    lost: int
    duplicates: int


def run_bench_failover(
    url: str, lease_s: float, cycles: int, console: Console, loaded: int = LOADED
) -> list[Measurement]:
    """Lose leaders one after the other, and print the outages and the lost records."""
    outages, verdict = uvloop.run(_measure(url, lease_s, cycles, loaded))
    table = Table("cycle", "leader was", "outage s", "outage / lease")
    for number, shown in enumerate(outages, 1):
        table.add_row(str(number), shown.how, f"{shown.seconds:.2f}", f"{shown.ratio:.2f}")
    console.print(table)
    ratios = [shown.ratio for shown in outages]
    console.print(
        f"failover: {statistics.median(ratios):.2f} leases without a leader, {max(ratios):.2f} at"
        f" most (median of {len(ratios)} losses, lease {lease_s:g} s)"
    )
    console.print(
        f"failover-records: {verdict.gaps} gaps, {verdict.duplicates} duplicates,"
        f" {verdict.lost} acknowledged and lost, of {verdict.records:,} records"
    )
    losses = f"{verdict.gaps} gaps, {verdict.duplicates} duplicates, {verdict.lost} lost"
    ceiling = f"a lease of {lease_s:g} s; {losses} of {verdict.records:,} records"
    return [Measurement(FAILOVER, statistics.median(ratios), ceiling)]


async def _measure(
    url: str, lease_s: float, cycles: int, loaded: int
) -> tuple[Sequence[Outage], FailoverFigures]:
    async with scratch_database(url) as connection:
        with succession(url, lease_s) as leaders:
            outages = await asyncio.to_thread(_replace_leaders, leaders, lease_s, cycles, loaded)
        rows = await connection.fetch(_RECORDS, SHARD)
        payload_by_sequence = {row["sequence"]: row["payload"].decode() for row in rows}
    return outages, judge(payload_by_sequence, leaders.leaders)


def _replace_leaders(
    leaders: LeaderSuccession, lease_s: float, cycles: int, loaded: int
) -> Sequence[Outage]:
    """Kill each leader, and stop the last one for a while; the next leader already waits."""
    leader = leaders.follow()
    outages = []
    for cycle in range(cycles + 1):
        following = leaders.follow()
        leader.until_acknowledged(loaded)
        time.sleep(cycle * LOSS_TURN_S % lease_s)
        is_killed = cycle < cycles
        lost_at_s = time.monotonic()
        if is_killed:
            leader.kill()
        else:
            leader.stop()
        following.until_acknowledged(loaded)
        if not is_killed:
            leader.resume()
            leader.until("lost")
            leader.wait()
            following.until_acknowledged(loaded)
        how = "killed" if is_killed else "stopped"
        outages.append(_outage(how, leader, lost_at_s, following, lease_s))
        leader = following
    return outages


def _outage(
    how: str, leader: Leader, lost_at_s: float, following: Leader, lease_s: float
) -> Outage:
    """Return the time without acknowledgements; a stopped leader may report more when it continues."""
    assert leader.last_at_s is not None
    assert following.first_at_s is not None
    return Outage(how, following.first_at_s - min(leader.last_at_s, lost_at_s), lease_s)


def judge(payload_by_sequence: Mapping[int, str], leaders: Sequence[Leader]) -> FailoverFigures:
    """Return how many records are missing from a journal, and how many are in it twice."""
    records = len(payload_by_sequence)
    lost = sum(
        payload_by_sequence.get(sequence) != payload
        for leader in leaders
        for sequence, payload in leader.acknowledged.items()
    )
    return FailoverFigures(
        records=records,
        gaps=max(payload_by_sequence, default=0) - records,
        lost=lost,
        duplicates=records - len(set(payload_by_sequence.values())),
    )
