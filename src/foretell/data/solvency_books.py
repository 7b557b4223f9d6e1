"""The report of solvency: what contracts hold against what is claimed, as of one indexed block.

The claims of all conditions are added up once for all clients, and kept for `KEPT_S` or longer. The chain is asked
once for each report, at the hash of the block that the tables are of. A page of conditions is read from
the tables for each request.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from prometheus_client import REGISTRY, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from foretell.domain.errors.chain import ChainUnavailable, NothingIndexed, RpcRefused
from foretell.domain.errors.families import ForetellError
from foretell.domain.portfolio.solvency import (
    BackingUnits,
    ClaimSum,
    OutstandingTokens,
    SolvencyTotal,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Database, Transaction
from foretell.store.index.blocks import Block, load_last_block
from foretell.store.public_reads.places import ReadKind, client_name
from foretell.store.queries.solvency import FIRST, load_outstanding

KEPT_S: Final = 5.0
"""How long a report is kept at least, and a failure, so that nobody makes the node fail often."""
KEPT_SHARE: Final = 20
"""A report is kept this many times as long as it took: strangers have one computed a twentieth of the time at most."""
KEPT_S_MAX: Final = 30.0
"""How long a report is kept at most: on a slow machine it would be out of date for minutes."""
CHAIN_S: Final = 5.0
"""The deadline of the chain's answer."""
BLOCKS_TRIED: Final = 3
NEXT_BLOCK_S: Final = 0.5
"""A node may keep the states of a few blocks alone, and the index is behind its head."""
REPORT_EVERY_S: Final = 60.0
"""How often a process that serves the API computes a report without being asked, for its metrics."""
CONDITIONS_PER_READ: Final = 500
CLIENT: Final = "solvency"
"""The client of the shared read among public reads: the same one, whichever client asked first."""

FetchBacking = Callable[[Bytes32], Awaitable[BackingUnits]]
"""Returns what the contracts hold at the block of a hash."""

log = structlog.get_logger(__name__)


class SolvencyMetrics(Collector):
    """The newest report of this process as metrics, in base units."""

    def __init__(self) -> None:
        self.total: SolvencyTotal | None = None

    @override
    def collect(self) -> list[Metric]:
        """Return the metrics, for the registry; none before the first report."""
        total = self.total
        if total is None:
            return []
        held = GaugeMetricFamily(
            "foretell_solvency_held_units", "collateral that contracts hold", labels=["pool"]
        )
        owed = GaugeMetricFamily(
            "foretell_solvency_owed_units", "collateral that is claimed", labels=["pool"]
        )
        for pool in total.pools:
            held.add_metric([pool.name], pool.held_units)
            owed.add_metric([pool.name], pool.owed_units)
        deficit = GaugeMetricFamily(
            "foretell_solvency_deficit_units", "missing collateral", value=total.deficit_units
        )
        short = GaugeMetricFamily(
            "foretell_solvency_short_conditions",
            "conditions that owe more than is locked for them",
            value=total.short_conditions,
        )
        block = GaugeMetricFamily(
            "foretell_solvency_block", "block of the report", value=total.block_number
        )
        return [held, owed, deficit, short, block]


METRICS: Final = SolvencyMetrics()
REGISTRY.register(METRICS)


class SolvencyBooks:
    """The report of one process, computed at most once at a time and kept for a while."""

    def __init__(
        self,
        database: Database,
        neg_risk_adapter: Address | None,
        fetch_backing: FetchBacking,
        now_ms: Callable[[], int],
    ) -> None:
        self._database = database
        self._fetch_backing = fetch_backing
        self._now_ms = now_ms
        self._running: asyncio.Task[SolvencyTotal] | None = None
        self._kept_until_ms = 0
        self.neg_risk_adapter = neg_risk_adapter

    async def total(self) -> SolvencyTotal:
        """Return the newest report, or the failure of the newest try; all who wait share one."""
        running = self._running
        if running is None or (running.done() and self._now_ms() >= self._kept_until_ms):
            running = self._running = asyncio.create_task(self._compute())
            running.add_done_callback(_take_failure)
        return await asyncio.shield(running)

    async def run(self) -> None:
        """Compute a report now and then until canceled, and log each deficit."""
        try:
            while True:
                await self._log_report()
                await asyncio.sleep(REPORT_EVERY_S)
        finally:
            if self._running is not None:
                self._running.cancel()

    async def _log_report(self) -> None:
        try:
            total = await self.total()
        except NothingIndexed:  # a first start: the next report has something to weigh
            return
        except ForetellError as error:
            log.warning("solvency not computed", cause=error.message)
            return
        for deficit in total.deficits:
            log.error("deficit", name=deficit.name, units=deficit.units)

    async def page(self, tx: Transaction, after: Bytes32, limit: int) -> list[OutstandingTokens]:
        """Return the conditions after one, in the order of their ids."""
        return list(await load_outstanding(tx, self.neg_risk_adapter, after, limit))

    async def _compute(self) -> SolvencyTotal:
        client_name.set(CLIENT)
        began_ms, kept_ms = self._now_ms(), int(KEPT_S * 1000)
        try:
            total = METRICS.total = await self._report()
            took_ms = self._now_ms() - began_ms
            kept_ms = max(kept_ms, min(KEPT_SHARE * took_ms, int(KEPT_S_MAX * 1000)))
        finally:
            self._kept_until_ms = self._now_ms() + kept_ms
        return total

    async def _report(self) -> SolvencyTotal:
        """Return a report; a block whose state the node has let go of is followed by a newer one."""
        for _ in range(BLOCKS_TRIED - 1):
            with contextlib.suppress(RpcRefused):
                return await self._report_once()
            await asyncio.sleep(NEXT_BLOCK_S)
        return await self._report_once()

    async def _report_once(self) -> SolvencyTotal:
        claims = ClaimSum()
        async with self._database.public_reading(ReadKind.REPORT) as tx:
            block = await last_block(tx)
            after = FIRST
            while rows := await self.page(tx, after, CONDITIONS_PER_READ):
                claims.add(rows)
                after = rows[-1].condition_id
        try:
            async with asyncio.timeout(CHAIN_S):
                backing = await self._fetch_backing(block.block_hash)
        except TimeoutError as error:
            raise ChainUnavailable("eth_call", f"no answer in {CHAIN_S:g} s") from error
        return SolvencyTotal(
            block_number=block.block_number,
            block_hash=block.block_hash,
            computed_at_ms=self._now_ms(),
            conditions=claims.conditions,
            pools=claims.pools(backing),
            short_conditions=claims.short_conditions,
            short=tuple(claims.short),
        )


async def last_block(tx: Transaction) -> Block:
    """Return the block that the tables are of, or refuse while there is none."""
    block = await load_last_block(tx)
    if block is None:
        raise NothingIndexed
    return block


def _take_failure(ended: "asyncio.Task[SolvencyTotal]") -> None:
    """Take the failure of a report that nobody waits for any more."""
    if not ended.cancelled():
        ended.exception()
