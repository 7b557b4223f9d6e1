"""A shard's reports of its allocations: all of them, or those that changed since an earlier report.

At every block the treasury asks what settled. Most allocations did not change, so the host
remembers the sequence of the last change of each. A request for more than it remembers gets a whole
report.
"""

import os
from itertools import islice
from typing import Final

from msgspec import structs

from foretell.domain.exchange.allocations import AllocationTotals
from foretell.domain.exchange.commands import TakeAllocations
from foretell.domain.exchange.decision import Done
from foretell.domain.exchange.effects import AllocationMoved
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.requests import CommittedCommand, ReportReply, ReportRequest
from foretell.engine.writer.engine import Engine

ALLOCATIONS_PER_REPORT_MAX: Final = 10_000
"""How many wallets one reply reports: half a megabyte."""
START_ID_BYTES: Final = 16


class ChangedAllocations:
    """The sequence of each allocation's last change, as far as the engine published it."""

    def __init__(self) -> None:
        self.start_id = os.urandom(START_ID_BYTES).hex()
        self._sequence_by_wallet: dict[Address, int] = {}
        self._first_sequence: int | None = None

    def on_committed(self, committed: CommittedCommand) -> None:
        """Note the allocations that a command moved."""
        if self._first_sequence is None:
            self._first_sequence = committed.sequence
        decision = committed.decision
        for effect in decision.effects if isinstance(decision, Done) else ():
            if isinstance(effect, AllocationMoved):
                self._sequence_by_wallet.pop(effect.wallet, None)
                self._sequence_by_wallet[effect.wallet] = committed.sequence

    def since(self, sequence: int) -> list[Address] | None:
        """Return the wallets with changes after a sequence; None if earlier ones were not noted."""
        if self._first_sequence is None or sequence < self._first_sequence:
            return None
        wallets = []
        for wallet, changed in reversed(self._sequence_by_wallet.items()):
            if changed <= sequence:
                break
            wallets.append(wallet)
        return wallets


async def report_allocations(
    engine: Engine,
    changed: ChangedAllocations | None,
    request: ReportRequest,
    *,
    per_report_max: int = ALLOCATIONS_PER_REPORT_MAX,
) -> ReportReply:
    """Return the requested report, once it is durable."""
    if changed is not None and request.since is not None and request.since <= engine.sequence:
        report = await _report_changed(engine, changed, request, request.since, per_report_max)
        if report is not None:
            return report
    state = engine.state
    is_at_block = request.block_hash in {None, state.observed_hash}
    end = request.start + per_report_max if is_at_block else request.start
    allocations = [
        AllocationTotals(wallet, *held.totals())
        for wallet, held in islice(
            state.allocations.allocation_by_wallet.items(), request.start, end
        )
    ]
    report = _report(engine, allocations, engine.sequence, is_whole=True)
    await _sync(engine)
    return report if changed is None else structs.replace(report, start_id=changed.start_id)


async def _report_changed(
    engine: Engine,
    changed: ChangedAllocations,
    request: ReportRequest,
    since: int,
    per_report_max: int,
) -> ReportReply | None:
    """Return what changed since; None when too much did, it is not known, or the block moves.

    Changes are published once they are durable, hence the first sync. What changes during the
    second one is in the next report as well, since this one bears the sequence before it.
    """
    sequence, block_hash = engine.sequence, engine.state.observed_hash
    await _sync(engine)
    wallets = changed.since(since)
    if wallets is None or len(wallets) > per_report_max:
        return None
    if {engine.state.observed_hash, request.block_hash or block_hash} != {block_hash}:
        return None
    allocations = engine.state.allocations
    totals = [AllocationTotals(wallet, *allocations.look_up(wallet).totals()) for wallet in wallets]
    report = _report(engine, totals, sequence, is_whole=False)
    await _sync(engine)
    return structs.replace(report, start_id=changed.start_id)


def _report(
    engine: Engine, allocations: list[AllocationTotals], sequence: int, *, is_whole: bool
) -> ReportReply:
    state = engine.state
    return ReportReply(
        shard=state.allocations.shard,
        block_number=state.observed_block,
        block_hash=state.observed_hash,
        count=len(state.allocations.allocation_by_wallet) if is_whole else len(allocations),
        allocations=allocations,
        sequence=sequence,
        is_whole=is_whole,
    )


async def _sync(engine: Engine) -> None:
    """Return once all that the engine holds in memory is durable; refuse when it cannot be."""
    shard = engine.state.allocations.shard
    await engine.submit(TakeAllocations(engine.clock_ms(), shard, ()))
