"""The treasury: one collateral account per wallet, allocated to shards."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import EXCHANGE, NEG_RISK_EXCHANGE, NOW_MS, a_word, an_address, an_asset

from foretell.domain.exchange.allocations import Allocation, AllocationTotal, total_of
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.treasury.commands import (
    AdmitShard,
    GrantAllocation,
    ObserveCollateral,
    SettledSeen,
    ShardSeen,
    TakeBack,
)
from foretell.domain.treasury.treasury import (
    AllocationHolder,
    GrantResult,
    Recall,
    Treasury,
    apply_to_treasury,
    free_units,
    look_up_allocation,
    recalls,
    totals_given_to,
)
from foretell.domain.values.hexadecimal import Address

ALICE, BOB = an_address("alice"), an_address("bob")
PLENTY = 10**13
NORTH, SOUTH, WEST = "north", "south", "west"
UNITS = st.integers(1, 10**12)


def a_treasury(units: int = 100, *shards: str) -> Treasury:
    """Return a treasury of some shards (north and south) that has observed alice's balance."""
    treasury = Treasury()
    for shard in shards or (NORTH, SOUTH):
        apply_to_treasury(treasury, AdmitShard(NOW_MS, shard))
    apply_to_treasury(treasury, an_observation(treasury, units))
    return treasury


def an_observation(
    treasury: Treasury,
    units: int | None = None,
    *settled: SettledSeen,
    allowed: dict[Address, int] | None = None,
) -> ObserveCollateral:
    """Return the next observation: alice's balance, unless None, and allowances."""
    block, block_hash = treasury.observed_block + 1, a_word(f"block {treasury.observed_block}")
    balances = [] if units is None else [BalanceSeen(ALICE, COLLATERAL, units)]
    allowances = {EXCHANGE: PLENTY} if allowed is None else allowed
    return ObserveCollateral(
        at_ms=NOW_MS,
        number=treasury.observations + 1,
        block_number=block,
        block_hash=block_hash,
        shards=tuple(ShardSeen(shard, block, block_hash) for shard in treasury.shards),
        balances=tuple(balances),
        allowances=tuple(
            AllowanceSeen(ALICE, exchange, is_collateral=True, units=allowance)
            for exchange, allowance in allowances.items()
        ),
        settled=settled,
    )


def see(
    treasury: Treasury,
    units: int | None = None,
    *settled: SettledSeen,
    allowed: dict[Address, int] | None = None,
) -> None:
    command = an_observation(treasury, units, *settled, allowed=allowed)
    assert apply_to_treasury(treasury, command).is_change


def grant(treasury: Treasury, shard: str, given_units: int) -> GrantResult:
    command = GrantAllocation(NOW_MS, shard, ALICE, total_of(given_units))
    granting = apply_to_treasury(treasury, command).result
    assert granting is not None
    return granting


def take_back(treasury: Treasury, shard: str, total: int) -> bool:
    command = TakeBack(NOW_MS, shard, (AllocationTotal(ALICE, total_of(total)),))
    return apply_to_treasury(treasury, command).is_change


def settled(shard: str, total: int) -> SettledSeen:
    return SettledSeen(shard, ALICE, total_of(total))


def granted_units(treasury: Treasury, shard: str) -> int:
    return look_up_allocation(treasury, shard, ALICE).units


def test_an_unknown_wallet_has_nothing_to_grant() -> None:
    treasury = a_treasury()
    assert free_units(treasury, BOB) == 0
    assert look_up_allocation(treasury, NORTH, BOB) == Allocation()
    assert treasury.allocations_by_wallet == {}


def test_a_shard_is_admitted_once() -> None:
    treasury = a_treasury()
    assert not apply_to_treasury(treasury, AdmitShard(NOW_MS, NORTH)).is_change
    assert list(treasury.shards) == [NORTH, SOUTH]


@pytest.mark.parametrize(("need", "granted"), [(1, 50), (60, 80), (99, 99), (100, 100)])
def test_a_shard_is_granted_its_need_and_half_of_the_rest(need: int, granted: int) -> None:
    treasury = a_treasury(100)
    granting = grant(treasury, NORTH, need)
    assert granting == GrantResult(AllocationTotal(ALICE, total_of(granted)), None)
    assert free_units(treasury, ALICE) == 100 - granted


def test_a_repeated_grant_takes_effect_once() -> None:
    treasury = a_treasury(100)
    first = grant(treasury, NORTH, 60)
    again = apply_to_treasury(treasury, GrantAllocation(NOW_MS, NORTH, ALICE, total_of(60)))
    assert again.result == first
    assert not again.is_change


