"""What a treasury and settled trades do to a shard's slices of its wallets' collateral.

A slice's units are the ledger's confirmed collateral, so placing an order asks nobody while they
suffice. What is given back is never what an order or an unsettled trade needs.
"""

from typing import assert_never

from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.commands import JoinTreasury, ReturnAllocation, TakeAllocations
from foretell.domain.exchange.effects import AllocationMoved, CloseReason, Effect, TreasuryJoined
from foretell.domain.exchange.ledger import COLLATERAL, Account
from foretell.domain.exchange.state import State, UnsettledTrade
from foretell.domain.values.hexadecimal import Address


def move_allocations(
    state: State, command: JoinTreasury | TakeAllocations | ReturnAllocation
) -> tuple[AllocationTotal | None, list[Effect]]:
    """Do what the treasury's carrier says; a return is answered with its total."""
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
    """Return what of a slice neither orders nor unsettled trades need.

    What a trade is still to bring is not counted: another shard could spend it before it is there.
    """
    return max(account.confirmed_units - account.debit_units - account.reserved_units, 0)


def settle_allocations(state: State, trade: UnsettledTrade, sign: int, at_ms: int) -> list[Effect]:
    """Change the slices by a trade that the chain now holds (sign 1), or no longer holds (-1)."""
    effects: list[Effect] = []
    for wallet, asset, units in trade.moves:
        if asset == COLLATERAL:
            state.allocations.allocation_of(wallet).settled_units += sign * units
            state.ledger.account(wallet, COLLATERAL).confirmed_units += sign * units
            effects.append(_moved(state, wallet, at_ms))
    return effects


def _join(state: State, command: JoinTreasury) -> list[Effect]:
    """Take collateral from a treasury from now on, told twice as good as once.

    What the chain confirmed here until now counts as settled, so the treasury hears of it with the
    trades of the next block that both observe.
    """
    allocations = state.allocations
    assert command.shard, "a shard that joins has a name"
    if allocations.is_joined:
        assert allocations.shard == command.shard, "a shard has one name for ever"
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
    """Add what of these totals is new here."""
    assert state.allocations.shard == command.shard, (
        "a slice goes to the shard that it was given to"
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
    """Give back up to the total asked for, and say what was given back in all.

    Only what is free goes; a forced return closes the newest orders until enough is.
    """
    assert state.allocations.shard == command.shard, (
        "a return is asked of the shard that has the slice"
    )
    wallet, effects = command.wallet, list[Effect]()
    wanted = int(command.returned) - state.allocations.look_up(wallet).returned_units
    account = state.ledger.look_up(wallet, COLLATERAL)
    if command.is_forced:
        effects += _close_orders(state, account, wanted, command.at_ms)
    units = min(wanted, returnable_units(account))
    if units > 0:
        state.allocations.allocation_of(wallet).returned_units += units
        account.confirmed_units -= units
        effects.append(_moved(state, wallet, command.at_ms))
    returned = total_of(state.allocations.look_up(wallet).returned_units)
    return AllocationTotal(wallet, returned), [*effects, *state.book_changes(command.at_ms)]


def _close_orders(state: State, account: Account, wanted_units: int, at_ms: int) -> list[Effect]:
    return [
        state.close(order, CloseReason.UNDERFUNDED, at_ms)
        for order in reversed(list(account.orders.values()))
        if returnable_units(account) < wanted_units
    ]


def _moved(state: State, wallet: Address, at_ms: int) -> AllocationMoved:
    return AllocationMoved(wallet, *state.allocations.look_up(wallet).totals(), at_ms)
