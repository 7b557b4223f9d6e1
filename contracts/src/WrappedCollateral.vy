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
from tokens import erc20

implements: IERC20
implements: IWrappedCollateral
initializes: erc20
exports: (
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.transfer,
    erc20.transferFrom,
    erc20.approve,
)

name: public(constant(String[18])) = "Wrapped Collateral"
symbol: public(constant(String[4])) = "WCOL"

decimals: public(immutable(uint8))
owner: public(immutable(address))
underlying: public(immutable(address))


@deploy
def __init__(underlying_: address):
    """
    @param underlying_ The real collateral; the deployer owns this token
    """
    owner = msg.sender
    underlying = underlying_
    decimals = staticcall IERC20Details(underlying_).decimals()


@external
def wrap(to: address, amount: uint256):
    """
    @notice Take this much of the owner's collateral, and give `to` as much of this token.
    @param to Who gets them
    @param amount How much, in base units
    """
    self._check_owner()
    erc20._mint(to, amount)
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
    erc20._burn(msg.sender, amount)
    self._pay(to, amount)


@external
def mint(amount: uint256):
    """
    @notice Make tokens with nothing under them, for the owner's conversions.
    @param amount How much, in base units
    """
    self._check_owner()
    erc20._mint(msg.sender, amount)


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
def _pay(to: address, amount: uint256):
    if not extcall IERC20(underlying).transfer(to, amount, default_return_value=True):
        raw_revert(method_id("TransferFailed()"))
