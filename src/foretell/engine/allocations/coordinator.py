"""The carrier between the treasury and its shards.

It holds nothing that matters: what is on its way is what the journals of both sides differ by, so
`catch_up` after any break tells both of them everything again. All that it knows of a shard it
asks, wherever that runs; one that does not answer keeps its slices, and no other waits for it.
"""

import asyncio
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
    Granting,
    Recall,
    given_to,
    look_up_allocation,
    recalls,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.engine.protocol.requests import (
    EngineEndpoint,
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
GIVE_BACK_DEADLINE_S: Final = 2.0
"""How long a shard may take to give something back before the next one is asked."""

Entry = TypeVar("Entry")


class Report(NamedTuple):
    """Slices of a shard as it counts them, and the block that it has observed.

    They are all of them, or those that changed since the report that was taken in last.
    """

    seen: ShardSeen
    allocation_by_wallet: Mapping[Address, Allocation]
    sequence: int
    is_whole: bool


class AllocationCoordinator:
    """One treasury and the shards that spend from it."""

    def __init__(self, treasury: TreasuryEngine, shards: Mapping[str, EngineEndpoint]) -> None:
        self._treasury = treasury
        self._shards = shards
        self._unjoined_shards = dict.fromkeys(shards)
        self._sequence_by_shard: dict[str, int] = {}
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()

    @property
    def unjoined_shards(self) -> list[str]:
        """The shards that are to be caught up with before they get anything."""
        return list(self._unjoined_shards)

    async def start(self) -> None:
        """Make the shards known to the treasury, and the treasury to them."""
        for name in self._shards:
            await self.catch_up(name)

    async def catch_up(self, name: str) -> None:
        """Tell a shard and the treasury what each may have missed of the other.

        Refuses when one side's journal has lost what the other side's has.
        """
        await self._shards[name].ask(JoinRequest(name))
        await self._treasury.submit(AdmitShard(self._treasury.now_ms(), name))
        report = await self._report(name)
        if report is not None:
            await self._reconcile(report)
            self._unjoined_shards.pop(name, None)

    async def fund(self, name: str, wallet: Address, given: Total) -> AllocationTotal:
        """Return what a shard was given in all: what it wants, if there is as much.

        Who wants something of a wallet waits for who came before, so that what is gathered for one
        is not granted to another.
        """
        if name in self._unjoined_shards or not self._is_complete():
            raise TreasuryUnavailable("it has not heard of every shard yet")
        command = GrantAllocation(self._treasury.now_ms(), name, wallet, given)
        async with self._lock(wallet):
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
        """Tell the treasury of a block; say whether it took it in, as it does once all shards did.

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
        parts = -(-max(lengths) // TOTALS_PER_COMMAND_MAX)
        at_ms = self._treasury.now_ms()
        for part in range(1, parts + 1):
            command = ObserveCollateral(
                at_ms=at_ms,
                number=number,
                block_number=block_number,
                block_hash=block_hash,
                shards=tuple(report.seen for report in met),
                balances=_part_of(balances, part),
                allowances=_part_of(allowances, part),
                settled=_part_of(settled, part),
                part=part,
                parts=parts,
            )
            await self._treasury.submit(command)
        is_taken_in = self._treasury.state.observations == number
        if is_taken_in:
            self._sequence_by_shard = {report.seen.shard: report.sequence for report in met}
        return is_taken_in

    async def call_back(self, *, forced: Collection[Address]) -> None:
        """Gather what wallets have withdrawn from under the slices of their shards, some by force."""
        for recall in recalls(self._treasury.state):
            async with self._lock(recall.wallet):
                await self._gather(recall, is_forced=recall.wallet in forced)

    def _lock(self, wallet: Address) -> asyncio.Lock:
        return self._locks.setdefault(wallet, asyncio.Lock())

    def _is_complete(self) -> bool:
        """Whether every shard was admitted: one that was not may have settled trades to tell of."""
        return self._shards.keys() <= self._treasury.state.shards.keys()

    async def _grant(self, command: GrantAllocation) -> Granting:
        granting = await self._treasury.submit(command)
        assert granting is not None
        return granting

    async def _gather(self, recall: Recall, *, is_forced: bool) -> None:
        """Ask the holders in turn until there is enough; one that is down is passed over."""
        await self._treasury.sync()
        missing = recall.units
        for holder in recall.holders:
            if missing <= 0:
                break
            target = total_of(holder.returned_units + min(missing, holder.units))
            returned = await self._give_back(
                holder.shard, recall.wallet, target, is_forced=is_forced
            )
            if returned is not None:
                missing -= int(returned.total) - holder.returned_units
                await self._treasury.submit(
                    TakeBack(self._treasury.now_ms(), holder.shard, (returned,))
                )

    async def _give_back(
        self, name: str, wallet: Address, target: Total, *, is_forced: bool
    ) -> AllocationTotal | None:
        """Return what a shard returned in all, or None when it does not say."""
        if name not in self._shards or name in self._unjoined_shards:
            return None
        given = look_up_allocation(self._treasury.state, name, wallet).given_units
        question = ReturnRequest(name, AllocationTotal(wallet, total_of(given)), target, is_forced)
        try:
            async with asyncio.timeout(GIVE_BACK_DEADLINE_S):
                answer = await self._shards[name].ask(question)
        except (TimeoutError, Unavailable):
            return None
        assert isinstance(answer, ReturnReply)
        return answer.returned

    async def _report(self, name: str, block_hash: Bytes32 | None = None) -> Report | None:
        """Return what a shard counts; None when it is not, or does not stay, at the named block."""
        known = self._returned_units(name) if block_hash is None else {}
        since = self._sequence_by_shard.get(name) if block_hash is not None else None
        parts: list[ReportReply] = []
        count = 0
        while not parts or count < parts[-1].count:
            part = await self._shards[name].ask(ReportRequest(count, block_hash, since))
            assert isinstance(part, ReportReply)
            if part.shard != name:
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
        self._check_journals(name, known, allocation_by_wallet)
        seen = ShardSeen(name, parts[-1].block_number, parts[-1].block_hash)
        return Report(seen, allocation_by_wallet, parts[0].sequence, parts[0].is_whole)

    async def _reconcile(self, report: Report) -> None:
        """Tell each side what the other's totals say that it has not heard."""
        name = report.seen.shard
        here, treasury = report.allocation_by_wallet, self._treasury.state
        given = [
            total
            for total in given_to(treasury, name)
            if int(total.total) > here.get(total.wallet, NOTHING).given_units
        ]
        returned = [
            AllocationTotal(wallet, total_of(held.returned_units))
            for wallet, held in here.items()
            if held.returned_units > look_up_allocation(treasury, name, wallet).returned_units
        ]
        await self._treasury.sync()
        for some in _batches(given):
            await self._shards[name].ask(TakeRequest(name, some))
        for some in _batches(returned):
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

    def _returned_units(self, name: str) -> dict[Address, int]:
        """Return what the treasury knows of to be returned; what is asked later knows no less."""
        allocations_by_wallet = self._treasury.state.allocations_by_wallet
        return {
            wallet: held[name].returned_units
            for wallet, held in allocations_by_wallet.items()
            if name in held
        }

    def _check_journals(
        self, name: str, returned: Mapping[Address, int], allocations: Mapping[Address, Allocation]
    ) -> None:
        """Refuse to go on when one side's journal has lost what the other side's has."""
        for wallet, here in allocations.items():
            there = look_up_allocation(self._treasury.state, name, wallet)
            if here.given_units > there.given_units:
                self._unjoined_shards[name] = None
                raise EngineStopped(
                    f"shard {name} was given {here.given_units} of {wallet}, and the treasury's"
                    f" journal says {there.given_units}"
                )
        for wallet, units in returned.items():
            here = allocations.get(wallet, NOTHING)
            if units > here.returned_units:
                self._unjoined_shards[name] = None
                raise EngineStopped(
                    f"shard {name} returned {units} of {wallet}, and its journal says"
                    f" {here.returned_units}"
                )


def _batches(totals: Sequence[AllocationTotal]) -> Iterator[tuple[AllocationTotal, ...]]:
    for start in range(0, len(totals), TOTALS_PER_COMMAND_MAX):
        yield tuple(totals[start : start + TOTALS_PER_COMMAND_MAX])


def _part_of(entries: Sequence[Entry], part: int) -> tuple[Entry, ...]:
    start = (part - 1) * TOTALS_PER_COMMAND_MAX
    return tuple(entries[start : start + TOTALS_PER_COMMAND_MAX])
