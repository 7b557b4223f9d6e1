# pragma version 0.4.3
"""
@title Fees
@license Apache-2.0
@notice A fee is taken from what an order receives: tokens for a BUY, collateral for a SELL. The
        operator says how much, within what the maker signed (v1: basis points, symmetric around
        one half) or what the admin allows (v2: basis points of the proceeds).
"""

from access import ownership
from exchange import orders

uses: ownership

event FeeCharged:
    receiver: indexed(address)
    tokenId: uint256
    amount: uint256


event FeeReceiverChanged:
    receiver: indexed(address)


event MaxFeeRateChanged:
    maxFeeRateBps: uint256


BPS: constant(uint256) = 10_000
FEE_RATE_BPS_MAX: constant(uint256) = 1_000

feeReceiver: public(address)
maxFeeRateBps: public(uint256)


@deploy
def __init__(receiver: address):
    self._set_receiver(receiver)


@external
def setFeeReceiver(receiver: address):
    """
    @notice Send the fees to another account.
    """
    ownership._check_admin()
    self._set_receiver(receiver)


@external
def setMaxFeeRateBps(rateBps: uint256):
    """
    @notice Allow fees on v2 orders up to this part of what they receive.
    """
    ownership._check_admin()
    self._check_rate(rateBps)
    self.maxFeeRateBps = rateBps
    log MaxFeeRateChanged(maxFeeRateBps=rateBps)


@external
@view
def feeRateBpsMax() -> uint256:
    """
    @notice The highest rate that an order may sign or the admin may allow.
    """
    return FEE_RATE_BPS_MAX


@internal
def _set_receiver(receiver: address):
    # What the exchange paid itself, nobody could ever get out.
    if receiver == empty(address) or receiver == self:
        raw_revert(method_id("InvalidFeeReceiver()"))
    self.feeReceiver = receiver
    log FeeReceiverChanged(receiver=receiver)


@internal
@pure
def _check_rate(rate_bps: uint256):
    if rate_bps > FEE_RATE_BPS_MAX:
        raw_revert(method_id("FeeTooHigh()"))


@internal
def _charge(order: orders.Terms, given: uint256, received: uint256, fee: uint256):
    """
    @dev Check a fee and announce it; it is held back where the assets move.
         Rounded down, which favours the one who pays the fee. `given` and `received` are what the
         order gives and gets in this match; a token never costs more than one.
    """
    most: uint256 = 0
    if not order.isV1:
        most = received * self.maxFeeRateBps // BPS
    elif not order.isBuy:
        most = order.feeRateBps * min(received, given - received) // BPS
    elif given <= received - given:
        most = order.feeRateBps * received // BPS
    else:
        most = order.feeRateBps * (received - given) * received // (given * BPS)
    if fee > most:
        raw_revert(method_id("FeeExceedsMaxRate()"))
    token: uint256 = order.tokenId if order.isBuy else 0
    log FeeCharged(receiver=self.feeReceiver, tokenId=token, amount=fee)
