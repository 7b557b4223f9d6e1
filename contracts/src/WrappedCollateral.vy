# pragma version 0.4.3
"""
@title WrappedCollateral
@license Apache-2.0
@notice The collateral of neg-risk positions: an ERC-20 over the real one, which the neg-risk
        adapter alone makes. Anybody who holds it changes it back, one for one. What the adapter
        mints for a conversion has nothing under it, and needs nothing: it lies under No positions
        that the adapter has put where nobody can redeem them.
"""

from interfaces import IERC20
from interfaces import IERC20Details
from interfaces import IWrappedCollateral

implements: IERC20
implements: IWrappedCollateral

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    amount: uint256


event Approval:
    owner: indexed(address)
    spender: indexed(address)
    amount: uint256


name: public(constant(String[18])) = "Wrapped Collateral"
symbol: public(constant(String[4])) = "WCOL"

decimals: public(immutable(uint8))
owner: public(immutable(address))
underlying: public(immutable(address))

totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


@deploy
def __init__(underlying_: address):
    """
    @param underlying_ The real collateral; the deployer owns this token
    """
    owner = msg.sender
    underlying = underlying_
    decimals = staticcall IERC20Details(underlying_).decimals()


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
def wrap(to: address, amount: uint256):
    """
    @notice Take this much of the owner's collateral, and give `to` as much of this token.
    @param to Who gets them
    @param amount How much, in base units
    """
    self._check_owner()
    self._mint(to, amount)
    if not extcall IERC20(underlying).transferFrom(
        msg.sender, self, amount, default_return_value=True
    ):
        raw_revert(method_id("TransferFailed()"))


@external
def unwrap(to: address, amount: uint256):
    """
    @notice Take this much of the caller's tokens out of the world, and give `to` the collateral.
    @param to Who gets the collateral
    @param amount How much, of the caller's
    """
    held: uint256 = self.balanceOf[msg.sender]
    if held < amount:
        raw_revert(method_id("InsufficientBalance()"))
    self.balanceOf[msg.sender] = unsafe_sub(held, amount)
    self.totalSupply -= amount
    log Transfer(sender=msg.sender, receiver=empty(address), amount=amount)
    self._pay(to, amount)


@external
def mint(amount: uint256):
    """
    @notice Make tokens with nothing under them, for the owner's conversions.
    @param amount How much, in base units
    """
    self._check_owner()
    self._mint(msg.sender, amount)


@external
def release(to: address, amount: uint256):
    """
    @notice Pay out collateral that lies under nothing that can be redeemed, for the owner.
    @param to Who gets the collateral
    @param amount How much, in base units
    """
    self._check_owner()
    self._pay(to, amount)


@internal
@view
def _check_owner():
    if msg.sender != owner:
        raw_revert(method_id("NotOwner()"))


@internal
def _mint(to: address, amount: uint256):
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


@internal
def _pay(to: address, amount: uint256):
    if not extcall IERC20(underlying).transfer(to, amount, default_return_value=True):
        raw_revert(method_id("TransferFailed()"))
