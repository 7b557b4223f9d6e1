"""Delayed orders: their closing, and the lists of them.

A market may have a delay. An order that crosses its book is then held for that time: it is in no book, it
reserves what it may cost, and it can be canceled. Its release places it as if it arrived then.
"""

from foretell.domain.exchange.commands import DelayMarket, ReleaseOrder
from foretell.domain.exchange.decision import ClosedOrder, order_closed
from foretell.domain.exchange.effects import CloseReason, OrderClosed
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.state import State
from foretell.domain.exchange.waiting.delays import DelayedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32


def delay_market(state: State, command: DelayMarket) -> bool:
    """Set the delay of a market, zero for none; return whether that changed it.

    Orders that are held keep their time.
    """
    assert command.delay_ms >= 0
    delays, condition_id = state.delays.ms_by_market, command.condition_id
    if delays.get(condition_id, 0) == command.delay_ms:
        return False
    if command.delay_ms:
        delays[condition_id] = command.delay_ms
    else:
        del delays[condition_id]
    return True


def delayed_of(state: State, wallet: Address, asset: AssetId | None = None) -> list[DelayedOrder]:
    """Return the delayed orders of a wallet, or those that give one asset, the newest first."""
    return [order for order in state.delays.of(wallet) if asset in {None, order.asset}]


def take_delayed(state: State, order_id: Bytes32) -> DelayedOrder | None:
    """Remove a delayed order and release what it reserved; None if it is not delayed."""
    order = state.delays.take(order_id)
    if order is not None:
        account = state.ledger.account(order.command.order.maker, order.asset)
        account.reserved_units -= order.need_units
        assert account.reserved_units >= 0
    return order


def close_delayed(
    state: State, order: DelayedOrder, reason: CloseReason, at_ms: int
) -> OrderClosed:
    """Close a delayed order."""
    taken = take_delayed(state, order.command.order_id)
    assert taken is order, "it is delayed"
    return order_closed(closed_delayed(order), reason, at_ms)


def closed_delayed(order: DelayedOrder) -> ClosedOrder:
    """Return what effects need of a delayed order that was closed: nothing of it was matched."""
    command = order.command
    return ClosedOrder(
        command.order_id,
        command.condition_id,
        command.owner,
        command.order.maker,
        order.size_units,
        order.size_units,
    )


def due_releases(state: State, at_ms: int) -> list[ReleaseOrder]:
    """Return the releases that are due, the earliest first."""
    return [
        ReleaseOrder(
            at_ms,
            held.command.order_id,
            held.command.order,
            held.command.order_type,
            held.command.is_post_only,
            held.command.owner,
            held.command.condition_id,
            held.command.is_yes,
            held.command.terms,
            held.command.builder,
        )
        for held in state.delays.due(at_ms)
    ]
