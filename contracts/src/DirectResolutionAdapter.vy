# pragma version 0.4.3
"""
@title DirectResolutionAdapter
@license Apache-2.0
@notice Questions of the direct stack (`dro_moov2`). The adapter is the oracle of their conditions
        in Conditional Tokens, and reports the outcome that the direct resolution oracle gives. Where
        nobody answers after a question's stated end, anybody may say so: then the admin may answer
        a week later, and a month later anybody may end the question at a half, or at No in an
        event. Its proposers may answer at any time before.
"""

from access import ownership
from interfaces import IConditionalTokens
from interfaces import IMarketRegistry
from interfaces import IResolvable
from resolution import ancillary
from resolution import creation_fee
from resolution import payouts

implements: IResolvable
initializes: ownership
initializes: creation_fee[ownership := ownership]
exports: (
    ownership.admin,
    ownership.pendingAdmin,
    ownership.isAdmin,
    ownership.admins,
    ownership.transferAdmin,
    ownership.acceptAdmin,
)
exports: (
    creation_fee.feeCollateral,
    creation_fee.creationFee,
    creation_fee.communityShareBps,
    creation_fee.communityPool,
    creation_fee.feeOperator,
    creation_fee.setCreationFee,
    creation_fee.setCreationFeeReceivers,
)

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
    payouts: DynArray[uint256, 2]


event QuestionManuallyResolved:
    questionID: indexed(bytes32)
    payouts: DynArray[uint256, 2]


event QuestionFlagged:
    questionID: indexed(bytes32)


event QuestionUnflagged:
    questionID: indexed(bytes32)


struct Question:
    requestTimestamp: uint256
    reward: uint256
    proposalBond: uint256
    liveness: uint256
    manualResolutionTimestamp: uint256
    resolved: bool
    paused: bool
    reset: bool
    refund: bool
    rewardToken: address
    creator: address
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]


OUTCOMES: constant(uint256) = 2
# When a question ends that states no end, and the latest end, in seconds after it was asked.
END_S: constant(uint256) = 2 * 365 * 24 * 3600
END_S_MAX: constant(uint256) = 10 * 365 * 24 * 3600
# What lies between a flag and the admin's answer, and between a flag and the fall-back.
SAFETY_S: constant(uint256) = 7 * 24 * 3600
FALLBACK_S: constant(uint256) = 30 * 24 * 3600

ctf: public(immutable(address))
oracle: public(immutable(address))
marketRegistry: public(immutable(address))

questions: HashMap[bytes32, Question]


@deploy
def __init__(
    conditionalTokens: address,
    oracle_: address,
    marketRegistry_: address,
    collateral: address,
    admin: address,
    creationFee: uint256,
    communityShareBps: uint256,
    communityPool: address,
    operator: address,
):
    """
    @param conditionalTokens Where conditions are prepared and payouts reported: Conditional Tokens,
           or a neg-risk operator
    @param oracle_ The direct resolution oracle, which alone may resolve
    @param marketRegistry_ Where creators are written down; zero for a neg-risk operator's requests
    @param collateral What the creation fee is paid in
    @param admin Who sets the fee and its receivers
    @param creationFee What a question costs
    @param communityShareBps The community pool's part of it
    @param communityPool Who gets that part
    @param operator Who gets the rest
    """
    ctf = conditionalTokens
    oracle = oracle_
    marketRegistry = marketRegistry_
    ownership.__init__(admin)
    creation_fee.__init__(collateral, creationFee, communityShareBps, communityPool, operator)


@external
@nonreentrant
def initialize(
    ancillaryData: Bytes[ancillary.ANCILLARY_BYTES_MAX],
    rewardToken: address,
    reward: uint256,
    proposalBond: uint256,
    liveness: uint256,
) -> bytes32:
    """
    @notice Ask a question, for the creation fee; return its id. There is no proposal to reward or to
            back with a bond, so those two are zero. A condition that somebody else has prepared
            for us in the meantime is the same condition.
    @param ancillaryData The text; the initializer's address is appended to it
    @param rewardToken Not used; zero
    @param reward Not used; zero
    @param proposalBond Not used; zero
    @param liveness How many seconds from now the question's answer should be known, at most ten
            years; zero for two years. Before that nobody but its proposers ends it.
    @return The question's id
    """
    if reward != 0 or proposalBond != 0 or liveness > END_S_MAX:
        raw_revert(method_id("TermsNotSupported()"))
    text: Bytes[ancillary.SIGNED_BYTES_MAX] = ancillary._signed(ancillaryData, msg.sender)
    question_id: bytes32 = keccak256(text)
    if self._is_initialized(question_id):
        raw_revert(method_id("AlreadyInitialized()"))
    self.questions[question_id] = Question(
        requestTimestamp=block.timestamp,
        reward=0,
        proposalBond=0,
        liveness=liveness,
        manualResolutionTimestamp=0,
        resolved=False,
        paused=False,
        reset=False,
        refund=False,
        rewardToken=rewardToken,
        creator=msg.sender,
        ancillaryData=text,
    )
    condition_id: bytes32 = self._condition_id(question_id)
    if staticcall IConditionalTokens(ctf).getOutcomeSlotCount(condition_id) == 0:
        extcall IConditionalTokens(ctf).prepareCondition(self, question_id, OUTCOMES)
    # Questions of a neg-risk event have their conditions elsewhere, and are written down there.
    if marketRegistry != empty(address):
        extcall IMarketRegistry(marketRegistry).recordCreator(condition_id, msg.sender)
    creation_fee._collect(msg.sender)
    log QuestionInitialized(
        questionID=question_id,
        requestTimestamp=block.timestamp,
        creator=msg.sender,
        ancillaryData=text,
        rewardToken=rewardToken,
        reward=0,
        proposalBond=0,
    )
    return question_id


