"""The coordinator that moves collateral between the treasury and its shards.

It holds no state that must survive: what is on its way is the difference between the journals of
both sides, so `catch_up` after any break sends both of them everything again. A shard that does not
reply keeps its allocations, and no other shard waits for it. One that was started again catches up
as well: its journal may be an older one, and its other reports have only what changed.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from foretell.domain.errors.exchange import EngineStopped, TreasuryUnavailable
from foretell.domain.errors.families import Unavailable
from foretell.domain.exchange.allocations import Allocation, AllocationTotal, Total, total_of
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.treasury.commands import (
    AdmitShard,
    GrantAllocation,
    ObserveCollateral,
    SettledSeen,
    ShardSeen,
    TakeBack,
)
from foretell.domain.treasury.treasury import (
    GrantResult,
    Recall,
    look_up_allocation,
    recalls,
    totals_given_to,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.engine.allocations.lost_returns import LostReturns
from foretell.engine.protocol.endpoint import EngineEndpoint
from foretell.engine.protocol.requests import (
    JoinRequest,
    ReportReply,
    ReportRequest,
    ReturnReply,
    ReturnRequest,
    TakeRequest,
)
from foretell.engine.writer.treasury_engine import TreasuryEngine

TOTALS_PER_COMMAND_MAX: Final = 1_000
NOTHING: Final = Allocation()
NO_BLOCK: Final = Bytes32("0x" + "ff" * 32)
"""The hash of no block: a report as of it holds no allocation."""
RETURN_DEADLINE_S: Final = 2.0
"""How long a shard may take to return something before the next one is asked."""
COMPARED_EVERY_S: Final = 3_600.0
"""How often all allocations of a shard are compared, although it was not started again."""

Entry = TypeVar("Entry")


class Report(NamedTuple):
    """A shard's allocations as it counts them, and the block that it has observed.

    They are all of them, or those that changed since the last report that was applied.
    """

    seen: ShardSeen
    allocation_by_wallet: Mapping[Address, Allocation]
    sequence: int
    is_whole: bool
    start_id: str


class AllocationCoordinator:
    """One treasury and the shards that spend from it."""

    def __init__(
        self,
        treasury: TreasuryEngine,
        shards: Mapping[str, EngineEndpoint],
        *,
        return_deadline_s: float = RETURN_DEADLINE_S,
        totals_per_command_max: int = TOTALS_PER_COMMAND_MAX,
    ) -> None:
        self._treasury = treasury
        self._shards = shards
        self._return_deadline_s = return_deadline_s
        self._totals_per_command_max = totals_per_command_max
        self._unjoined_shards = dict.fromkeys(shards)
        self._lost_returns = LostReturns(treasury, shards)
        self._start_id_by_shard: dict[str, str] = {}
        self._compared_at_s: dict[str, float] = {}
        self._sequence_by_shard: dict[str, int] = {}
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()

    @property
    def unjoined_shards(self) -> list[str]:
        """The shards that must catch up before they are granted anything."""
        return list(self._unjoined_shards)

    async def start(self) -> None:
        """Introduce the shards and the treasury to each other."""
        for name in self._shards:
            await self.catch_up(name)

    async def catch_up(self, name: str) -> None:
        """Send a shard and the treasury what each may have missed of the other.

        Refuse when the treasury's journal has lost what the shard's has; the shard returns again what
        its journal has lost.
        """
        await self._shards[name].handle(JoinRequest(name))
        await self._treasury.submit(AdmitShard(self._treasury.now_ms(), name))
        returned = self._lost_returns.returned_units(name)
        report = await self._report(name)
        if report is not None:
            await self._lost_returns.make_again(name, returned, report.allocation_by_wallet)
            await self._reconcile(report)
            self._start_id_by_shard[name] = report.start_id
            self._compared_at_s[name] = asyncio.get_running_loop().time()
            self._unjoined_shards.pop(name, None)

    async def find_due(self) -> list[str]:
        """Return the shards that must catch up: new or started again, or not compared for long.

        Others return what they owe.
        """
        joined = [name for name in self._shards if name not in self._unjoined_shards]
        await asyncio.gather(*(self._check_start(name) for name in joined))
        compared_before_s = asyncio.get_running_loop().time() - COMPARED_EVERY_S
        return [
            name
            for name in self._shards
            if name in self._unjoined_shards or self._compared_at_s[name] <= compared_before_s
        ]

    async def _check_start(self, name: str) -> None:
        """Exclude a shard that was started since it caught up; skip one that does not reply."""
        with contextlib.suppress(TimeoutError, Unavailable):
            async with asyncio.timeout(self._return_deadline_s):
                part = await self._shards[name].handle(ReportRequest(0, NO_BLOCK))
                assert isinstance(part, ReportReply)
                if part.start_id != self._start_id_by_shard[name]:
                    self._unjoined_shards[name] = None
                else:
                    await self._lost_returns.collect(name)

    async def fund(self, name: str, wallet: Address, given: Total) -> AllocationTotal:
        """Return the total that a shard was given: what it requests, if there is as much.

        Requests for one wallet wait for each other, so that what is gathered for one shard is not
        granted to another.
        """
        if name in self._unjoined_shards or not self._is_complete():
            raise TreasuryUnavailable("a shard has not joined it yet")
        command = GrantAllocation(self._treasury.now_ms(), name, wallet, given)
        async with self._lock(wallet):
            if await self._lost_returns.owes(name, wallet):
                raise TreasuryUnavailable("the shard owes it units of the wallet")
            granting = await self._grant(command)
            if granting.missing is not None:
                await self._gather(granting.missing, is_forced=False)
                granting = await self._grant(command)
            return granting.given

    async def observe(
        self,
        block_number: int,
        block_hash: Bytes32,
        balances: Sequence[BalanceSeen],
        allowances: Sequence[AllowanceSeen],
    ) -> bool:
        """Submit a block to the treasury; return whether it applies, every shard having observed it.

        Balances and allowances are those of collateral that changed since its last observation.
        """
        if not self._is_complete():
            return False
        reports = await asyncio.gather(*(self._report(name, block_hash) for name in self._shards))
        met = [report for report in reports if report is not None]
        if len(met) < len(reports):
            return False
        for report in met:
            if report.is_whole:
                await self._reconcile(report)
        number = self._treasury.state.observations + 1
        settled = self._settled(met)
        lengths = (len(balances), len(allowances), len(settled), 1)
        size = self._totals_per_command_max
        parts = -(-max(lengths) // size)
        at_ms = self._treasury.now_ms()
        for part in range(1, parts + 1):
            command = ObserveCollateral(
                at_ms=at_ms,
                number=number,
                block_number=block_number,
                block_hash=block_hash,
                shards=tuple(report.seen for report in met),
                balances=_part_of(balances, part, size),
                allowances=_part_of(allowances, part, size),
                settled=_part_of(settled, part, size),
                part=part,
                parts=parts,
            )
            await self._treasury.submit(command)
        is_applied = self._treasury.state.observations == number
        if is_applied:
            self._sequence_by_shard = {report.seen.shard: report.sequence for report in met}
        return is_applied

    async def call_back(self, *, forced: Collection[Address]) -> None:
        """Gather allocations that a wallet's withdrawals left uncovered, some by force."""
        for recall in recalls(self._treasury.state):
            async with self._lock(recall.wallet):
                await self._gather(recall, is_forced=recall.wallet in forced)

    def _lock(self, wallet: Address) -> asyncio.Lock:
        return self._locks.setdefault(wallet, asyncio.Lock())

    def _is_complete(self) -> bool:
        """Return whether every shard was admitted: another may have settled trades to report."""
        return self._shards.keys() <= self._treasury.state.shards.keys()

    async def _grant(self, command: GrantAllocation) -> GrantResult:
        granting = await self._treasury.submit(command)
        assert granting is not None
        return granting

    async def _gather(self, recall: Recall, *, is_forced: bool) -> None:
        """Request units from the holders in turn until there is enough; skip one that is down."""
        await self._treasury.sync()
        missing = recall.units
        for holder in recall.holders:
            if missing <= 0:
                break
            target = total_of(holder.returned_units + min(missing, holder.units))
            returned = await self._return(holder.shard, recall.wallet, target, is_forced=is_forced)
            if returned is not None:
                missing -= int(returned.total) - holder.returned_units
                await self._treasury.submit(
                    TakeBack(self._treasury.now_ms(), holder.shard, (returned,))
                )

    async def _return(
        self, name: str, wallet: Address, target: Total, *, is_forced: bool
    ) -> AllocationTotal | None:
        """Have a shard return units; return its total, or None when it does not reply."""
        if name not in self._shards or name in self._unjoined_shards:
            return None
        given = look_up_allocation(self._treasury.state, name, wallet).given_units
        request = ReturnRequest(name, AllocationTotal(wallet, total_of(given)), target, is_forced)
        try:
            async with asyncio.timeout(self._return_deadline_s):
                reply = await self._shards[name].handle(request)
        except (TimeoutError, Unavailable):
            return None
        assert isinstance(reply, ReturnReply)
        return reply.returned

    async def _report(self, name: str, block_hash: Bytes32 | None = None) -> Report | None:
        """Return a shard's report; None when it is not, or does not stay, at the named block."""
        since = self._sequence_by_shard.get(name) if block_hash is not None else None
        start_id = self._start_id_by_shard.get(name) if block_hash is not None else None
        parts: list[ReportReply] = []
        count = 0
        while not parts or count < parts[-1].count:
            part = await self._shards[name].handle(ReportRequest(count, block_hash, since))
            assert isinstance(part, ReportReply)
            if start_id is None:
                start_id = part.start_id
            if (part.shard, part.start_id) != (name, start_id):
                self._unjoined_shards[name] = None
                return None
            if block_hash not in {None, part.block_hash}:
                return None
            parts.append(part)
            count += len(part.allocations)
            since = None
        allocation_by_wallet = {
            each.wallet: each.allocation() for part in parts for each in part.allocations
        }
        self._check_given(name, allocation_by_wallet)
        seen, first = ShardSeen(name, parts[-1].block_number, parts[-1].block_hash), parts[0]
        return Report(seen, allocation_by_wallet, first.sequence, first.is_whole, first.start_id)

    async def _reconcile(self, report: Report) -> None:
        """Send each side the totals of the other that are larger than its own.

        Totals only grow, so the larger one is the newer: a message that is late, repeated or lost
        changes nothing, and whichever side misses it gets it from the other's journal here.
        """
        name = report.seen.shard
        here, treasury = report.allocation_by_wallet, self._treasury.state
        given = [
            total
            for total in totals_given_to(treasury, name)
            if int(total.total) > here.get(total.wallet, NOTHING).given_units
        ]
        returned = [
            AllocationTotal(wallet, total_of(held.returned_units))
            for wallet, held in here.items()
            if held.returned_units > look_up_allocation(treasury, name, wallet).returned_units
        ]
        await self._treasury.sync()
        for some in _batches(given, self._totals_per_command_max):
            await self._shards[name].handle(TakeRequest(name, some))
        for some in _batches(returned, self._totals_per_command_max):
            await self._treasury.submit(TakeBack(self._treasury.now_ms(), name, some))

    def _settled(self, reports: Sequence[Report]) -> list[SettledSeen]:
        """Return the settled totals that the treasury does not know yet."""
        return [
            SettledSeen(report.seen.shard, wallet, total_of(held.settled_units))
            for report in reports
            for wallet, held in report.allocation_by_wallet.items()
            if held.settled_units
            != look_up_allocation(self._treasury.state, report.seen.shard, wallet).settled_units
        ]

    def _check_given(self, name: str, allocations: Mapping[Address, Allocation]) -> None:
        """Refuse to continue when the treasury's journal has lost what a shard's has."""
        for wallet, here in allocations.items():
            there = look_up_allocation(self._treasury.state, name, wallet)
            if here.given_units > there.given_units:
                self._unjoined_shards[name] = None
                raise EngineStopped(
                    f"shard {name} was given {here.given_units} of {wallet}, and the treasury's"
                    f" journal says {there.given_units}"
                )


def _batches(totals: Sequence[AllocationTotal], size: int) -> Iterator[tuple[AllocationTotal, ...]]:
    for start in range(0, len(totals), size):
        yield tuple(totals[start : start + size])


def _part_of(entries: Sequence[Entry], part: int, size: int) -> tuple[Entry, ...]:
    start = (part - 1) * size
    return tuple(entries[start : start + size])