def test_a_shard_that_needs_more_than_is_free_is_granted_nothing_and_the_holders_are_named() -> (
    None
):
    treasury = a_treasury(100, NORTH, SOUTH, WEST)
    grant(treasury, NORTH, 10)
    grant(treasury, WEST, 30)
    outcome = apply_to_treasury(treasury, GrantAllocation(NOW_MS, SOUTH, ALICE, total_of(50)))
    holders = (AllocationHolder(NORTH, 55, 0), AllocationHolder(WEST, 37, 0))
    assert outcome.result == GrantResult(
        AllocationTotal(ALICE, total_of(0)), Recall(ALICE, 42, holders)
    )
    assert not outcome.is_change
    assert granted_units(treasury, SOUTH) == 0


def test_a_shard_that_asks_is_not_among_the_holders() -> None:
    treasury = a_treasury(100)
    grant(treasury, NORTH, 100)
    assert grant(treasury, NORTH, 101).missing == Recall(ALICE, 1, ())


def test_returned_units_are_free_again() -> None:
    treasury = a_treasury(100)
    grant(treasury, NORTH, 100)
    assert take_back(treasury, NORTH, 40)
    assert free_units(treasury, ALICE) == 40
    assert grant(treasury, SOUTH, 41).missing == Recall(
        ALICE, 1, (AllocationHolder(NORTH, 60, 40),)
    )
    assert grant(treasury, SOUTH, 40).missing is None


@pytest.mark.parametrize("total", [0, 39, 40])
def test_a_returned_total_that_is_known_changes_nothing(total: int) -> None:
    treasury = a_treasury(100)
    grant(treasury, NORTH, 100)
    take_back(treasury, NORTH, 40)
    assert not take_back(treasury, NORTH, total)
    assert free_units(treasury, ALICE) == 40


@pytest.mark.parametrize(
    "command",
    [
        GrantAllocation(NOW_MS, WEST, ALICE, total_of(1)),
        TakeBack(NOW_MS, WEST, (AllocationTotal(ALICE, total_of(1)),)),
    ],
)
def test_a_command_of_a_shard_that_was_not_admitted_is_an_assertion_error(
    command: GrantAllocation | TakeBack,
) -> None:
    with pytest.raises(AssertionError):
        apply_to_treasury(a_treasury(), command)


def test_no_more_is_granted_than_the_wallet_allows_any_exchange_to_move() -> None:
    treasury = a_treasury(100)
    see(treasury, allowed={EXCHANGE: 30, NEG_RISK_EXCHANGE: 70})
    assert free_units(treasury, ALICE) == 70
    assert grant(treasury, NORTH, 71).missing is not None


@given(before=UNITS, cost=UNITS)
def test_a_settled_purchase_leaves_as_much_to_grant(before: int, cost: int) -> None:
    treasury = a_treasury(before + cost)
    grant(treasury, NORTH, cost)
    free = free_units(treasury, ALICE)
    see(treasury, before, settled(NORTH, -cost))
    assert free_units(treasury, ALICE) == free


def test_a_settled_sale_belongs_to_the_shard_until_it_is_returned() -> None:
    treasury = a_treasury(100)
    see(treasury, 140, settled(NORTH, 40))
    assert (granted_units(treasury, NORTH), free_units(treasury, ALICE)) == (40, 100)
    take_back(treasury, NORTH, 40)
    assert free_units(treasury, ALICE) == 140


def test_a_sale_returned_before_its_block_is_observed_is_not_granted_yet() -> None:
    treasury = a_treasury(100)
    take_back(treasury, NORTH, 40)
    assert granted_units(treasury, NORTH) == -40
    assert free_units(treasury, ALICE) == 100
    see(treasury, 140, settled(NORTH, 40))
    assert free_units(treasury, ALICE) == 140


def test_a_grant_first_covers_what_the_shard_owes() -> None:
    treasury = a_treasury(100)
    take_back(treasury, NORTH, 40)
    assert grant(treasury, NORTH, 140) == GrantResult(AllocationTotal(ALICE, total_of(140)), None)
    assert (granted_units(treasury, NORTH), free_units(treasury, ALICE)) == (100, 0)


def test_units_that_a_wallet_withdrew_are_recalled_from_their_holders() -> None:
    treasury = a_treasury(100)
    grant(treasury, NORTH, 20)
    grant(treasury, SOUTH, 40)
    assert recalls(treasury) == []
    see(treasury, 30)
    assert recalls(treasury) == [
        Recall(ALICE, 70, (AllocationHolder(NORTH, 60, 0), AllocationHolder(SOUTH, 40, 0)))
    ]


