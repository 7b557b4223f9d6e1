# pragma version 0.4.3
"""
@title NegRiskOperator
@license Apache-2.0
@notice The oracle of neg-risk markets. To creators it is where an event is put together, to a
        resolution adapter it looks like Conditional Tokens: what is reported here as the answer to
        a request is passed on as the answer to the event's question. Once one question of a market
        is Yes, every other is No, whatever was reported of it: anybody may say so.
"""

from access import ownership
from interfaces import IMarketRegistry
from interfaces import INegRiskAdapter
from interfaces import INegRiskOperator
from interfaces import IResolvable
from resolution import ancillary
from tokens import conditions

implements: INegRiskOperator
initializes: ownership
exports: (
    ownership.admin,
    ownership.pendingAdmin,
    ownership.isAdmin,
    ownership.admins,
    ownership.transferAdmin,
    ownership.acceptAdmin,
)

event OracleSet:
    oracle: indexed(address)


# The events of a question's life have the layouts that indexers of the field decode.
event MarketPrepared:
    marketId: indexed(bytes32)
    feeBips: uint256
    data: Bytes[ancillary.ANCILLARY_BYTES_MAX]


event MarketCreated:
    marketId: indexed(bytes32)
    creator: indexed(address)


event QuestionPrepared:
    marketId: indexed(bytes32)
    questionId: indexed(bytes32)
    requestId: indexed(bytes32)
    questionIndex: uint256
    data: Bytes[ancillary.ANCILLARY_BYTES_MAX]


event QuestionReported:
    questionId: indexed(bytes32)
    requestId: bytes32
    result: bool


event QuestionResolved:
    questionId: indexed(bytes32)
    result: bool


event QuestionEmergencyResolved:
    questionId: indexed(bytes32)
    result: bool


event QuestionFlagged:
    questionId: indexed(bytes32)


event QuestionUnflagged:
    questionId: indexed(bytes32)


# How long a question is flagged before the admin may answer it.
DELAY_PERIOD: public(constant(uint256)) = 3_600
# How long it may answer after that, before the flag lapses.
ANSWER_PERIOD: public(constant(uint256)) = 604_800
# How long after a report a flag still holds it up.
HOLD_PERIOD: public(constant(uint256)) = 604_800
INDEX_MASK: constant(uint256) = 255
STACK_BYTES_MAX: constant(uint256) = 16

# Which resolution stack answers here; two operators of one deployment differ in this.
resolutionStack: public(immutable(String[STACK_BYTES_MAX]))
nrAdapter: public(immutable(address))
marketRegistry: public(immutable(address))

# Who answers requests: a resolution adapter, named once.
oracle: public(address)

creatorOf: public(HashMap[bytes32, address])
questionIds: public(HashMap[bytes32, bytes32])
requestIds: public(HashMap[bytes32, bytes32])
# What was reported, and after the question is answered: what it pays.
results: public(HashMap[bytes32, bool])
# The Yes that was reported last in a market, and the one before each.
last_yes: HashMap[bytes32, bytes32]
earlierYes: public(HashMap[bytes32, bytes32])
reportedAt: public(HashMap[bytes32, uint256])
flaggedAt: public(HashMap[bytes32, uint256])


@deploy
def __init__(
    stack: String[STACK_BYTES_MAX],
    negRiskAdapter: address,
    marketRegistry_: address,
    admin: address,
):
    """
    @param stack The name of the resolution stack that answers here
    @param negRiskAdapter Where markets are prepared and outcomes reported
    @param marketRegistry_ Where creators are written down
    @param admin Who names the oracle, once, and flags questions
    """
    resolutionStack = stack
    nrAdapter = negRiskAdapter
    marketRegistry = marketRegistry_
    ownership.__init__(admin)


@external
def setOracle(oracle: address):
    """
    @notice Name the resolution adapter, once and for good.
    @param oracle The resolution adapter
    """
    ownership._check_admin()
    if self.oracle != empty(address):
        raw_revert(method_id("OracleAlreadySet()"))
    if oracle == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    self.oracle = oracle
    log OracleSet(oracle=oracle)


