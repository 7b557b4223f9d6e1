# pragma version 0.4.3
"""
@title BatchSettler
@license Apache-2.0
@notice Settles several matches in one transaction, for the operators of the exchanges, of which this
        contract is an operator itself. Each match is a call of its own with a share of the gas: one
        that fails, whatever it burns, returns or changes, takes nothing from the others. The contract
        holds no assets, no approvals and no storage.
"""

interface IExchange:
    def isOperator(account: address) -> bool: view


event MatchFailed:
    exchange: indexed(address)
    index: uint256
    reason: Bytes[REASON_BYTES_MAX]


# How many matches one call settles.
MATCHES_MAX: constant(uint256) = 20

# The calldata of a match of twenty makers, every signature as long as may be.
MATCH_BYTES_MAX: constant(uint256) = 4_096

# Enough for an error's selector; what a match answers beyond it is never copied.
REASON_BYTES_MAX: constant(uint256) = 32

# A call passes on at most 63 of 64 parts of the gas; the rest is for making it and for its log.
GAS_PARTS: constant(uint256) = 64
CALL_GAS: constant(uint256) = 10_000

EXCHANGE: immutable(address)
NEG_RISK_EXCHANGE: immutable(address)


@deploy
def __init__(exchange: address, negRiskExchange: address):
    """
    @param exchange The exchange of plain conditions
    @param negRiskExchange The exchange of events
    """
    EXCHANGE = exchange
    NEG_RISK_EXCHANGE = negRiskExchange


@external
@view
def matchesMax() -> uint256:
    """
    @notice How many matches one call settles.
    @return The number
    """
    return MATCHES_MAX


@external
@view
def exchanges() -> (address, address):
    """
    @notice Where this contract settles.
    @return The exchange of plain conditions, and that of events
    """
    return EXCHANGE, NEG_RISK_EXCHANGE


@external
@nonreentrant
def settle(
    exchange: address,
    matches: DynArray[Bytes[MATCH_BYTES_MAX], MATCHES_MAX],
    gasLimits: DynArray[uint256, MATCHES_MAX],
) -> uint256:
    """
    @notice Settle matches in their order, for an operator of the exchange. A match that fails is
            logged and passed over.
    @param exchange One of the two exchanges
    @param matches The calldata of `matchPacked` or of `matchOrders`, one for each match
    @param gasLimits The most gas of each match; all of them must be there when it begins
    @return A bit for each match that failed, the first match's lowest
    """
    if exchange != EXCHANGE and exchange != NEG_RISK_EXCHANGE:
        raw_revert(method_id("UnknownExchange()"))
    if not staticcall IExchange(exchange).isOperator(msg.sender):
        raw_revert(method_id("NotOperator()"))
    if len(matches) != len(gasLimits):
        raw_revert(method_id("MismatchedArrayLengths()"))
    failed: uint256 = 0
    for i: uint256 in range(len(matches), bound=MATCHES_MAX):
        # A match fails for its own sake only, never because the batch was sent with too little gas.
        if msg.gas - msg.gas // GAS_PARTS < gasLimits[i] + CALL_GAS:
            raw_revert(method_id("NotEnoughGas()"))
        success: bool = False
        reason: Bytes[REASON_BYTES_MAX] = b""
        success, reason = raw_call(
            exchange,
            matches[i],
            max_outsize=REASON_BYTES_MAX,
            gas=gasLimits[i],
            revert_on_failure=False,
        )
        if not success:
            failed |= 1 << i
            log MatchFailed(exchange=exchange, index=i, reason=reason)
    return failed
