# pragma version 0.4.3
"""
@title Payouts
@license Apache-2.0
@notice The answers to a yes-or-no question, as prices and as what each outcome is paid.
"""

YES_OR_NO_QUERY: constant(bytes32) = (
    0x5945535f4f525f4e4f5f51554552590000000000000000000000000000000000
)

YES: constant(int256) = 10**18
NO: constant(int256) = 0
UNKNOWN: constant(int256) = 5 * 10**17


@internal
@pure
def _payouts(price: int256) -> DynArray[uint256, 2]:
    """
    @dev The first outcome's numerator and the second's.
    """
    if price == YES:
        return [1, 0]
    if price == NO:
        return [0, 1]
    if price != UNKNOWN:
        raw_revert(method_id("InvalidPrice()"))
    return [1, 1]
