# pragma version 0.4.3
"""
@title CollateralToken
@license Apache-2.0
@notice The collateral of a sandbox: an ERC-20 with six decimals that its minter makes at will.
        On a public chain the collateral is an existing token, and this one is not deployed.
"""

from interfaces import IERC20
from tokens import erc20

implements: IERC20
initializes: erc20
exports: (
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.transfer,
    erc20.transferFrom,
    erc20.approve,
)

decimals: public(constant(uint8)) = 6
minter: public(immutable(address))

name: public(String[64])
symbol: public(String[16])


@deploy
def __init__(name_: String[64], symbol_: String[16], minter_: address):
    self.name = name_
    self.symbol = symbol_
    minter = minter_


@external
def mint(to: address, amount: uint256):
    """
    @notice Make tokens, for the minter alone.
    @param to Who gets them
    @param amount How much, in base units
    """
    if msg.sender != minter:
        raw_revert(method_id("NotMinter()"))
    if to == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    erc20._mint(to, amount)
