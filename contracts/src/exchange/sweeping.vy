# pragma version 0.4.3
"""
@title Sweeping
@license Apache-2.0
@notice Between two calls the exchange holds nothing. What somebody sends to it by mistake has no owner
        here that a contract could find out, so it goes where the fees go.
"""

from interfaces import IERC20
from exchange import fees
from exchange import parameters

uses: parameters

event Swept:
    token: indexed(address)
    receiver: indexed(address)
    amount: uint256


@external
@nonreentrant
def sweep(token: address) -> uint256:
    """
    @notice Send the fee receiver all that the exchange holds of an ERC-20 token, for anybody. The lock
            keeps it out of a match, when the exchange holds what is traded.
    @param token The token, the collateral or any other
    @return How much there was
    """
    amount: uint256 = staticcall IERC20(token).balanceOf(self)
    receiver: address = fees._receiver(parameters.word)
    if amount != 0:
        if not extcall IERC20(token).transfer(receiver, amount, default_return_value=True):
            raw_revert(method_id("TransferFailed()"))
        log Swept(token=token, receiver=receiver, amount=amount)
    return amount
