# pragma version 0.4.3
"""
@title Creation fee
@license Apache-2.0
@notice What a question costs to ask, and between whom it is split: the community pool, which
        rewards those who help to resolve, and the operator, who gets the rest.
"""

from access import ownership
from interfaces import IERC20

uses: ownership

event CreationFeePaid:
    payer: indexed(address)
    communityAmount: uint256
    operatorAmount: uint256


event CreationFeeChanged:
    fee: uint256
    communityShareBps: uint256


event CreationFeeReceiversChanged:
    communityPool: indexed(address)
    operator: indexed(address)


BPS: constant(uint256) = 10_000
# A thousand units of a collateral with six decimals: the admin cannot empty a careless allowance.
CREATION_FEE_MAX: constant(uint256) = 1_000 * 10**6

feeCollateral: public(immutable(address))
creationFee: public(uint256)
communityShareBps: public(uint256)
communityPool: public(address)
feeOperator: public(address)


@deploy
def __init__(
    collateral: address,
    fee: uint256,
    communityShareBps_: uint256,
    communityPool_: address,
    operator: address,
):
    feeCollateral = collateral
    self._set_fee(fee, communityShareBps_)
    self._set_receivers(communityPool_, operator)


@external
def setCreationFee(fee: uint256, communityShareBps_: uint256):
    """
    @notice Change what a question costs, and the community pool's part of it.
    @param fee The fee of a question, in base units of collateral
    @param communityShareBps_ The part of the community pool, in basis points
    """
    ownership._check_admin()
    self._set_fee(fee, communityShareBps_)


@external
def setCreationFeeReceivers(communityPool_: address, operator: address):
    """
    @notice Change who gets the two parts.
    @param communityPool_ Who gets its part
    @param operator Who gets the rest
    """
    ownership._check_admin()
    self._set_receivers(communityPool_, operator)


@internal
def _set_fee(fee: uint256, share_bps: uint256):
    if fee > CREATION_FEE_MAX or share_bps > BPS:
        raw_revert(method_id("FeeTooHigh()"))
    self.creationFee = fee
    self.communityShareBps = share_bps
    log CreationFeeChanged(fee=fee, communityShareBps=share_bps)


@internal
def _set_receivers(community_pool: address, operator: address):
    if community_pool == empty(address) or operator == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    self.communityPool = community_pool
    self.feeOperator = operator
    log CreationFeeReceiversChanged(communityPool=community_pool, operator=operator)


@internal
def _collect(payer: address):
    """
    @dev The community's part is rounded down; both together are the whole fee.
    """
    community: uint256 = self.creationFee * self.communityShareBps // BPS
    operator: uint256 = self.creationFee - community
    self._pay(payer, self.communityPool, community)
    self._pay(payer, self.feeOperator, operator)
    log CreationFeePaid(payer=payer, communityAmount=community, operatorAmount=operator)


@internal
def _pay(payer: address, receiver: address, amount: uint256):
    if amount == 0:
        return
    if not extcall IERC20(feeCollateral).transferFrom(
        payer, receiver, amount, default_return_value=True
    ):
        raw_revert(method_id("TransferFailed()"))
