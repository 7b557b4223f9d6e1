"""Leases of rate limits: the requests of one window that each process may admit.

One transaction at a time exchanges leases, so that they never add up to more than a limit. A lease that is not
renewed expires when the requests admitted under it have left their window.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.rate_leases import Demand, RateLease, lease_of
from foretell.store.database import Transaction
from foretell.store.tables import rate_leases

RENEWED_WITHIN_MS: Final = 5_000
"""A lease lasts longer than its window by this time."""
_LOCK: Final = 0x72617465
_NOW_MS: Final = sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()) * 1000, sa.BigInteger)


class RateClaim(NamedTuple):
    """The requests of one client in one window, and those that a process wants to lease."""

    quota: str
    requests: int
    window_ms: int
    used: int
    wanted: int


class Granted(NamedTuple):
    """A process's lease, and what the other processes hold."""

    lease: RateLease
    elsewhere: int


async def exchange_leases(
    tx: Transaction, process: str, claims: Sequence[RateClaim]
) -> Mapping[str, Granted]:
    """Store what a process wants, and return what it gets, by quota; PostgreSQL alone."""
    await tx.scalar(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    now_ms = int(await tx.scalar(sa.select(_NOW_MS)))
    await tx.execute(rate_leases.delete().where(rate_leases.c.expires_at_ms < now_ms))
    known: dict[str, dict[str, Demand]] = {claim.quota: {} for claim in claims}
    query = sa.select(rate_leases).where(rate_leases.c.quota.in_(sorted(known)))
    for row in await tx.all(query):
        known[row.quota][row.process] = Demand(row.leased, row.wanted)
    granted, rows = {}, []
    for claim in claims:
        mine = Demand(known[claim.quota].pop(process, Demand(0, 0)).leased, claim.wanted)
        others = list(known[claim.quota].values())
        lease = lease_of(claim.requests, claim.used, mine, others)
        granted[claim.quota] = Granted(lease, sum(other.leased for other in others))
        expires_at_ms = now_ms + claim.window_ms + RENEWED_WITHIN_MS
        rows.append((claim.quota, process, lease.held, claim.wanted, expires_at_ms))
    await tx.upsert_rows(rate_leases, rows)
    return granted
