# pragma version 0.4.3
"""
@title Questions
@license Apache-2.0
@notice What a resolution adapter knows of each question, in the form that clients of the field read,
        and how it reports an answer. The adapter is the oracle of its questions' conditions.
"""

from interfaces import IConditionalTokens
from interfaces import IMarketRegistry
from resolution import ancillary
from resolution import payouts
from tokens import conditions

event QuestionInitialized:
    questionID: indexed(bytes32)
    requestTimestamp: indexed(uint256)
    creator: indexed(address)
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]
    rewardToken: address
    reward: uint256
    proposalBond: uint256


event QuestionResolved:
    questionID: indexed(bytes32)
    settledPrice: indexed(int256)
    payouts: DynArray[uint256, conditions.OUTCOMES]


event QuestionManuallyResolved:
    questionID: indexed(bytes32)
    payouts: DynArray[uint256, conditions.OUTCOMES]


event QuestionFlagged:
    questionID: indexed(bytes32)


event QuestionUnflagged:
    questionID: indexed(bytes32)


struct Question:
    requestTimestamp: uint256
    reward: uint256
    proposalBond: uint256
    liveness: uint256
    manualResolutionTimestamp: uint256  # from when the admin may answer; zero unless it is flagged
    resolved: bool
    paused: bool  # it is held up
    reset: bool  # it was disputed once, and asked again
    refund: bool  # it was disputed again, and is the arbiter's
    rewardToken: address
    creator: address
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]


ctf: public(immutable(address))
marketRegistry: public(immutable(address))

questions: HashMap[bytes32, Question]


@deploy
def __init__(conditionalTokens: address, marketRegistry_: address):
    ctf = conditionalTokens
    marketRegistry = marketRegistry_


@external
@view
def getQuestion(questionID: bytes32) -> Question:
    """
    @notice All that is known of a question; all zero for one that was not asked.
    @param questionID The question
    @return Its terms and its state
    """
    return self.questions[questionID]


@external
@view
def questionState(questionId: bytes32) -> (uint256, bool, address):
    """
    @notice When it was asked last, whether it is resolved, and who asked.
    @param questionId The question
    @return The second when it was asked, whether it is resolved, and who asked
    """
    return (
        self.questions[questionId].requestTimestamp,
        self.questions[questionId].resolved,
        self.questions[questionId].creator,
    )


@external
@view
def isInitialized(questionID: bytes32) -> bool:
    """
    @notice Whether the question was asked.
    @param questionID The question
    @return True once it was asked
    """
    return self._is_initialized(questionID)


@external
@view
def questionIdOf(
    ancillaryData: Bytes[ancillary.ANCILLARY_BYTES_MAX], initializer: address
) -> bytes32:
    """
    @notice The id that the question has, or would have, when this account asks it.
    @param ancillaryData The text of the question
    @param initializer Who asks it, or would
    @return The question's id
    """
    return keccak256(ancillary._signed(ancillaryData, initializer))


@external
@view
def conditionIdOf(questionId: bytes32) -> bytes32:
    """
    @notice The condition of a question.
    @param questionId The question
    @return The condition's id
    """
    return conditions._condition_id(self, questionId)


@internal
def _ask(
    text: Bytes[ancillary.SIGNED_BYTES_MAX],
    reward_token: address,
    reward: uint256,
    bond: uint256,
    liveness: uint256,
) -> bytes32:
    """
    @dev Take the caller's question; return its id. A condition that somebody else has prepared for us
         in the meantime is the same condition.
    """
    question_id: bytes32 = keccak256(text)
    if self._is_initialized(question_id):
        raw_revert(method_id("AlreadyInitialized()"))
    self.questions[question_id].requestTimestamp = block.timestamp
    self.questions[question_id].reward = reward
    self.questions[question_id].proposalBond = bond
    self.questions[question_id].liveness = liveness
    self.questions[question_id].rewardToken = reward_token
    self.questions[question_id].creator = msg.sender
    self.questions[question_id].ancillaryData = text
    condition_id: bytes32 = conditions._condition_id(self, question_id)
    if staticcall IConditionalTokens(ctf).getOutcomeSlotCount(condition_id) == 0:
        extcall IConditionalTokens(ctf).prepareCondition(self, question_id, conditions.OUTCOMES)
    # Questions of a neg-risk event have their conditions elsewhere, and are written down there.
    if marketRegistry != empty(address):
        extcall IMarketRegistry(marketRegistry).recordCreator(condition_id, msg.sender)
    return question_id


@internal
def _resolve(question_id: bytes32, price: int256):
    """
    @dev Report the answer of an open question.
    """
    self.questions[question_id].resolved = True
    reported: DynArray[uint256, conditions.OUTCOMES] = payouts._payouts(price)
    extcall IConditionalTokens(ctf).reportPayouts(question_id, reported)
    log QuestionResolved(questionID=question_id, settledPrice=price, payouts=reported)


@internal
def _resolve_manually(question_id: bytes32, reported: DynArray[uint256, conditions.OUTCOMES]):
    """
    @dev Report the admin's answer of an open question: one outcome, or a half to each.
    """
    if len(reported) != conditions.OUTCOMES or max(reported[0], reported[1]) != 1:
        raw_revert(method_id("InvalidPayouts()"))
    self.questions[question_id].resolved = True
    extcall IConditionalTokens(ctf).reportPayouts(question_id, reported)
    log QuestionManuallyResolved(questionID=question_id, payouts=reported)


@internal
@view
def _is_initialized(question_id: bytes32) -> bool:
    return self.questions[question_id].requestTimestamp != 0


@internal
@view
def _check_open(question_id: bytes32):
    if not self._is_initialized(question_id):
        raw_revert(method_id("NotInitialized()"))
    if self.questions[question_id].resolved:
        raw_revert(method_id("AlreadyResolved()"))
