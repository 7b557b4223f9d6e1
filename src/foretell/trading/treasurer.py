"""The carrier between the treasury and its shards.

It holds nothing that matters: what is on its way is what the journals of both sides differ by, so
`catch_up` after any break tells both of them everything again. A shard's order asks the treasury
only when it was refused for want of collateral.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from foretell.domain import errors, matching_errors
from foretell.domain.commands import (
    AllowanceSeen,
    BalanceSeen,
    JoinTreasury,
    PlaceOrder,
    ReturnSlice,
    TakeSlices,
)
from foretell.domain.fold import Result
from foretell.domain.hexadecimal import Address, Bytes32
from foretell.domain.ledger import COLLATERAL
from foretell.domain.slices import SliceTotal, total_of
from foretell.domain.treasury import Recall, given_to, look_up_slice, recalls
from foretell.domain.treasury_commands import (
    AdmitShard,
    GrantSlice,
    ObserveCollateral,
    SettledSeen,
    ShardSeen,
    TakeBack,
)
from foretell.trading.engine import Engine
from foretell.trading.treasury_engine import TreasuryEngine

TOTALS_PER_COMMAND_MAX: Final = 1_000

Entry = TypeVar("Entry")


class Treasurer:
    """One treasury and the shards that spend from it."""

    def __init__(self, treasury: TreasuryEngine, shards: Mapping[str, Engine]) -> None:
        self._treasury = treasury
        self._shards = shards
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()

    async def start(self) -> None:
        """Make the shards known to the treasury, and the treasury to them."""
        for name, engine in self._shards.items():
            await engine.submit(JoinTreasury(engine.clock_ms(), name))
            await self._treasury.submit(AdmitShard(self._treasury.now_ms(), name))
            await self.catch_up(name)

    async def catch_up(self, name: str) -> None:
        """Tell a shard and the treasury what each may have missed of the other."""
        self._check_journals(name)
        given = given_to(self._treasury.state, name)
        await self._treasury.sync()
        for some in _batches(given):
            await self._give(name, some)
        returned = [
            SliceTotal(wallet, total_of(held.returned_units))
            for wallet, held in self._shards[name].state.slices.slice_by_wallet.items()
        ]
        await self._sync(name)
        for some in _batches(returned):
            await self._treasury.submit(TakeBack(self._treasury.now_ms(), name, some))

    async def place(self, name: str, command: PlaceOrder) -> Result:
        """Place the order in its shard, with what the treasury finds for it when it lacks some.

        A wallet's orders that lack something wait for each other, lest one takes away what was
        just gathered for another.
        """
        engine, wallet = self._shards[name], command.order.maker
        try:
            return await engine.submit(command)
        except matching_errors.NotEnoughFunds as refusal:
            if refusal.details["asset"] != COLLATERAL:
                raise
            spender, need = refusal.details["spender"], refusal.details["need"]
        async with self._locks.setdefault(wallet, asyncio.Lock()):
            missing = engine.state.ledger.missing_units(wallet, spender, COLLATERAL, need)
            if missing:
                await self._fund(name, wallet, missing)
            return await engine.submit(command)

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
        number = self._treasury.state.observations + 1
        shards = tuple(self._seen(name) for name in self._shards)
        settled = self._settled()
        for name in self._shards:
            await self._sync(name)
        lengths = (len(balances), len(allowances), len(settled), 1)
        parts = -(-max(lengths) // TOTALS_PER_COMMAND_MAX)
        at_ms = self._treasury.now_ms()
        for part in range(1, parts + 1):
            command = ObserveCollateral(
                at_ms=at_ms,
                number=number,
                block_number=block_number,
                block_hash=block_hash,
                shards=shards,
                balances=_part_of(balances, part),
                allowances=_part_of(allowances, part),
                settled=_part_of(settled, part),
                part=part,
                parts=parts,
            )
            await self._treasury.submit(command)
        return self._treasury.state.observations == number

    async def call_back(self, *, is_forced: bool) -> None:
        """Gather what wallets have withdrawn from under the slices of their shards."""
        for recall in recalls(self._treasury.state):
            await self._gather(recall, is_forced=is_forced)

    async def _fund(self, name: str, wallet: Address, missing_units: int) -> None:
        given = self._shards[name].state.slices.look_up(wallet).given_units
        command = GrantSlice(self._treasury.now_ms(), name, wallet, total_of(given + missing_units))
        granting = await self._treasury.submit(command)
        assert granting is not None
        if granting.missing is not None:
            await self._gather(granting.missing, is_forced=False)
            granting = await self._treasury.submit(command)
            assert granting is not None
        await self._give(name, (granting.given,))

    async def _gather(self, recall: Recall, *, is_forced: bool) -> None:
        """Ask the holders in turn until there is enough; one that is down is passed over."""
        missing = recall.units
        for holder in recall.holders:
            if missing <= 0:
                break
            target = total_of(holder.returned_units + min(missing, holder.units))
            engine = self._shards[holder.shard]
            command = ReturnSlice(
                engine.clock_ms(), holder.shard, recall.wallet, target, is_forced=is_forced
            )
            try:
                returned = await engine.submit(command)
            except errors.Unavailable:
                continue
            assert isinstance(returned, SliceTotal)
            missing -= int(returned.total) - holder.returned_units
            await self._treasury.submit(
                TakeBack(self._treasury.now_ms(), holder.shard, (returned,))
            )

    async def _give(self, name: str, given: tuple[SliceTotal, ...]) -> None:
        engine = self._shards[name]
        await engine.submit(TakeSlices(engine.clock_ms(), name, given))

    async def _sync(self, name: str) -> None:
        """Return once all that a shard holds in memory is durable."""
        await self._give(name, ())

    def _seen(self, name: str) -> ShardSeen:
        state = self._shards[name].state
        return ShardSeen(name, state.observed_block, state.observed_hash)

    def _settled(self) -> list[SettledSeen]:
        """Return the settled totals that the treasury does not know yet."""
        return [
            SettledSeen(name, wallet, total_of(held.settled_units))
            for name, engine in self._shards.items()
            for wallet, held in engine.state.slices.slice_by_wallet.items()
            if held.settled_units != look_up_slice(self._treasury.state, name, wallet).settled_units
        ]

    def _check_journals(self, name: str) -> None:
        """Refuse to go on when one side's journal has lost what the other side's has."""
        slices = self._shards[name].state.slices.slice_by_wallet
        for wallet in {*slices, *self._treasury.state.slices_by_wallet}:
            there = look_up_slice(self._treasury.state, name, wallet)
            here = self._shards[name].state.slices.look_up(wallet)
            if here.given_units > there.given_units:
                raise matching_errors.EngineStopped(
                    f"shard {name} was given {here.given_units} of {wallet}, and the treasury's"
                    f" journal says {there.given_units}"
                )
            if there.returned_units > here.returned_units:
                raise matching_errors.EngineStopped(
                    f"shard {name} returned {there.returned_units} of {wallet}, and its journal"
                    f" says {here.returned_units}"
                )


def _batches(totals: Sequence[SliceTotal]) -> Iterator[tuple[SliceTotal, ...]]:
    for start in range(0, len(totals), TOTALS_PER_COMMAND_MAX):
        yield tuple(totals[start : start + TOTALS_PER_COMMAND_MAX])


def _part_of(entries: Sequence[Entry], part: int) -> tuple[Entry, ...]:
    start = (part - 1) * TOTALS_PER_COMMAND_MAX
    return tuple(entries[start : start + TOTALS_PER_COMMAND_MAX])
