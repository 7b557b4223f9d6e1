# pragma version 0.4.3
"""
@title Status
@license Apache-2.0
@notice What is left of each order, by its hash, in one slot: the lowest bit says that the order is
        done, the rest is what remains of its maker amount. An empty slot is an order not seen yet.
"""

DONE: constant(uint256) = 1

slots: HashMap[bytes32, uint256]


@external
@view
def orderStatus(orderHash: bytes32) -> (bool, uint256):
    """
    @notice The status of an order.
    @param orderHash The order's hash
    @return Whether it is filled or cancelled, and what remains of its maker amount; zero also when
            the order was not seen yet
    """
    return self._status(orderHash)


@external
@view
def getOrderStatus(orderHash: bytes32) -> (bool, uint256):
    """
    @notice The status of an order, by the name that the ecosystem's clients call.
    @param orderHash The order's hash
    @return What `orderStatus` returns
    """
    return self._status(orderHash)


@internal
@view
def _status(order_hash: bytes32) -> (bool, uint256):
    slot: uint256 = self.slots[order_hash]
    return slot & DONE != 0, slot >> 1


@internal
@view
def _remaining(order_hash: bytes32, maker_amount: uint256) -> uint256:
    slot: uint256 = self.slots[order_hash]
    if slot == 0:
        return maker_amount
    return slot >> 1


@internal
def _fill(order_hash: bytes32, slot: uint256, maker_amount: uint256, making: uint256):
    """
    @dev Take this much off the order, whose slot the caller has read.
    """
    if slot & DONE != 0:
        raw_revert(method_id("OrderFilledOrCancelled()"))
    left: uint256 = maker_amount
    if slot != 0:
        left = slot >> 1
    # One comparison for both, as zero less one is the largest number.
    if unsafe_sub(making, 1) >= left:
        if making == 0:
            raw_revert(method_id("ZeroAmount()"))
        raw_revert(method_id("MakingGtRemaining()"))
    left = unsafe_sub(left, making)
    if left == 0:
        self.slots[order_hash] = DONE
    else:
        self.slots[order_hash] = left << 1


@internal
def _cancel(order_hash: bytes32) -> bool:
    """
    @dev End the order; False when it had ended before.
    """
    if self.slots[order_hash] & DONE != 0:
        return False
    self.slots[order_hash] = DONE
    return True
