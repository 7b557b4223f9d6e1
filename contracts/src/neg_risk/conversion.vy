# pragma version 0.4.3
"""
@title Conversion
@license Apache-2.0
@notice As at most one question of a market is Yes, No positions of k questions are worth k - 1 of
        collateral at least, and one more unless the Yes is among them: so they change into k - 1 of
        collateral and a Yes of every other question. The No positions, and those of the sets that
        the new Yes come from, go where nobody redeems them; so what was minted under them without
        cover needs none. Where all questions of a conversion end as No, one unit in each is left
        that nobody has a claim to: it goes to the vault.
"""

from interfaces import IWrappedCollateral
from neg_risk import holdings
from neg_risk import markets

uses: holdings
uses: markets

event PositionsConverted:
    stakeholder: indexed(address)
    marketId: indexed(bytes32)
    indexSet: indexed(uint256)
    amount: uint256


event UnclaimedReleased:
    marketId: indexed(bytes32)
    questionCount: indexed(uint256)
    amount: uint256


# How much was converted while a market had so many questions, which is all of them.
converted: public(HashMap[bytes32, HashMap[uint256, uint256]])


@external
@nonreentrant
def convertPositions(marketId: bytes32, indexSet: uint256, amount: uint256):
    """
    @notice Change the caller's No positions into collateral and the other questions' Yes positions.
    @param marketId The market
    @param indexSet A bit for each question whose No is given
    @param amount How much of each
    """
    word: uint256 = markets._word(marketId)
    if not markets._is_sealed(word):
        raw_revert(method_id("MarketNotSealed()"))
    count: uint256 = word >> markets.COUNT_AT
    if count < 2:
        raw_revert(method_id("NoConvertiblePositions()"))
    if indexSet == 0 or indexSet >> count != 0:
        raw_revert(method_id("InvalidIndexSet()"))
    if amount == 0:
        raw_revert(method_id("ZeroAmount()"))
    given: DynArray[uint256, holdings.BATCH_MAX] = []
    burned: DynArray[uint256, holdings.BATCH_MAX] = []
    received: DynArray[uint256, holdings.BATCH_MAX] = []
    for i: uint256 in range(count, bound=markets.QUESTIONS_MAX):
        condition_id: bytes32 = markets._condition_id(markets._question_id(marketId, i))
        if indexSet & (1 << i) != 0:
            given.append(markets.no_of[condition_id])
        else:
            extcall IWrappedCollateral(holdings.WRAPPED).mint(amount)
            holdings._split(condition_id, amount)
            burned.append(markets.no_of[condition_id])
            received.append(markets.yes_of[condition_id])
    self.converted[marketId][count] += amount
    fee: uint256 = amount * markets._fee_bips(word) // markets.FEE_DENOMINATOR
    self._take_no(msg.sender, given, amount)
    self._take_no(self, burned, amount)
    self._release(msg.sender, (len(given) - 1) * (amount - fee))
    self._release(holdings.VAULT, (len(given) - 1) * fee)
    self._give_yes(msg.sender, received, amount - fee)
    self._give_yes(holdings.VAULT, received, fee)
    log PositionsConverted(
        stakeholder=msg.sender, marketId=marketId, indexSet=indexSet, amount=amount
    )


@external
@nonreentrant
def releaseUnclaimed(marketId: bytes32, questionCount: uint256):
    """
    @notice Pay the vault what is left of conversions whose questions all ended as No.
    @param marketId The market
    @param questionCount How many questions the market had when they were made
    """
    word: uint256 = markets._word(marketId)
    asked: uint256 = (1 << questionCount) - 1
    if markets.answered[marketId] & asked != asked:
        raw_revert(method_id("QuestionsOpen()"))
    if markets._is_determined(word) and markets._result(word) < questionCount:
        raw_revert(method_id("NothingUnclaimed()"))
    amount: uint256 = self.converted[marketId][questionCount]
    if amount == 0:
        raw_revert(method_id("NothingUnclaimed()"))
    self.converted[marketId][questionCount] = 0
    self._release(holdings.VAULT, amount)
    log UnclaimedReleased(marketId=marketId, questionCount=questionCount, amount=amount)


@internal
def _take_no(holder: address, ids: DynArray[uint256, holdings.BATCH_MAX], amount: uint256):
    if len(ids) == 0:
        return
    holdings._send(holder, holdings.NO_TOKEN_BURN, ids, self._repeated(amount, len(ids)))


@internal
def _give_yes(receiver: address, ids: DynArray[uint256, holdings.BATCH_MAX], amount: uint256):
    if len(ids) == 0 or amount == 0:
        return
    holdings._send(self, receiver, ids, self._repeated(amount, len(ids)))


@internal
def _release(receiver: address, amount: uint256):
    if amount != 0:
        extcall IWrappedCollateral(holdings.WRAPPED).release(receiver, amount)


@internal
@pure
def _repeated(amount: uint256, times: uint256) -> DynArray[uint256, holdings.BATCH_MAX]:
    amounts: DynArray[uint256, holdings.BATCH_MAX] = []
    for _: uint256 in range(times, bound=holdings.BATCH_MAX):
        amounts.append(amount)
    return amounts
