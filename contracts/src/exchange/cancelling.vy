# pragma version 0.4.3
"""
@title Cancelling
@license Apache-2.0
@notice A maker, or the owner who signs for its Safe, ends an order. No pause stops this, and it
        needs neither a signature nor an order that is still valid.
"""

from exchange import orders
from exchange import profiles
from exchange import signatures
from exchange import status

uses: profiles
uses: signatures
uses: status

event OrderCancelled:
    orderHash: indexed(bytes32)


@external
@nonreentrant
def cancelOrder(order: orders.Order):
    """
    @notice End an order of the caller's.
    """
    if not self._cancel(order):
        raw_revert(method_id("OrderFilledOrCancelled()"))


@external
@nonreentrant
def cancelOrders(cancelled: DynArray[orders.Order, orders.ORDERS_MAX]):
    """
    @notice End orders of the caller's; those that had ended before are passed over, so that a
            fill in the last moment does not save the rest.
    """
    for order: orders.Order in cancelled:
        self._cancel(order)


@internal
def _cancel(order: orders.Order) -> bool:
    if not signatures._is_owner(msg.sender, order):
        raw_revert(method_id("NotOwner()"))
    order_hash: bytes32 = profiles._order_hash(order)
    is_cancelled: bool = status._cancel(order_hash)
    if is_cancelled:
        log OrderCancelled(orderHash=order_hash)
    return is_cancelled
