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
from exchange import parameters

uses: ownership
uses: parameters

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
    word: uint256 = parameters.word
    rate: uint256 = self._max_fee_rate(word)
    word &= ~parameters.LIMITS
    if rateBps <= rate:
        parameters.word = word | (rateBps << parameters.RATE_AT)
        log MaxFeeRateChanged(maxFeeRateBps=rateBps)
        return
    starts_at: uint256 = block.timestamp + RISE_DELAY_S
    parameters.word = (
        word
        | (rate << parameters.RATE_AT)
        | (rateBps << parameters.NEXT_AT)
        | (starts_at << parameters.STARTS_AT)
    )
    log MaxFeeRateAnnounced(maxFeeRateBps=rateBps, effectiveAt=starts_at)


@external
@view
def feeReceiver() -> address:
    """
    @notice Who gets the fees.
    @return The account
    """
    return self._receiver(parameters.word)


@external
@view
def maxFeeRateBps() -> uint256:
    """
    @notice The limit of fees on v2 orders.
    @return Basis points of what an order receives
    """
    return self._max_fee_rate(parameters.word)


@external
@view
def nextMaxFeeRateBps() -> (uint256, uint256):
    """
    @notice A rise of the limit that was announced.
    @return The basis points, and the second when they begin; zeros when there is none
    """
    word: uint256 = parameters.word
    starts_at: uint256 = (word >> parameters.STARTS_AT) & parameters.STARTS
    if starts_at <= block.timestamp:
        return 0, 0
    return (word >> parameters.NEXT_AT) & parameters.RATE, starts_at


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
def _max_fee_rate(word: uint256) -> uint256:
    """
    @dev The limit on v2 orders. `word` is that of `parameters`.
    """
    starts_at: uint256 = (word >> parameters.STARTS_AT) & parameters.STARTS
    if starts_at == 0 or block.timestamp < starts_at:
        return (word >> parameters.RATE_AT) & parameters.RATE
    return (word >> parameters.NEXT_AT) & parameters.RATE


@internal
@pure
def _receiver(word: uint256) -> address:
    return convert(word & parameters.RECEIVER, address)


@internal
def _set_receiver(receiver: address):
    # What the exchange paid itself, nobody could ever get out.
    if receiver == empty(address) or receiver == self:
        raw_revert(method_id("InvalidFeeReceiver()"))
    parameters.word = parameters.word & ~parameters.RECEIVER | convert(receiver, uint256)
    log FeeReceiverChanged(receiver=receiver)


@internal
@pure
def _check_rate(rate_bps: uint256):
    if rate_bps > FEE_RATE_BPS_MAX:
        raw_revert(method_id("FeeTooHigh()"))


@internal
@pure
def _check(order: orders.Terms, given: uint256, received: uint256, limit: uint256):
    """
    @dev Check the fee of an order, which is held back where the assets move.
         Rounded down, which favours the one who pays the fee. `given` and `received` are what the
         order gives and gets in this match; a token never costs more than one. `limit` is that on v2
         orders. Amounts are below 2^128, so that the product of two does not overflow; that with a
         signed rate may, and then reverts.
    """
    if not order.isV1:
        if order.fee > unsafe_div(unsafe_mul(limit, received), BPS):
            raw_revert(method_id("FeeExceedsMaxRate()"))
        return
    part: uint256 = received
    whole: uint256 = BPS
    if not order.isBuy:
        part = min(received, unsafe_sub(given, received))
    elif given > unsafe_sub(received, given):
        part = unsafe_mul(unsafe_sub(received, given), received)
        whole = unsafe_mul(given, BPS)
    if order.fee > unsafe_div(order.feeRateBps * part, whole):
        raw_revert(method_id("FeeExceedsMaxRate()"))


@internal
def _log_paid(is_v1: bool, receiver: address, asset: uint256, amount: uint256):
    """
    @dev Announce a payment to the fee receiver, in the form of the taker's struct.
    """
    if is_v1:
        log FeeCharged(receiver=receiver, tokenId=asset, amount=amount)
    else:
        raw_log([FEE_CHARGED_V2, convert(receiver, bytes32)], abi_encode(amount))
