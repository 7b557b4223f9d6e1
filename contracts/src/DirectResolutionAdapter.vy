# pragma version 0.4.3
"""
@title DirectResolutionAdapter
@license Apache-2.0
@notice Questions of the direct stack (`dro_moov2`). The adapter is the oracle of their conditions
        in Conditional Tokens, and reports the outcome that the direct resolution oracle gives. Where
        nobody answers after a question's stated end, anybody may say so: then the admin may answer
        a week later, and a month later anybody may end the question at a half, or at No in an
        event. Its proposers may answer at any time before. The admin may take such a flag back for a
        year after the end, and no longer.
"""

from access import ownership
from interfaces import IResolvable
from resolution import ancillary
from resolution import creation_fee
from resolution import payouts
from resolution import questions
from tokens import conditions

implements: IResolvable
initializes: ownership
initializes: questions
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
    questions.ctf,
    questions.marketRegistry,
    questions.getQuestion,
    questions.questionState,
    questions.isInitialized,
    questions.questionIdOf,
    questions.conditionIdOf,
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

# When a question ends that states no end, and the latest end, in seconds after it was asked.
END_S: constant(uint256) = 2 * 365 * 24 * 3600
END_S_MAX: constant(uint256) = 10 * 365 * 24 * 3600
# What lies between a flag and the admin's answer, and between a flag and the fall-back.
SAFETY_S: constant(uint256) = 7 * 24 * 3600
FALLBACK_S: constant(uint256) = 30 * 24 * 3600
# How long after its end a flag can be taken back, so that no admin holds a question up for ever.
UNFLAG_S: constant(uint256) = 365 * 24 * 3600

oracle: public(immutable(address))


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
    oracle = oracle_
    questions.__init__(conditionalTokens, marketRegistry_)
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
    question_id: bytes32 = questions._ask(text, rewardToken, 0, 0, liveness)
    creation_fee._collect(msg.sender)
    log questions.QuestionInitialized(
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
    questions._check_open(questionId)
    questions._resolve(questionId, price)


@external
def flag(questionID: bytes32):
    """
    @notice Say that a question has no answer though its end has passed, for anybody. It lets the
            delays of the admin's answer and of the fall-back run, and stops no proposer.
    @param questionID The question
    """
    questions._check_open(questionID)
    if questions.questions[questionID].manualResolutionTimestamp != 0:
        raw_revert(method_id("Flagged()"))
    if block.timestamp < self._ends_at(questionID):
        raw_revert(method_id("NotEnded()"))
    questions.questions[questionID].manualResolutionTimestamp = block.timestamp + SAFETY_S
    log questions.QuestionFlagged(questionID=questionID)


@external
def unflag(questionID: bytes32):
    """
    @notice Take a flag back, for the admin, within a year of the question's end: that was put off, or
            its proposers will answer. Anybody may flag it again.
    @param questionID The question
    """
    ownership._check_admin()
    questions._check_open(questionID)
    if block.timestamp >= self._ends_at(questionID) + UNFLAG_S:
        raw_revert(method_id("UnflagPeriodOver()"))
    if questions.questions[questionID].manualResolutionTimestamp == 0:
        raw_revert(method_id("NotFlagged()"))
    questions.questions[questionID].manualResolutionTimestamp = 0
    log questions.QuestionUnflagged(questionID=questionID)


@external
@nonreentrant
def resolveManually(questionId: bytes32, payouts_: DynArray[uint256, conditions.OUTCOMES]):
    """
    @notice Answer a question that has been flagged for the whole safety period, for the admin.
    @param questionId The question
    @param payouts_ What the two outcomes pay, as shares
    """
    ownership._check_admin()
    questions._check_open(questionId)
    self._check_flagged_for(questionId, SAFETY_S)
    questions._resolve_manually(questionId, payouts_)


@external
@nonreentrant
def resolveByFallback(questionId: bytes32):
    """
    @notice End a question that has been flagged for the whole fall-back period, for anybody.
    @param questionId The question
    """
    questions._check_open(questionId)
    self._check_flagged_for(questionId, FALLBACK_S)
    # Without a registry of its own the adapter serves a neg-risk operator, which takes no half.
    is_event: bool = questions.marketRegistry == empty(address)
    questions._resolve(questionId, payouts.NO if is_event else payouts.UNKNOWN)


@external
@view
def endsAt(questionId: bytes32) -> uint256:
    """
    @notice When a question can be flagged; zero for one that was not asked.
    @param questionId The question
    @return The second, since 1970
    """
    if not questions._is_initialized(questionId):
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
    return questions.questions[questionID].manualResolutionTimestamp != 0


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
def unflagPeriod() -> uint256:
    """
    @notice How many seconds after its end a question's flag can be taken back.
    @return Seconds
    """
    return UNFLAG_S


@external
@pure
def fallbackPeriod() -> uint256:
    """
    @notice How many seconds lie between a flag and the end by fall-back.
    @return Seconds
    """
    return FALLBACK_S


@internal
@view
def _check_flagged_for(question_id: bytes32, period_s: uint256):
    answers_at: uint256 = questions.questions[question_id].manualResolutionTimestamp
    if answers_at == 0:
        raw_revert(method_id("NotFlagged()"))
    if block.timestamp < answers_at - SAFETY_S + period_s:
        raw_revert(method_id("SafetyPeriodNotPassed()"))


@internal
@view
def _ends_at(question_id: bytes32) -> uint256:
    stated: uint256 = questions.questions[question_id].liveness
    return questions.questions[question_id].requestTimestamp + (stated if stated != 0 else END_S)