@external
@nonreentrant
def resolve(questionId: bytes32, price: int256):
    """
    @notice Report the answer, once and for good, for the oracle.
    @param questionId The question
    @param price 1e18 for Yes, 0 for No, 5e17 for a half
    """
    if msg.sender != oracle:
        raw_revert(method_id("NotOracle()"))
    self._check_open(questionId)
    self._resolve(questionId, price)


@external
def flag(questionID: bytes32):
    """
    @notice Say that a question has no answer though its end has passed, for anybody. It lets the
            delays of the admin's answer and of the fall-back run, and stops no proposer.
    @param questionID The question
    """
    self._check_open(questionID)
    if self.questions[questionID].manualResolutionTimestamp != 0:
        raw_revert(method_id("Flagged()"))
    if block.timestamp < self._ends_at(questionID):
        raw_revert(method_id("NotEnded()"))
    self.questions[questionID].manualResolutionTimestamp = block.timestamp + SAFETY_S
    log QuestionFlagged(questionID=questionID)


@external
def unflag(questionID: bytes32):
    """
    @notice Take a flag back, for the admin: the question's end was put off, or its proposers will
            answer. Anybody may flag it again.
    @param questionID The question
    """
    ownership._check_admin()
    self._check_open(questionID)
    if self.questions[questionID].manualResolutionTimestamp == 0:
        raw_revert(method_id("NotFlagged()"))
    self.questions[questionID].manualResolutionTimestamp = 0
    log QuestionUnflagged(questionID=questionID)


@external
@nonreentrant
def resolveManually(questionId: bytes32, payouts_: DynArray[uint256, 2]):
    """
    @notice Answer a question that has been flagged for the whole safety period, for the admin.
    @param questionId The question
    @param payouts_ What the two outcomes pay, as shares
    """
    ownership._check_admin()
    self._check_open(questionId)
    self._check_flagged_for(questionId, SAFETY_S)
    if len(payouts_) != OUTCOMES or max(payouts_[0], payouts_[1]) != 1:
        raw_revert(method_id("InvalidPayouts()"))
    self.questions[questionId].resolved = True
    extcall IConditionalTokens(ctf).reportPayouts(questionId, payouts_)
    log QuestionManuallyResolved(questionID=questionId, payouts=payouts_)


@external
@nonreentrant
def resolveByFallback(questionId: bytes32):
    """
    @notice End a question that has been flagged for the whole fall-back period, for anybody.
    @param questionId The question
    """
    self._check_open(questionId)
    self._check_flagged_for(questionId, FALLBACK_S)
    # Without a registry of its own the adapter serves a neg-risk operator, which takes no half.
    is_event: bool = marketRegistry == empty(address)
    self._resolve(questionId, payouts.NO if is_event else payouts.UNKNOWN)


@external
@view
def endsAt(questionId: bytes32) -> uint256:
    """
    @notice When a question can be flagged; zero for one that was not asked.
    @param questionId The question
    @return The second, since 1970
    """
    if not self._is_initialized(questionId):
        return 0
    return self._ends_at(questionId)


@external
@view
def isFlagged(questionID: bytes32) -> bool:
    """
    @notice Whether somebody has said that the question has no answer after its end.
    @param questionID The question
    @return True while it is flagged
    """
    return self.questions[questionID].manualResolutionTimestamp != 0


@external
@pure
def safetyPeriod() -> uint256:
    """
    @notice How many seconds lie between a flag and the admin's answer.
    @return Seconds
    """
    return SAFETY_S


@external
@pure
def fallbackPeriod() -> uint256:
    """
    @notice How many seconds lie between a flag and the end by fall-back.
    @return Seconds
    """
    return FALLBACK_S


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
    @notice When it was asked, whether it is resolved, and who asked.
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
def questionIdOf(ancillaryData: Bytes[ancillary.ANCILLARY_BYTES_MAX], initializer: address) -> bytes32:
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
    return self._condition_id(questionId)


@internal
@view
def _is_initialized(question_id: bytes32) -> bool:
    return self.questions[question_id].requestTimestamp != 0


@internal
@view
def _condition_id(question_id: bytes32) -> bytes32:
    return keccak256(
        concat(convert(self, bytes20), question_id, convert(OUTCOMES, bytes32))
    )


@internal
def _resolve(question_id: bytes32, price: int256):
    self.questions[question_id].resolved = True
    reported: DynArray[uint256, 2] = payouts._payouts(price)
    extcall IConditionalTokens(ctf).reportPayouts(question_id, reported)
    log QuestionResolved(questionID=question_id, settledPrice=price, payouts=reported)


@internal
@view
def _check_open(question_id: bytes32):
    if not self._is_initialized(question_id):
        raw_revert(method_id("NotInitialized()"))
    if self.questions[question_id].resolved:
        raw_revert(method_id("AlreadyResolved()"))


@internal
@view
def _check_flagged_for(question_id: bytes32, period_s: uint256):
    answers_at: uint256 = self.questions[question_id].manualResolutionTimestamp
    if answers_at == 0:
        raw_revert(method_id("NotFlagged()"))
    if block.timestamp < answers_at - SAFETY_S + period_s:
        raw_revert(method_id("SafetyPeriodNotPassed()"))


@internal
@view
def _ends_at(question_id: bytes32) -> uint256:
    stated: uint256 = self.questions[question_id].liveness
    return self.questions[question_id].requestTimestamp + (stated if stated != 0 else END_S)
