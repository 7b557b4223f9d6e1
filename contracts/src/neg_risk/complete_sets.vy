# pragma version 0.4.3
"""
@title Complete sets
@license Apache-2.0
@notice Split, merge and redeem in the real collateral, though the positions are of the wrapped one.
        Split and merge have a long form, that of Conditional Tokens, and a short one.
"""

from interfaces import IConditionalTokens
from interfaces import IWrappedCollateral
from neg_risk import holdings
from neg_risk import markets

uses: holdings
uses: markets

event PositionSplit:
    stakeholder: indexed(address)
    conditionId: indexed(bytes32)
    amount: uint256


event PositionsMerge:
    stakeholder: indexed(address)
    conditionId: indexed(bytes32)
    amount: uint256


event PayoutRedemption:
    redeemer: indexed(address)
    conditionId: indexed(bytes32)
    amounts: DynArray[uint256, 2]
    payout: uint256


@external
@nonreentrant
def splitPosition(
    collateralToken: address,
    parentCollectionId: bytes32,
    conditionId: bytes32,
    partition: DynArray[uint256, 2],
    amount: uint256,
):
    """
    @notice Turn the caller's collateral into complete sets of a condition.
    @param collateralToken The collateral
    @param parentCollectionId Zero: there is no parent
    @param conditionId The condition
    @param partition [1, 2]: the two outcomes
    @param amount How much, in base units
    """
    self._check_form(collateralToken, parentCollectionId, partition)
    self._split_for(msg.sender, conditionId, amount)


@external
@nonreentrant
def mergePositions(
    collateralToken: address,
    parentCollectionId: bytes32,
    conditionId: bytes32,
    partition: DynArray[uint256, 2],
    amount: uint256,
):
    """
    @notice Turn the caller's complete sets back into collateral.
    @param collateralToken The collateral
    @param parentCollectionId Zero: there is no parent
    @param conditionId The condition
    @param partition [1, 2]: the two outcomes
    @param amount How much, in base units
    """
    self._check_form(collateralToken, parentCollectionId, partition)
    self._merge_for(msg.sender, conditionId, amount)


@external
@nonreentrant
def redeemPositions(conditionId: bytes32, amounts: DynArray[uint256, 2]):
    """
    @notice Turn positions of a resolved condition into what they pay.
    @param conditionId A resolved condition
    @param amounts How much of Yes and of No
    """
    markets._check_condition(conditionId)
    if len(amounts) != 2:
        raw_revert(method_id("MismatchedArrayLengths()"))
    ids: DynArray[uint256, 2] = [markets.yes_of[conditionId], markets.no_of[conditionId]]
    holdings._send(msg.sender, self, ids, amounts)
    holdings._redeem(conditionId)
    # One side is paid in full and the other nothing; whatever else was sent here was sent back, so
    # that what is redeemed is what the caller brought.
    ctf: address = holdings.CONDITIONAL_TOKENS
    payout: uint256 = amounts[1]
    if staticcall IConditionalTokens(ctf).payoutNumerators(conditionId, 0) != 0:
        payout = amounts[0]
    if payout != 0:
        extcall IWrappedCollateral(holdings.WRAPPED).unwrap(msg.sender, payout)
    log PayoutRedemption(
        redeemer=msg.sender, conditionId=conditionId, amounts=amounts, payout=payout
    )


@internal
@view
def _check_form(
    collateral: address, parent_collection_id: bytes32, partition: DynArray[uint256, 2]
):
    if collateral != holdings.COLLATERAL:
        raw_revert(method_id("UnexpectedCollateralToken()"))
    if parent_collection_id != empty(bytes32):
        raw_revert(method_id("InvalidParent()"))
    if len(partition) != 2 or partition[0] != 1 or partition[1] != 2:
        raw_revert(method_id("InvalidPartition()"))


@internal
def _split_for(holder: address, condition_id: bytes32, amount: uint256):
    markets._check_condition(condition_id)
    holdings._wrap(holder, amount)
    holdings._split(condition_id, amount)
    holdings._send(
        self,
        holder,
        [markets.yes_of[condition_id], markets.no_of[condition_id]],
        [amount, amount],
    )
    log PositionSplit(stakeholder=holder, conditionId=condition_id, amount=amount)


@internal
def _merge_for(holder: address, condition_id: bytes32, amount: uint256):
    markets._check_condition(condition_id)
    holdings._send(
        holder,
        self,
        [markets.yes_of[condition_id], markets.no_of[condition_id]],
        [amount, amount],
    )
    holdings._merge(condition_id, amount)
    extcall IWrappedCollateral(holdings.WRAPPED).unwrap(holder, amount)
    log PositionsMerge(stakeholder=holder, conditionId=condition_id, amount=amount)