def an_overdrawn_treasury() -> Treasury:
    treasury = a_treasury(100)
    grant(treasury, NORTH, 100)
    see(treasury, 30)
    return treasury


def test_a_recall_ends_once_enough_was_returned() -> None:
    treasury = an_overdrawn_treasury()
    take_back(treasury, NORTH, 69)
    assert recalls(treasury) == [Recall(ALICE, 1, (AllocationHolder(NORTH, 31, 69),))]
    take_back(treasury, NORTH, 70)
    assert recalls(treasury) == []


def test_a_recall_ends_once_the_chain_has_enough_again() -> None:
    treasury = an_overdrawn_treasury()
    see(treasury, 100)
    assert recalls(treasury) == []
    assert free_units(treasury, ALICE) == 0


def test_the_given_totals_of_a_shard_can_be_listed_at_any_time() -> None:
    treasury = a_treasury(100)
    grant(treasury, NORTH, 100)
    take_back(treasury, NORTH, 100)
    assert totals_given_to(treasury, NORTH) == [AllocationTotal(ALICE, total_of(100))]
    assert totals_given_to(treasury, SOUTH) == []


@pytest.mark.parametrize("number", [0, 1, 3])
def test_an_observation_that_is_late_or_early_has_no_effect(number: int) -> None:
    treasury = a_treasury(100)
    command = msgspec.structs.replace(an_observation(treasury, 500), number=number)
    before = msgspec.msgpack.encode(treasury.confirmed_by_wallet)
    assert not apply_to_treasury(treasury, command).is_change
    assert msgspec.msgpack.encode(treasury.confirmed_by_wallet) == before


@pytest.mark.parametrize(
    "shards",
    [
        (),
        (ShardSeen(NORTH, 2, a_word("block 1")),),
        (ShardSeen(NORTH, 2, a_word("block 1")), ShardSeen(SOUTH, 1, a_word("block 1"))),
        (ShardSeen(NORTH, 2, a_word("block 1")), ShardSeen(SOUTH, 2, a_word("a fork"))),
    ],
    ids=["none", "one", "behind", "on a fork"],
)
def test_a_block_that_not_every_shard_observed_has_no_effect(
    shards: tuple[ShardSeen, ...],
) -> None:
    treasury = a_treasury(100)
    command = msgspec.structs.replace(an_observation(treasury, 500), shards=shards)
    assert not apply_to_treasury(treasury, command).is_change
    assert free_units(treasury, ALICE) == 100


def some_parts(treasury: Treasury) -> list[ObserveCollateral]:
    whole = an_observation(treasury, 60, settled(NORTH, -40))
    return [
        msgspec.structs.replace(whole, settled=(), part=1, parts=2),
        msgspec.structs.replace(whole, balances=(), allowances=(), part=2, parts=2),
    ]


@pytest.mark.parametrize("order", [(1, 2), (1, 1, 2), (2, 1, 2), (1, 2, 2), (1, 2, 1)])
def test_an_observation_takes_effect_once_all_parts_arrived_in_order(order: list[int]) -> None:
    treasury = a_treasury(100)
    grant(treasury, NORTH, 100)
    parts = some_parts(treasury)
    for part in order:
        apply_to_treasury(treasury, parts[part - 1])
    assert (granted_units(treasury, NORTH), free_units(treasury, ALICE)) == (60, 0)
    assert treasury.observations == 2
    assert treasury.observed_parts == []


@pytest.mark.parametrize("order", [(1,), (2,), (2, 1)])
def test_an_observation_that_lacks_a_part_has_no_effect(order: list[int]) -> None:
    treasury = a_treasury(100)
    parts = some_parts(treasury)
    for part in order:
        apply_to_treasury(treasury, parts[part - 1])
    assert free_units(treasury, ALICE) == 100
    assert treasury.observations == 1


def test_parts_of_two_observations_are_not_mixed() -> None:
    treasury = a_treasury(100)
    first, last = some_parts(treasury)
    later = msgspec.structs.replace(last, at_ms=NOW_MS + 1)
    apply_to_treasury(treasury, first)
    assert not apply_to_treasury(treasury, later).is_change


def test_a_balance_of_a_token_is_an_assertion_error() -> None:
    treasury = a_treasury()
    seen = BalanceSeen(ALICE, an_asset(is_yes=True), 5)
    command = msgspec.structs.replace(an_observation(treasury), balances=(seen,))
    with pytest.raises(AssertionError):
        apply_to_treasury(treasury, command)
