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


event MaxFeeRateAnnounced:
    maxFeeRateBps: uint256
    effectiveAt: uint256


# A contract cannot declare two events of one name, so that of v2 is written out.
# abi: event FeeCharged(address indexed receiver, uint256 amount)
FEE_CHARGED_V2: constant(bytes32) = keccak256("FeeCharged(address,uint256)")

BPS: constant(uint256) = 10_000
FEE_RATE_BPS_MAX: constant(uint256) = 1_000

# Long enough to cancel what rests: v2 orders do not sign a rate.
RISE_DELAY_S: constant(uint256) = 3 * 24 * 3600

# One word: the rate, the next one, and when that begins. The next one is never lower.
RATE: constant(uint256) = 2**16 - 1
NEXT_AT: constant(uint256) = 16
STARTS_AT: constant(uint256) = 32

# The limit on v2 orders before a match has read it.
UNREAD: constant(uint256) = max_value(uint256)

feeReceiver: public(address)
rates: uint256


@deploy
def __init__(receiver: address):
    self._set_receiver(receiver)


@external
def setFeeReceiver(receiver: address):
    """
    @notice Send the fees to another account, for the admin.
    @param receiver The account, which must be able to receive collateral and tokens
    """
    ownership._check_admin()
    self._set_receiver(receiver)


@external
def setMaxFeeRateBps(rateBps: uint256):
    """
    @notice Allow fees on v2 orders up to this part of what they receive, for the admin. A lower limit
            is in force at once and ends a rise that was announced; a rise is in force three days
            later.
    @param rateBps Basis points
    """
    ownership._check_admin()
    self._check_rate(rateBps)
    rate: uint256 = self._max_fee_rate()
    if rateBps <= rate:
        self.rates = rateBps
        log MaxFeeRateChanged(maxFeeRateBps=rateBps)
        return
    starts_at: uint256 = block.timestamp + RISE_DELAY_S
    self.rates = rate | (rateBps << NEXT_AT) | (starts_at << STARTS_AT)
    log MaxFeeRateAnnounced(maxFeeRateBps=rateBps, effectiveAt=starts_at)


@external
@view
def maxFeeRateBps() -> uint256:
    """
    @notice The limit of fees on v2 orders.
    @return Basis points of what an order receives
    """
    return self._max_fee_rate()


@external
@view
def nextMaxFeeRateBps() -> (uint256, uint256):
    """
    @notice A rise of the limit that was announced.
    @return The basis points, and the second when they begin; zeros when there is none
    """
    starts_at: uint256 = self.rates >> STARTS_AT
    if starts_at <= block.timestamp:
        return 0, 0
    return (self.rates >> NEXT_AT) & RATE, starts_at


@external
@view
def feeRateBpsMax() -> uint256:
    """
    @notice The highest rate that an order may sign or the admin may allow.
    @return Basis points
    """
    return FEE_RATE_BPS_MAX


@external
@view
def getMaxFeeRate() -> uint256:
    """
    @notice The highest rate that an order may sign, by the name that the ecosystem's clients call.
    @return Basis points
    """
    return FEE_RATE_BPS_MAX


@internal
@view
def _max_fee_rate() -> uint256:
    rates: uint256 = self.rates
    starts_at: uint256 = rates >> STARTS_AT
    if starts_at == 0 or block.timestamp < starts_at:
        return rates & RATE
    return (rates >> NEXT_AT) & RATE


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
@view
def _check(
    order: orders.Terms, given: uint256, received: uint256, rate_bps: uint256
) -> uint256:
    """
    @dev Check the fee of an order, which is held back where the assets move.
         Rounded down, which favours the one who pays the fee. `given` and `received` are what the
         order gives and gets in this match; a token never costs more than one. `rate_bps` is the limit
         on v2 orders, or UNREAD, and is returned for the next order. Amounts are below 2^128, so that
         the product of two does not overflow; that with the rate may, and then reverts.
    """
    limit: uint256 = rate_bps
    rate: uint256 = order.feeRateBps
    part: uint256 = received
    whole: uint256 = BPS
    if not order.isV1:
        if limit == UNREAD:
            limit = self._max_fee_rate()
        rate = limit
    else:
        if not order.isBuy:
            part = min(received, unsafe_sub(given, received))
        elif given > unsafe_sub(received, given):
            part = unsafe_mul(unsafe_sub(received, given), received)
            whole = unsafe_mul(given, BPS)
    if order.fee > unsafe_div(rate * part, whole):
        raw_revert(method_id("FeeExceedsMaxRate()"))
    return limit


@internal
def _log_paid(is_v1: bool, asset: uint256, amount: uint256):
    """
    @dev Announce a payment to the fee receiver, in the form of the taker's struct.
    """
    if is_v1:
        log FeeCharged(receiver=self.feeReceiver, tokenId=asset, amount=amount)
    else:
        raw_log([FEE_CHARGED_V2, convert(self.feeReceiver, bytes32)], abi_encode(amount))
