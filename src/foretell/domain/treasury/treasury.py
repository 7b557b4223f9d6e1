"""The treasury: one collateral account per wallet, allocated to shards.

The treasury knows the balances on the chain and the allocations of each shard, and never grants more
than a balance. A shard never spends more than its allocation. Neither waits for the other while it
decides. The proof is in docs/explanation/collateral-across-shards.md.
"""

from typing import NamedTuple, assert_never

import msgspec

from foretell.domain.exchange.allocations import Allocation, AllocationTotal, total_of
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.treasury.commands import (
    AdmitShard,
    GrantAllocation,
    ObserveCollateral,
    ShardSeen,
    TakeBack,
    TreasuryCommand,
)
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32


class Treasury(msgspec.Struct):
    """The treasury's state, which a replay of its journal gives."""

    shards: dict[str, None] = msgspec.field(default_factory=dict)
    confirmed_by_wallet: dict[Address, int] = msgspec.field(default_factory=dict)
    allowances_by_wallet: dict[Address, dict[Address, int]] = msgspec.field(default_factory=dict)
    allocations_by_wallet: dict[Address, dict[str, Allocation]] = msgspec.field(
        default_factory=dict
    )
    overdrawn: dict[Address, None] = msgspec.field(default_factory=dict)
    observations: int = 0
    observed_block: int = 0
    observed_hash: Bytes32 = ZERO_BYTES32
    observed_parts: list[ObserveCollateral] = msgspec.field(default_factory=list)


class AllocationHolder(NamedTuple):
    """A shard with an allocation of a wallet, and the total that it has returned."""

    shard: str
    units: int
    returned_units: int


class Recall(NamedTuple):
    """The missing units of a wallet, and the shards that hold some, the largest holder first."""

    wallet: Address
    units: int
    holders: tuple[AllocationHolder, ...]


class GrantResult(NamedTuple):
    """The total given to a shard, and what is missing when it is less than the request."""

    given: AllocationTotal
    missing: Recall | None


class TreasuryOutcome(NamedTuple):
    """The result of a command; the journal needs only commands that are a change."""

    result: GrantResult | None
    is_change: bool


def apply_to_treasury(treasury: Treasury, command: TreasuryCommand) -> TreasuryOutcome:
    """Apply the command to the treasury and return its outcome."""
    match command:
        case AdmitShard():
            is_change = command.shard not in treasury.shards
            treasury.shards[command.shard] = None
        case GrantAllocation():
            return _grant(treasury, command)
        case TakeBack():
            is_change = _take_back(treasury, command)
        case ObserveCollateral():
            is_change = _observe(treasury, command)
        case _:
            assert_never(command)
    return TreasuryOutcome(None, is_change)


def look_up_allocation(treasury: Treasury, shard: str, wallet: Address) -> Allocation:
    """Return the treasury's side of an allocation, or an empty one that is not stored."""
    return treasury.allocations_by_wallet.get(wallet, {}).get(shard) or Allocation()


def free_units(treasury: Treasury, wallet: Address) -> int:
    """Return what may still be granted; below zero when the wallet withdrew on the chain.

    An allocation below zero counts as zero: what one shard owes is not free for another.
    """
    granted = sum(
        max(each.units, 0) for each in treasury.allocations_by_wallet.get(wallet, {}).values()
    )
    return _cap_units(treasury, wallet) - granted


def totals_given_to(treasury: Treasury, shard: str) -> list[AllocationTotal]:
    """Return the totals given to a shard, which it needs again after a lost connection."""
    return [
        AllocationTotal(wallet, total_of(allocations[shard].given_units))
        for wallet, allocations in treasury.allocations_by_wallet.items()
        if shard in allocations
    ]


def recalls(treasury: Treasury) -> list[Recall]:
    """Return the wallets with less on the chain than was granted, and the holders."""
    return [
        _recall(treasury, wallet, -free_units(treasury, wallet)) for wallet in treasury.overdrawn
    ]


def _cap_units(treasury: Treasury, wallet: Address) -> int:
    """Return what the wallet holds and allows any exchange to move; shards check their own one."""
    allowed = max(treasury.allowances_by_wallet.get(wallet, {}).values(), default=0)
    return min(treasury.confirmed_by_wallet.get(wallet, 0), allowed)