@external
def prepareMarket(feeBips: uint256, data: Bytes[ancillary.ANCILLARY_BYTES_MAX]) -> bytes32:
    """
    @notice Open a market of the caller's; return its id. The caller is written at the end of the
            data, so that nobody can take the id away from it.
    @param feeBips The fee of conversions, in basis points
    @param data A description, which the market's id follows from
    @return The market's id
    """
    market_id: bytes32 = extcall INegRiskAdapter(nrAdapter).prepareMarket(
        feeBips, ancillary._signed(data, msg.sender)
    )
    self.creatorOf[market_id] = msg.sender
    log MarketPrepared(marketId=market_id, feeBips=feeBips, data=data)
    log MarketCreated(marketId=market_id, creator=msg.sender)
    return market_id


@external
def prepareQuestion(
    marketId: bytes32, data: Bytes[ancillary.ANCILLARY_BYTES_MAX], requestId: bytes32
) -> bytes32:
    """
    @notice Add a question to a market of the caller's; return its id.
    @param marketId The market
    @param data A description of the question
    @param requestId What the caller has asked the oracle, and nobody has used yet
    @return The question's id
    """
    if msg.sender != self.creatorOf[marketId]:
        raw_revert(method_id("NotCreator()"))
    if self.questionIds[requestId] != empty(bytes32):
        raw_revert(method_id("RequestIdAlreadyUsed()"))
    self._check_request(requestId)
    question_id: bytes32 = extcall INegRiskAdapter(nrAdapter).prepareQuestion(marketId, data)
    self.questionIds[requestId] = question_id
    self.requestIds[question_id] = requestId
    condition_id: bytes32 = staticcall INegRiskAdapter(nrAdapter).getConditionId(question_id)
    extcall IMarketRegistry(marketRegistry).recordCreator(condition_id, msg.sender)
    log QuestionPrepared(
        marketId=marketId,
        questionId=question_id,
        requestId=requestId,
        questionIndex=convert(question_id, uint256) & INDEX_MASK,
        data=data,
    )
    return question_id


@external
def sealMarket(marketId: bytes32):
    """
    @notice Say that a market of the caller's has all its questions, once and for good. Only then are
            its positions converted.
    @param marketId The market
    """
    if msg.sender != self.creatorOf[marketId]:
        raw_revert(method_id("NotCreator()"))
    extcall INegRiskAdapter(nrAdapter).sealMarket(marketId)


@external
def reportPayouts(requestId: bytes32, payouts: DynArray[uint256, conditions.OUTCOMES]):
    """
    @notice Take the answer to a request, from the oracle: Yes or No and nothing between. Of a question
            that was answered before, what it pays is taken, and of any other in a market that has
            its Yes already, No. So its request ends too, and no log contradicts what is paid.
    @param requestId The request at the adapter
    @param payouts [1, 0] for Yes, [0, 1] for No
    """
    if msg.sender != self.oracle:
        raw_revert(method_id("OnlyOracle()"))
    question_id: bytes32 = self.questionIds[requestId]
    if question_id == empty(bytes32):
        raw_revert(method_id("InvalidRequestId()"))
    if self.reportedAt[question_id] != 0:
        raw_revert(method_id("QuestionAlreadyReported()"))
    if len(payouts) != conditions.OUTCOMES or payouts[0] + payouts[1] != 1:
        raw_revert(method_id("InvalidPayouts()"))
    result: bool = payouts[0] == 1 and not self._is_determined(question_id)
    if staticcall INegRiskAdapter(nrAdapter).isAnswered(question_id):
        result = self.results[question_id]
    elif result:
        market_id: bytes32 = self._market_of(question_id)
        self.earlierYes[question_id] = self.last_yes[market_id]
        self.last_yes[market_id] = question_id
    self.results[question_id] = result
    self.reportedAt[question_id] = block.timestamp
    log QuestionReported(questionId=question_id, requestId=requestId, result=result)


@external
def resolveQuestion(questionId: bytes32):
    """
    @notice Pass a reported answer on, unless it is flagged: a flag holds it up for a week at most.
            In a market that has its Yes, a question that has no answer yet is No. Of two that were
            reported as Yes the first is passed on first, so that nobody chooses between them.
    @param questionId The question
    """
    self._check_question(questionId)
    result: bool = False
    if not self._is_determined(questionId):
        reported_at: uint256 = self.reportedAt[questionId]
        if reported_at == 0:
            raw_revert(method_id("NotReported()"))
        if self._is_flagged(questionId) and block.timestamp < reported_at + HOLD_PERIOD:
            raw_revert(method_id("Flagged()"))
        result = self.results[questionId]
        if result:
            self._check_first(questionId)
    self.results[questionId] = result
    extcall INegRiskAdapter(nrAdapter).reportOutcome(questionId, result)
    log QuestionResolved(questionId=questionId, result=result)


