# pragma version 0.4.3
"""
@title CollateralToken
@license Apache-2.0
@notice The collateral of a sandbox: an ERC-20 with six decimals that its minter makes at will.
        On a public chain the collateral is an existing token, and this one is not deployed.
"""

from interfaces import IERC20

implements: IERC20

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


event Approval:
    owner: indexed(address)
    spender: indexed(address)
    amount: uint256


decimals: public(constant(uint8)) = 6
minter: public(immutable(address))

name: public(String[64])
symbol: public(String[16])
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


@deploy
def __init__(name_: String[64], symbol_: String[16], minter_: address):
    self.name = name_
    self.symbol = symbol_
    minter = minter_


@external
def transfer(to: address, amount: uint256) -> bool:
    """
    @notice Give the caller's tokens to `to`.
    @param to Who gets them
    @param amount How much, in base units
    @return True
    """
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(sender: address, to: address, amount: uint256) -> bool:
    """
    @notice Give the sender's tokens to `to`, within what it allowed the caller.
            The largest allowance never shrinks.
    @param sender Whose tokens they are
    @param to Who gets them
    @param amount How much, in base units
    @return True
    """
    allowed: uint256 = self.allowance[sender][msg.sender]
    if allowed != max_value(uint256):
        if allowed < amount:
            raw_revert(method_id("InsufficientAllowance()"))
        self.allowance[sender][msg.sender] = unsafe_sub(allowed, amount)
    self._move(sender, to, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    """
    @notice Allow the spender to move this much of the caller's tokens.
    @param spender Who may move them
    @param amount How much, in base units
    @return True
    """
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, amount=amount)
    return True


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
    self.totalSupply += amount
    self.balanceOf[to] += amount
    log Transfer(sender=empty(address), receiver=to, amount=amount)


@internal
def _move(sender: address, to: address, amount: uint256):
    if to == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    held: uint256 = self.balanceOf[sender]
    if held < amount:
        raw_revert(method_id("InsufficientBalance()"))
    self.balanceOf[sender] = unsafe_sub(held, amount)
    self.balanceOf[to] += amount
    log Transfer(sender=sender, receiver=to, amount=amount)