def _grant(treasury: Treasury, command: GrantAllocation) -> TreasuryOutcome:
    """Grant a shard all units that it needs, and half of the rest for its next orders, or nothing.

    Partial grants could starve two shards, each with a part of what it needs.
    """
    wallet, shard = command.wallet, command.shard
    granted = look_up_allocation(treasury, shard, wallet)
    need = int(command.given) - granted.given_units
    missing, is_change = None, False
    if need > 0:
        rest = free_units(treasury, wallet) - _cost_units(granted, need)
        if rest < 0:
            missing = _recall(treasury, wallet, -rest, except_shard=shard)
        else:
            granted = _allocation_of(treasury, shard, wallet)
            granted.given_units += need + rest // 2
            is_change = True
            assert free_units(treasury, wallet) >= 0, "no unit is granted twice"
    given = AllocationTotal(wallet, total_of(granted.given_units))
    return TreasuryOutcome(GrantResult(given, missing), is_change)


def _cost_units(granted: Allocation, units: int) -> int:
    """Return what a larger allocation takes from the free units: a grant first covers a debt."""
    return max(granted.units + units, 0) - max(granted.units, 0)


def _take_back(treasury: Treasury, command: TakeBack) -> bool:
    is_change = False
    for returned in command.returned:
        total = int(returned.total)
        if total > look_up_allocation(treasury, command.shard, returned.wallet).returned_units:
            _allocation_of(treasury, command.shard, returned.wallet).returned_units = total
            _update_overdrawn(treasury, returned.wallet)
            is_change = True
    return is_change


def _observe(treasury: Treasury, command: ObserveCollateral) -> bool:
    """Apply a block once all its parts arrived in order and every shard has observed it.

    A late or repeated part changes nothing. A first part replaces parts that wait: the reader before
    it stopped halfway, and this one starts again.
    """
    seen = {ShardSeen(each, command.block_number, command.block_hash) for each in treasury.shards}
    if command.number != treasury.observations + 1 or set(command.shards) != seen:
        return False
    before = [] if command.part == 1 else treasury.observed_parts
    if [_place_of(part) for part in before] != _places_before(command):
        return False
    treasury.observed_parts = [*before, command]
    if command.part == command.parts:
        parts, treasury.observed_parts = treasury.observed_parts, []
        _apply_observation(treasury, parts)
    return True


def _place_of(command: ObserveCollateral) -> tuple[int, ...]:
    return (command.at_ms, command.part, command.parts)


def _places_before(command: ObserveCollateral) -> list[tuple[int, ...]]:
    return [(command.at_ms, part, command.parts) for part in range(1, command.part)]


def _apply_observation(treasury: Treasury, parts: list[ObserveCollateral]) -> None:
    """Set balances and settled totals together: the balances include the settled trades."""
    touched: dict[Address, None] = {}
    for command in parts:
        for balance in command.balances:
            assert balance.asset == COLLATERAL, "tokens belong to one shard and need no treasury"
            treasury.confirmed_by_wallet[balance.wallet] = balance.units
            touched[balance.wallet] = None
        for seen in command.allowances:
            allowances = treasury.allowances_by_wallet.setdefault(seen.wallet, {})
            allowances[seen.exchange] = seen.units
            touched[seen.wallet] = None
        for settled in command.settled:
            granted = _allocation_of(treasury, settled.shard, settled.wallet)
            granted.settled_units = int(settled.total)
            touched[settled.wallet] = None
    treasury.observations += 1
    treasury.observed_block = parts[-1].block_number
    treasury.observed_hash = parts[-1].block_hash
    for wallet in touched:
        _update_overdrawn(treasury, wallet)


def _allocation_of(treasury: Treasury, shard: str, wallet: Address) -> Allocation:
    """Return the treasury's side of an allocation, a new one when there is none."""
    assert shard in treasury.shards, "only an admitted shard has allocations"
    return treasury.allocations_by_wallet.setdefault(wallet, {}).setdefault(shard, Allocation())


def _update_overdrawn(treasury: Treasury, wallet: Address) -> None:
    """Record whether the wallet has less on the chain than was granted."""
    if free_units(treasury, wallet) < 0:
        treasury.overdrawn[wallet] = None
    else:
        treasury.overdrawn.pop(wallet, None)


def _recall(treasury: Treasury, wallet: Address, units: int, except_shard: str = "") -> Recall:
    assert units > 0
    holders = [
        AllocationHolder(shard, granted.units, granted.returned_units)
        for shard, granted in treasury.allocations_by_wallet.get(wallet, {}).items()
        if granted.units > 0 and shard != except_shard
    ]
    holders.sort(key=lambda holder: (-holder.units, holder.shard))
    return Recall(wallet, units, tuple(holders))
