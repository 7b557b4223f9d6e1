# pragma version 0.4.3
"""
@title Preapproval
@license Apache-2.0
@notice A contract that cannot judge signatures approves its orders here, by a call of its own. Such an
        order is of type 3, of a v2 profile, and comes with an empty signature.
"""

from exchange import orders
from exchange import profiles
from exchange import signatures

uses: profiles

event OrderPreapproved:
    orderHash: indexed(bytes32)
    maker: indexed(address)


event OrderPreapprovalInvalidated:
    orderHash: indexed(bytes32)


# Decoded by hand, for the size of the code.
# @notice Approve an order of the caller's in place of a signature, as often as it is filled.
# @param order The order, of type 3, whose maker and signer are the caller
# abi: function preapproveOrder(Order order)
PREAPPROVE: constant(bytes4) = method_id(
    "preapproveOrder((uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,uint256,bytes32,bytes32,uint8,uint8,uint8,bytes))",
    output_type=bytes4,
)

# The maker that approved an order.
approver: HashMap[bytes32, address]


@external
@nonreentrant
def invalidatePreapprovedOrder(orderHash: bytes32):
    """
    @notice Take an approval of the caller's back.
    @param orderHash The order's hash
    """
    if self.approver[orderHash] != msg.sender:
        raw_revert(method_id("NotOwner()"))
    self.approver[orderHash] = empty(address)
    log OrderPreapprovalInvalidated(orderHash=orderHash)


@external
@view
def isPreapproved(orderHash: bytes32) -> bool:
    """
    @notice Whether an order's maker approved it here.
    @param orderHash The order's hash
    @return True until the approval is taken back
    """
    return self._is_preapproved(orderHash)


@internal
@view
def _is_preapproved(order_hash: bytes32) -> bool:
    return self.approver[order_hash] != empty(address)


@internal
def _preapprove():
    """
    @dev `preapproveOrder`: approve an order of the caller's in place of a signature, as often as it is
         filled. It is of type 3, and its maker and signer are the caller.
    """
    order: orders.Fields = orders._fields_at(orders._argument())
    if order.maker != msg.sender:
        raw_revert(method_id("NotOwner()"))
    if order.signer != msg.sender:
        raw_revert(method_id("InvalidSigner()"))
    order_hash: bytes32 = profiles._order_hash(order)
    if order.signatureType != signatures.ERC1271 or profiles._is_v1(order.profile):
        raw_revert(method_id("InvalidSignatureType()"))
    self.approver[order_hash] = msg.sender
    log OrderPreapproved(orderHash=order_hash, maker=msg.sender)
