# pragma version 0.4.3
"""
@title NegRiskAdapter
@license Apache-2.0
@notice Events of which at most one outcome is true (`multi_unique`). The adapter is the oracle of
        their conditions in Conditional Tokens, and stands between people, who pay and are paid in
        collateral, and positions of the wrapped collateral. It has no admin, no pause and no
        upgrade.
"""

from neg_risk import complete_sets
from neg_risk import conversion
from neg_risk import holdings
from neg_risk import markets
from neg_risk import sweeping

initializes: holdings
initializes: markets[holdings := holdings]
initializes: complete_sets[holdings := holdings, markets := markets]
initializes: sweeping[holdings := holdings]
initializes: conversion[holdings := holdings, markets := markets]

exports: (
    holdings.col,
    holdings.wcol,
    holdings.ctf,
    holdings.vault,
    holdings.NO_TOKEN_BURN_ADDRESS,
    holdings.balanceOf,
    holdings.onERC1155Received,
    holdings.onERC1155BatchReceived,
    holdings.supportsInterface,
)
exports: (
    markets.FEE_DENOMINATOR,
    markets.prepareMarket,
    markets.prepareQuestion,
    markets.sealMarket,
    markets.reportOutcome,
    markets.getMarketData,
    markets.getQuestionCount,
    markets.getDetermined,
    markets.getResult,
    markets.getFeeBips,
    markets.isSealed,
    markets.getOracle,
    markets.getConditionId,
    markets.getPositionId,
    markets.isAnswered,
)
exports: (
    complete_sets.splitPosition,
    complete_sets.mergePositions,
    complete_sets.redeemPositions,
)
exports: sweeping.sweep
exports: (conversion.converted, conversion.convertPositions, conversion.releaseUnclaimed)

# A contract cannot declare two functions of one name, so the short forms are distinguished below by
# their selectors. `build.py` reads their signatures here and adds them to the ABI.
# @notice Pay collateral for both positions of a question.
# @param conditionId The question's condition
# @param amount How much, in base units
# abi: function splitPosition(bytes32 conditionId, uint256 amount)
# @notice Give both positions of a question back for collateral.
# @param conditionId The question's condition
# @param amount How much, in base units
# abi: function mergePositions(bytes32 conditionId, uint256 amount)
SHORT_CALL_BYTES: constant(uint256) = 68


@deploy
def __init__(
    collateral: address,
    conditionalTokens: address,
    vault_: address,
    wrappedCode: Bytes[holdings.WRAPPED_CODE_BYTES_MAX],
):
    """
    @param collateral What people pay and are paid with
    @param conditionalTokens The ERC-1155 that holds the positions
    @param vault_ Who gets the fees of conversions, and what nobody has a claim to
    @param wrappedCode The creation code of WrappedCollateral, which the adapter makes and owns
    """
    holdings.__init__(collateral, conditionalTokens, vault_, wrappedCode)


@external
@nonreentrant
def __default__():
    """
    @notice `splitPosition(bytes32,uint256)` and `mergePositions(bytes32,uint256)`, the short forms.
    """
    # Data after the arguments is no error, as in any function: clients append referral codes.
    if len(msg.data) < SHORT_CALL_BYTES:
        raw_revert(method_id("UnknownCall()"))
    condition_id: bytes32 = empty(bytes32)
    amount: uint256 = 0
    condition_id, amount = abi_decode(slice(msg.data, 4, 64), (bytes32, uint256))
    selector: bytes4 = convert(slice(msg.data, 0, 4), bytes4)
    if selector == method_id("splitPosition(bytes32,uint256)", output_type=bytes4):
        complete_sets._split_for(msg.sender, condition_id, amount)
    elif selector == method_id("mergePositions(bytes32,uint256)", output_type=bytes4):
        complete_sets._merge_for(msg.sender, condition_id, amount)
    else:
        raw_revert(method_id("UnknownCall()"))
