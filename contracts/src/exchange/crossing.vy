# pragma version 0.4.3
"""
@title Crossing
@license Apache-2.0
@notice Which two orders may meet, and at which limit. All of it is exact: prices are compared by
        multiplying across, never by dividing.
"""

from exchange import orders


@internal
@pure
def _check_swap(makes: uint256, takes: uint256, maker_makes: uint256, maker_takes: uint256):
    """
    @dev Opposite sides: the bid is at least the ask. The first two amounts are the taker's. They are
         below 2^128, so that no product overflows.
    """
    if unsafe_mul(makes, maker_makes) < unsafe_mul(takes, maker_takes):
        raw_revert(method_id("NotCrossing()"))


@internal
@pure
def _check_sets(
    is_buy: bool, makes: uint256, takes: uint256, maker_makes: uint256, maker_takes: uint256
):
    """
    @dev Both BUY: the prices add up to at least one. Both SELL: to at most one. The amounts are those of
         `_check_swap`; no price is above one, so that no difference is negative.
    """
    crosses: bool = False
    if is_buy:
        crosses = unsafe_mul(makes, maker_takes) >= unsafe_mul(
            takes, unsafe_sub(maker_takes, maker_makes)
        )
    else:
        crosses = unsafe_mul(takes, maker_makes) <= unsafe_mul(
            makes, unsafe_sub(maker_makes, maker_takes)
        )
    if not crosses:
        raw_revert(method_id("NotCrossing()"))


@internal
@pure
def _check_limit(taker: orders.Terms, taker_fill: uint256, paid: uint256, received: uint256):
    """
    @dev The taker pays no more than the part that is taken off its order, at no worse a price than
         its limit, and gets what that part is worth at the limit.
    """
    if paid > taker_fill:
        raw_revert(method_id("TakerFillExceeded()"))
    if received > orders.AMOUNT_UNITS_MAX:
        raw_revert(method_id("AmountTooLarge()"))
    # Amounts are below 2^128, so that no product overflows.
    if unsafe_mul(received, taker.makerAmount) < unsafe_mul(paid, taker.takerAmount):
        raw_revert(method_id("WorseThanLimit()"))
    if received < unsafe_div(unsafe_mul(taker_fill, taker.takerAmount), taker.makerAmount):
        raw_revert(method_id("TooLittleTokensReceived()"))
