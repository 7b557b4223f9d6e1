"""Races of several shards for a wallet's last unit."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec
import pytest
from tests.rigs.values import NOW_MS, a_buy, a_placing, an_address, an_open_market, some_rules

from foretell.domain.errors.exchange import NotEnoughFunds
from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    CancelOrders,
    JoinTreasury,
    ObserveChain,
    PlaceOrder,
    ReturnAllocation,
    TakeAllocations,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.state import State
from foretell.domain.treasury.commands import (
    AdmitShard,
    GrantAllocation,
    ObserveCollateral,
    ShardSeen,
    TakeBack,
)
from foretell.domain.treasury.treasury import (
    AllocationHolder,
    GrantResult,
    Treasury,
    apply_to_treasury,
    free_units,
)
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Bytes32

SHARDS: Final = ("north", "south", "west")
RACES: Final = 100_000
HEATS: Final = 10
ALICE: Final = an_address("alice")


class Course:
    """A treasury with one unit of alice's, and shards in each of which she tries to spend it."""

    def __init__(self) -> None:
        self.treasury = Treasury()
        self.states = {name: State() for name in SHARDS}
        self.templates: dict[str, PlaceOrder] = {}
        self.orders = 0
        allowance = AllowanceSeen(ALICE, an_open_market().exchange, is_collateral=True, units=10**9)
        for name, state in self.states.items():
            opened = an_open_market(name, rules=some_rules(4, size_units_min=1))
            order = a_buy(price_ticks=1, size_units=4, ticks_per_one=4, market=name)
            self.templates[name] = a_placing(order, market=opened)
            apply(state, opened)
            apply(state, JoinTreasury(NOW_MS, name))
            apply(state, ObserveChain(NOW_MS, 1, ZERO_BYTES32, (), (allowance,), ()))
            apply_to_treasury(self.treasury, AdmitShard(NOW_MS, name))
        apply_to_treasury(
            self.treasury,
            ObserveCollateral(
                at_ms=NOW_MS,
                number=1,
                block_number=1,
                block_hash=ZERO_BYTES32,
                shards=tuple(ShardSeen(name, 1, ZERO_BYTES32) for name in SHARDS),
                balances=(BalanceSeen(ALICE, COLLATERAL, 1),),
                allowances=(allowance,),
                settled=(),
            ),
        )

    def run(self, name: str) -> Iterator[None]:
        """Try to spend the unit in one shard; every other runner may act at each `yield`."""
        for _ in range(2):
            if self.place(name):
                return
            yield
            granting = self.ask(name)
            yield
            if granting.missing is not None:
                for holder in granting.missing.holders:
                    yield from self.recall(holder)
                granting = self.ask(name)
                yield
            take = TakeAllocations(NOW_MS, name, (granting.given,))
            apply(self.states[name], take)
            yield
            apply(self.states[name], take)
        self.place(name)

    def place(self, name: str) -> bool:
        self.orders += 1
        order_id = Bytes32(f"0x{self.orders:064x}")
        try:
            apply(
                self.states[name],
                msgspec.structs.replace(self.templates[name], order_id=order_id),
            )
        except NotEnoughFunds:
            return False
        return True

    def ask(self, name: str) -> GrantResult:
        target = self.states[name].allocations.look_up(ALICE).given_units + 1
        granting = apply_to_treasury(
            self.treasury, GrantAllocation(NOW_MS, name, ALICE, total_of(target))
        ).result
        assert granting is not None
        return granting

    def recall(self, holder: AllocationHolder) -> Iterator[None]:
        wanted = ReturnAllocation(NOW_MS, holder.shard, ALICE, total_of(holder.returned_units + 1))
        yield
        returned = apply(self.states[holder.shard], wanted).result
        assert isinstance(returned, AllocationTotal)
        yield
        apply_to_treasury(self.treasury, TakeBack(NOW_MS, holder.shard, (returned,)))

    def spent_units(self) -> int:
        return sum(
            state.ledger.look_up(ALICE, COLLATERAL).reserved_units for state in self.states.values()
        )

    def cancel(self) -> None:
        for state in self.states.values():
            if state.live_orders:
                apply(state, CancelOrders(NOW_MS, ALICE, tuple(state.live_orders)))


def race(course: Course, random: Random) -> int:
    """Run two shards' steps in a random order, and return how many units were spent."""
    runners = [course.run(name) for name in random.sample(SHARDS, 2)]
    while runners:
        runner = random.choice(runners)
        if next(runner, runner) is runner:
            runners.remove(runner)
    return course.spent_units()


@pytest.mark.case("B-02")
@pytest.mark.parametrize("heat", range(HEATS))
def test_of_the_shards_that_race_for_the_last_unit_exactly_one_spends_it(heat: int) -> None:
    course, random = Course(), Random(heat)
    spent = []
    for _ in range(RACES // HEATS):
        spent.append(race(course, random))
        course.cancel()
    assert Counter(spent) == {1: RACES // HEATS}


def test_the_unit_remains_after_many_races() -> None:
    course, random = Course(), Random(0)
    for _ in range(100):
        race(course, random)
        course.cancel()
    for name in SHARDS:
        for _ in course.run(name):
            pass
        assert course.spent_units() == 1
        course.cancel()
    for name, held in course.treasury.allocations_by_wallet[ALICE].items():
        for _ in course.recall(AllocationHolder(name, held.units, held.returned_units)):
            pass
    assert free_units(course.treasury, ALICE) == 1
