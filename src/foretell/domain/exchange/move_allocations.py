"""Changes of a shard's allocations by the treasury and by settled trades.

The units of an allocation are the ledger's confirmed collateral, so an order needs no request to
the treasury while they suffice. What orders or unsettled trades need is never returned.
"""

from collections.abc import Iterable
from typing import assert_never

from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.commands import JoinTreasury, ReturnAllocation, TakeAllocations
from foretell.domain.exchange.delays.delayed_orders import close_delayed, delayed_of
from foretell.domain.exchange.effects import AllocationMoved, CloseReason, Effect, TreasuryJoined
from foretell.domain.exchange.ledger import COLLATERAL, Account, Move
from foretell.domain.exchange.state import State
from foretell.domain.values.hexadecimal import Address


def move_allocations(
    state: State, command: JoinTreasury | TakeAllocations | ReturnAllocation
) -> tuple[AllocationTotal | None, list[Effect]]:
    """Apply a command of the treasury's coordinator; the reply to a return is its total."""
    match command:
        case JoinTreasury():
            return None, _join(state, command)
        case TakeAllocations():
            return None, _take(state, command)
        case ReturnAllocation():
            return _return(state, command)
        case _:
            assert_never(command)


def returnable_units(account: Account) -> int:
    """Return the units of an allocation that neither orders nor unsettled trades need.

    Credits of unsettled trades do not count: another shard could spend them before they settle.
    """
    return max(account.confirmed_units - account.debit_units - account.reserved_units, 0)


def settle_allocations(state: State, moves: Iterable[Move], sign: int, at_ms: int) -> list[Effect]:
    """Add the moves that the chain now has to the allocations (sign 1), or remove them after a reorg (-1)."""
    assert sign in {-1, 1}
    effects: list[Effect] = []
    for wallet, asset, units in moves:
        if asset == COLLATERAL:
            state.allocations.allocation_of(wallet).settled_units += sign * units
            state.ledger.account(wallet, COLLATERAL).confirmed_units += sign * units
            effects.append(_moved(state, wallet, at_ms))
    return effects


def _join(state: State, command: JoinTreasury) -> list[Effect]:
    """Take collateral from a treasury from now on; a repeated command changes nothing.

    Collateral that the chain confirmed here until now counts as settled, so the treasury counts it
    with the trades of the next block that both observe.
    """
    allocations = state.allocations
    assert command.shard, "a shard that joins has a name"
    if allocations.is_joined:
        assert allocations.shard == command.shard, "a shard keeps its name"
        return []
    allocations.shard = command.shard
    effects: list[Effect] = [TreasuryJoined(command.shard, command.at_ms)]
    for wallet, asset in state.ledger.accounts_held():
        if asset == COLLATERAL:
            account = state.ledger.look_up(wallet, COLLATERAL)
            allocations.allocation_of(wallet).settled_units = account.confirmed_units
            effects.append(_moved(state, wallet, command.at_ms))
    return effects


def _take(state: State, command: TakeAllocations) -> list[Effect]:
    """Add what these totals have more than the known ones."""
    assert state.allocations.shard == command.shard, (
        "an allocation goes to the shard that it was given to"
    )
    effects: list[Effect] = []
    for given in command.given:
        units = int(given.total) - state.allocations.look_up(given.wallet).given_units
        if units > 0:
            state.allocations.allocation_of(given.wallet).given_units += units
            state.ledger.account(given.wallet, COLLATERAL).confirmed_units += units
            effects.append(_moved(state, given.wallet, command.at_ms))
    return effects


def _return(state: State, command: ReturnAllocation) -> tuple[AllocationTotal, list[Effect]]:
    """Return units up to the requested total, and reply with the total returned.

    Only free units are returned; a forced return closes delayed orders and then the newest ones until
    enough is free.
    """
    assert state.allocations.shard == command.shard, (
        "a return goes to the shard that has the allocation"
    )
    wallet, effects = command.wallet, list[Effect]()
    wanted = int(command.returned) - state.allocations.look_up(wallet).returned_units
    account = state.ledger.look_up(wallet, COLLATERAL)
    if command.is_forced:
        effects += [
            close_delayed(state, delayed, CloseReason.UNDERFUNDED, command.at_ms)
            for delayed in delayed_of(state, wallet, COLLATERAL)
            if returnable_units(account) < wanted
        ]
        effects += _close_orders(state, account, wanted, command.at_ms)
    units = min(wanted, returnable_units(account))
    if units > 0:
        state.allocations.allocation_of(wallet).returned_units += units
        account.confirmed_units -= units
        assert account.confirmed_units >= account.debit_units + account.reserved_units
        effects.append(_moved(state, wallet, command.at_ms))
    returned = total_of(state.allocations.look_up(wallet).returned_units)
    return AllocationTotal(wallet, returned), [*effects, *state.book_changes(command.at_ms)]


def _close_orders(state: State, account: Account, wanted_units: int, at_ms: int) -> list[Effect]:
    return [
        state.close(order, CloseReason.UNDERFUNDED, at_ms)
        for order in account.orders()
        if returnable_units(account) < wanted_units
    ]


def _moved(state: State, wallet: Address, at_ms: int) -> AllocationMoved:
    return AllocationMoved(wallet, *state.allocations.look_up(wallet).totals(), at_ms)
