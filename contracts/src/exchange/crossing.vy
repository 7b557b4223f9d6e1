# pragma version 0.4.3
"""
@title Crossing
@license Apache-2.0
@notice Which two orders may meet, and what a fill of the resting one gives and takes. All of it is
        exact: prices are compared by multiplying across, never by dividing.
"""

from exchange import orders


@internal
@pure
def _taking(
    is_direct: bool,
    is_buy: bool,
    makes: uint256,
    takes: uint256,
    maker_makes: uint256,
    maker_takes: uint256,
    making: uint256,
) -> uint256:
    """
    @dev What the maker gets for this part of its maker amount, rounded up: a maker never gets less
         than its price. The first four are of the taker. Amounts are below 2^128 and no price is above
         one, so that nothing here overflows. Opposite sides: the bid is at least the ask. Both BUY: the
         prices add up to at least one. Both SELL: to at most one.
    """
    crosses: bool = False
    if is_direct:
        crosses = unsafe_mul(makes, maker_makes) >= unsafe_mul(takes, maker_takes)
    elif is_buy:
        crosses = unsafe_mul(makes, maker_takes) >= unsafe_mul(
            takes, unsafe_sub(maker_takes, maker_makes)
        )
    else:
        crosses = unsafe_mul(takes, maker_makes) <= unsafe_mul(
            makes, unsafe_sub(maker_makes, maker_takes)
        )
    if not crosses:
        raw_revert(method_id("NotCrossing()"))
    return unsafe_div(
        unsafe_add(unsafe_mul(making, maker_takes), unsafe_sub(maker_makes, 1)), maker_makes
    )


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
