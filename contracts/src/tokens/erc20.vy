# pragma version 0.4.3
"""
@title ERC-20
@license Apache-2.0
@notice Balances, allowances and transfers of a token. Who makes tokens, and what their name is, is for
        the contract to say.
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


totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


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


@internal
def _mint(to: address, amount: uint256):
    self.totalSupply += amount
    self.balanceOf[to] += amount
    log Transfer(sender=empty(address), receiver=to, amount=amount)


@internal
def _burn(holder: address, amount: uint256):
    held: uint256 = self.balanceOf[holder]
    if held < amount:
        raw_revert(method_id("InsufficientBalance()"))
    self.balanceOf[holder] = unsafe_sub(held, amount)
    self.totalSupply -= amount
    log Transfer(sender=holder, receiver=empty(address), amount=amount)


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