@external
def flagQuestion(questionId: bytes32):
    """
    @notice Hold a question up, and let its emergency delay run. A flag lapses a week after that.
    @param questionId The question
    """
    ownership._check_admin()
    self._check_question(questionId)
    if self._is_flagged(questionId):
        raw_revert(method_id("Flagged()"))
    self.flaggedAt[questionId] = block.timestamp
    log QuestionFlagged(questionId=questionId)


@external
def unflagQuestion(questionId: bytes32):
    """
    @notice Hold a question up no more.
    @param questionId The question
    """
    ownership._check_admin()
    if self.flaggedAt[questionId] == 0:
        raw_revert(method_id("NotFlagged()"))
    self.flaggedAt[questionId] = 0
    log QuestionUnflagged(questionId=questionId)


@external
def emergencyResolveQuestion(questionId: bytes32, result: bool):
    """
    @notice Answer a question that has been flagged for the whole delay, in the week after it.
    @param questionId The question
    @param result True for Yes
    """
    ownership._check_admin()
    if not self._is_flagged(questionId):
        raw_revert(method_id("NotFlagged()"))
    if block.timestamp < self.flaggedAt[questionId] + DELAY_PERIOD:
        raw_revert(method_id("DelayPeriodNotOver()"))
    self.results[questionId] = result
    extcall INegRiskAdapter(nrAdapter).reportOutcome(questionId, result)
    log QuestionEmergencyResolved(questionId=questionId, result=result)


@external
@pure
def prepareCondition(oracle: address, questionId: bytes32, outcomeSlotCount: uint256):
    """
    @notice Nothing: a resolution adapter asks Conditional Tokens for this, and here it is not needed.
    @param oracle The adapter
    @param questionId The request
    @param outcomeSlotCount 2
    """
    pass


@external
@pure
def getOutcomeSlotCount(conditionId: bytes32) -> uint256:
    """
    @notice Two: to a resolution adapter every request here is a prepared condition.
    @param conditionId A condition of the adapter's
    @return Two for a question of an event
    """
    return conditions.OUTCOMES


@external
@view
def isDetermined(questionId: bytes32) -> bool:
    """
    @notice Whether a question's market has its Yes.
    @param questionId The question
    @return True when the question's market has its Yes
    """
    return self._is_determined(questionId)


@internal
@view
def _check_request(request_id: bytes32):
    asked_at: uint256 = 0
    is_resolved: bool = False
    creator: address = empty(address)
    asked_at, is_resolved, creator = staticcall IResolvable(self.oracle).questionState(request_id)
    if asked_at == 0 or is_resolved or creator != msg.sender:
        raw_revert(method_id("InvalidRequestId()"))


@internal
@view
def _check_question(question_id: bytes32):
    if self.requestIds[question_id] == empty(bytes32):
        raw_revert(method_id("InvalidQuestion()"))


@internal
@view
def _is_flagged(question_id: bytes32) -> bool:
    flagged_at: uint256 = self.flaggedAt[question_id]
    lapses_at: uint256 = flagged_at + DELAY_PERIOD + ANSWER_PERIOD
    return flagged_at != 0 and block.timestamp < lapses_at


@internal
@view
def _check_first(question_id: bytes32):
    """
    @dev Anybody may pass the earlier Yes on, or after its flag the admin answers it: it never waits
         for ever.
    """
    earlier: bytes32 = self.earlierYes[question_id]
    if earlier != empty(bytes32) and not staticcall INegRiskAdapter(nrAdapter).isAnswered(earlier):
        raw_revert(method_id("EarlierYes()"))


@internal
@view
def _is_determined(question_id: bytes32) -> bool:
    return staticcall INegRiskAdapter(nrAdapter).getDetermined(self._market_of(question_id))


@internal
@pure
def _market_of(question_id: bytes32) -> bytes32:
    return convert(convert(question_id, uint256) & ~INDEX_MASK, bytes32)
