"""What a shard reports of its slices: all of them, or those that changed since an earlier report.

A treasury wants to know at every block what settled. Most slices did not change, so a host remembers
which did, by the sequence that told it. Whoever asks for more than is remembered is told everything.
"""

from itertools import islice
from typing import Final

from foretell.domain.exchange.allocations import AllocationTotals
from foretell.domain.exchange.commands import TakeAllocations
from foretell.domain.exchange.effects import AllocationMoved
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.requests import CommittedCommand, ReportReply, ReportRequest
from foretell.engine.writer.engine import Engine

SLICES_PER_REPORT_MAX: Final = 10_000
"""How many wallets one answer tells of: half a megabyte."""


class ChangedAllocations:
    """When each slice changed last, as far as an engine told it."""

    def __init__(self) -> None:
        self._sequence_by_wallet: dict[Address, int] = {}
        self._first_sequence: int | None = None

    def on_committed(self, committed: CommittedCommand) -> None:
        """Take what a command did."""
        if self._first_sequence is None:
            self._first_sequence = committed.sequence
        for effect in committed.effects:
            if isinstance(effect, AllocationMoved):
                self._sequence_by_wallet.pop(effect.wallet, None)
                self._sequence_by_wallet[effect.wallet] = committed.sequence

    def since(self, sequence: int) -> list[Address] | None:
        """Return whose slice changed after a sequence, if nothing before this was missed."""
        if self._first_sequence is None or sequence < self._first_sequence:
            return None
        wallets = []
        for wallet, changed in reversed(self._sequence_by_wallet.items()):
            if changed <= sequence:
                break
            wallets.append(wallet)
        return wallets


async def report_allocations(
    engine: Engine, changed: ChangedAllocations | None, wanted: ReportRequest
) -> ReportReply:
    """Return what is asked for, once it is durable."""
    if changed is not None and wanted.since is not None and wanted.since <= engine.sequence:
        report = await _report_changed(engine, changed, wanted, wanted.since)
        if report is not None:
            return report
    state = engine.state
    is_wanted = wanted.block_hash in {None, state.observed_hash}
    end = wanted.start + SLICES_PER_REPORT_MAX if is_wanted else wanted.start
    allocations = [
        AllocationTotals(wallet, *held.totals())
        for wallet, held in islice(
            state.allocations.allocation_by_wallet.items(), wanted.start, end
        )
    ]
    report = _report(engine, allocations, engine.sequence, is_whole=True)
    await _sync(engine)
    return report


async def _report_changed(
    engine: Engine, changed: ChangedAllocations, wanted: ReportRequest, since: int
) -> ReportReply | None:
    """Return what changed since; None when too much did, it is not known, or the block moves.

    A change is heard of once it is durable. What changes while that is awaited comes in the next
    report, since this one bears the sequence before it.
    """
    sequence, block_hash = engine.sequence, engine.state.observed_hash
    await _sync(engine)
    wallets = changed.since(since)
    if wallets is None or len(wallets) > SLICES_PER_REPORT_MAX:
        return None
    if {engine.state.observed_hash, wanted.block_hash or block_hash} != {block_hash}:
        return None
    allocations = engine.state.allocations
    totals = [AllocationTotals(wallet, *allocations.look_up(wallet).totals()) for wallet in wallets]
    report = _report(engine, totals, sequence, is_whole=False)
    await _sync(engine)
    return report


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
