# pragma version 0.4.3
"""
@title Cancelling
@license Apache-2.0
@notice A maker, or the owner who signs for its Safe or proxy wallet, ends an order. No pause stops this, and it
        needs neither a signature nor an order that is still valid. The tuple of the ecosystem's v1
        exchange is taken too; it names no profile, so it ends the order in every v1 profile.
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


# Decoded by hand, each order where it lies: signatures are not looked at.
# @notice End an order of the caller's.
# @param order The order; its signature may be empty
# abi: function cancelOrder(Order order)
# @notice End orders of the caller's, 20 at most; those that had ended before are passed over.
# @param cancelled The orders; their signatures may be empty
# abi: function cancelOrders(Order[] cancelled)
CANCEL_ORDER: constant(bytes4) = method_id(
    "cancelOrder((uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,uint256,bytes32,bytes32,uint8,uint8,uint8,bytes))",
    output_type=bytes4,
)
CANCEL_ORDERS: constant(bytes4) = method_id(
    "cancelOrders((uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,uint256,bytes32,bytes32,uint8,uint8,uint8,bytes)[])",
    output_type=bytes4,
)
# abi: struct OrderV1(uint256 salt, address maker, address signer, address taker, uint256 tokenId, uint256 makerAmount, uint256 takerAmount, uint256 expiration, uint256 nonce, uint256 feeRateBps, uint8 side, uint8 signatureType, bytes signature)
# @notice End an order of the caller's in every v1 profile.
# @param order The order in the tuple of the ecosystem; its signature may be empty
# abi: function cancelOrder(OrderV1 order)
# @notice End orders of the caller's in every v1 profile, 20 at most.
# @param cancelled The orders in the tuple of the ecosystem; their signatures may be empty
# abi: function cancelOrders(OrderV1[] cancelled)
CANCEL_ORDER_V1: constant(bytes4) = method_id(
    "cancelOrder((uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,uint8,uint8,bytes))",
    output_type=bytes4,
)
CANCEL_ORDERS_V1: constant(bytes4) = method_id(
    "cancelOrders((uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,uint8,uint8,bytes)[])",
    output_type=bytes4,
)


@internal
def _cancel_one(is_v1: bool):
    """
    @dev `cancelOrder`, in either tuple: the order's place is the first argument.
    """
    if not self._cancel_at(orders._argument(), is_v1):
        raw_revert(method_id("OrderFilledOrCancelled()"))


@internal
def _cancel_many(is_v1: bool):
    """
    @dev `cancelOrders`, in either tuple. Those that had ended before are passed over, so that a fill in
         the last moment does not save the rest.
    """
    at: uint256 = orders._argument()
    count: uint256 = orders._word(at)
    if count > orders.ORDERS_MAX:
        raw_revert(method_id("TooManyOrders()"))
    at += orders.WORD
    for i: uint256 in range(count, bound=orders.ORDERS_MAX):
        self._cancel_at(at + orders._word(at + orders.WORD * i), is_v1)


@internal
def _cancel_at(at: uint256, is_v1: bool) -> bool:
    """
    @dev The order of a tuple at this place of the calldata; the ecosystem's names no profile.
    """
    if not is_v1:
        return self._cancel(orders._fields_at(at))
    order: orders.Fields = orders._fields_at_v1(at)
    is_cancelled: bool = False
    for i: uint256 in range(profiles.PROFILE_COUNT, bound=profiles.PROFILES_MAX):
        order.profile = convert(i, uint8)
        if profiles._is_v1(order.profile) and self._cancel(order):
            is_cancelled = True
    return is_cancelled


@internal
def _cancel(order: orders.Fields) -> bool:
    if not signatures._is_owner(msg.sender, order):
        raw_revert(method_id("NotOwner()"))
    order_hash: bytes32 = profiles._order_hash(order)
    is_cancelled: bool = status._cancel(order_hash)
    if is_cancelled:
        log OrderCancelled(orderHash=order_hash)
    return is_cancelled
