# pragma version 0.4.3
"""
@title Sweeping
@license Apache-2.0
@notice Between two calls the adapter holds nothing. What somebody sends to it by mistake goes where
        conversions' fees go.
"""

from interfaces import IERC20
from neg_risk import holdings

uses: holdings

event Swept:
    token: indexed(address)
    receiver: indexed(address)
    amount: uint256


@external
@nonreentrant
def sweep(token: address) -> uint256:
    """
    @notice Send the vault all that the adapter holds of an ERC-20 token, for anybody. The lock keeps it
            out of a split, a merge or a conversion, when the adapter holds what passes through it.
    @param token The token: the collateral, its wrapping or any other
    @return How much there was
    """
    amount: uint256 = staticcall IERC20(token).balanceOf(self)
    if amount != 0:
        if not extcall IERC20(token).transfer(
            holdings.VAULT, amount, default_return_value=True
        ):
            raw_revert(method_id("TransferFailed()"))
        log Swept(token=token, receiver=holdings.VAULT, amount=amount)
    return amount
