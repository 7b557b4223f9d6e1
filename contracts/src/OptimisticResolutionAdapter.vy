# pragma version 0.4.3
"""
@title OptimisticResolutionAdapter
@license Apache-2.0
@notice Questions of the optimistic stack (`alt_moov2`). The adapter is the oracle of their
        conditions and asks the optimistic oracle for the answers. The first dispute asks again, the
        second goes to the arbiter. The admin may hold a question up and, after an announced delay,
        answer it; a hold ends by itself a week after the answer was there.
"""

from access import ownership
from interfaces import IDisputed
from interfaces import IERC20
from interfaces import IOptimisticOracle
from optimistic import bulletin
from optimistic import holding
from resolution import ancillary
from resolution import payouts
from resolution import questions
from tokens import conditions

implements: IDisputed
initializes: ownership
initializes: bulletin
initializes: questions
initializes: holding[ownership := ownership, questions := questions]
exports: (
    ownership.admin,
    ownership.pendingAdmin,
    ownership.isAdmin,
    ownership.admins,
    ownership.transferAdmin,
    ownership.acceptAdmin,
)
exports: (bulletin.postUpdate, bulletin.getUpdates, bulletin.getLatestUpdate)
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
    holding.safetyPeriod,
    holding.answerPeriod,
    holding.holdPeriod,
    holding.isFlagged,
    holding.flag,
    holding.unflag,
    holding.pause,
    holding.unpause,
)

event QuestionReset:
    questionID: indexed(bytes32)


event QuestionEscalated:
    questionID: indexed(bytes32)


IGNORE: constant(int256) = min_value(int256)
LIVENESS_MIN_S: constant(uint256) = 60
LIVENESS_MAX_S: constant(uint256) = 7 * 24 * 3600

oracle: public(immutable(address))
currency: public(immutable(address))
allowsUnknown: public(immutable(bool))
defaultBond: public(immutable(uint256))
defaultLiveness: public(immutable(uint256))


@deploy
def __init__(
    conditionalTokens: address,
    oracle_: address,
    marketRegistry_: address,
    currency_: address,
    admin: address,
    bond: uint256,
    liveness: uint256,
    allowsUnknown_: bool,
):
    """
    @param conditionalTokens Where conditions are prepared and payouts reported: Conditional Tokens,
           or a neg-risk operator
    @param oracle_ The optimistic oracle
    @param marketRegistry_ Where creators are written down; zero for a neg-risk operator's requests
    @param currency_ What rewards and bonds are paid in
    @param admin Who may hold questions up, and answer them after a delay
    @param bond What a proposal puts at stake, unless its question says more
    @param liveness How many seconds a proposal can be disputed, unless its question says more
    @param allowsUnknown_ Whether a half is an answer: in a neg-risk event it is not
    """
    if bond == 0 or liveness < LIVENESS_MIN_S or liveness > LIVENESS_MAX_S:
        raw_revert(method_id("TermsNotSupported()"))
    oracle = oracle_
    currency = currency_
    allowsUnknown = allowsUnknown_
    defaultBond = bond
    defaultLiveness = liveness
    questions.__init__(conditionalTokens, marketRegistry_)
    ownership.__init__(admin)
    extcall IERC20(currency_).approve(oracle_, max_value(uint256), default_return_value=True)


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
    @notice Ask a question, and pay in the reward for its answer; return its id. A bond of zero is
            the default one, and so is a liveness of zero; neither is ever less than the default.
    @param ancillaryData The text; the initializer's address is appended to it
    @param rewardToken The currency, where there is a reward
    @param reward What the answer is worth to who gives it
    @param proposalBond What a proposal puts at stake; zero is the default
    @param liveness How many seconds a proposal can be disputed; zero is the default
    @return The question's id
    """
    bond: uint256 = proposalBond if proposalBond != 0 else defaultBond
    seconds: uint256 = liveness if liveness != 0 else defaultLiveness
    if reward != 0 and rewardToken != currency:
        raw_revert(method_id("TokenNotSupported()"))
    if bond < defaultBond or seconds < defaultLiveness or seconds > LIVENESS_MAX_S:
        raw_revert(method_id("TermsNotSupported()"))
    text: Bytes[ancillary.SIGNED_BYTES_MAX] = ancillary._signed(ancillaryData, msg.sender)
    question_id: bytes32 = questions._ask(text, currency, reward, bond, seconds)
    if reward != 0:
        if not extcall IERC20(currency).transferFrom(
            msg.sender, self, reward, default_return_value=True
        ):
            raw_revert(method_id("TransferFailed()"))
    extcall IOptimisticOracle(oracle).requestPrice(
        payouts.YES_OR_NO_QUERY,
        block.timestamp,
        text,
        reward,
        bond,
        seconds,
        msg.sender,
        allowsUnknown,
    )
    log questions.QuestionInitialized(
        questionID=question_id,
        requestTimestamp=block.timestamp,
        creator=msg.sender,
        ancillaryData=text,
        rewardToken=currency,
        reward=reward,
        proposalBond=bond,
    )
    return question_id


@external
def priceDisputed(
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
    refund: uint256,
):
    """
    @notice Handle a dispute, called by the oracle: ask again after the first, leave the second to the
            arbiter. One of a question that was answered already changes nothing here.
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @param refund The reward, which is at the oracle
    """
    if msg.sender != oracle:
        raw_revert(method_id("NotOracle()"))
    question_id: bytes32 = keccak256(ancillaryData)
    if questions.questions[question_id].resolved:
        return
    if questions.questions[question_id].reset:
        questions.questions[question_id].refund = True
        log QuestionEscalated(questionID=question_id)
    else:
        questions.questions[question_id].reset = True
        self._ask_again(question_id, ancillaryData)


@external
@nonreentrant
def resolve(questionId: bytes32):
    """
    @notice Report the answer, for anybody, once it is there and the question is not held up. Where
            it was too early for one, ask again: both disputes are still to come.
    @param questionId The question
    """
    questions._check_open(questionId)
    text: Bytes[ancillary.SIGNED_BYTES_MAX] = questions.questions[questionId].ancillaryData
    asked_at: uint256 = questions.questions[questionId].requestTimestamp
    has_price: bool = False
    price: int256 = 0
    available_at: uint256 = 0
    has_price, price, available_at = self._answer(asked_at, text)
    if not has_price:
        raw_revert(method_id("PriceNotAvailable()"))
    holding._check_not_held(questionId, available_at)
    extcall IOptimisticOracle(oracle).settle(self, payouts.YES_OR_NO_QUERY, asked_at, text)
    if price == IGNORE:
        questions.questions[questionId].reset = False
        questions.questions[questionId].refund = False
        self._ask_again(questionId, text)
        return
    questions._resolve(questionId, price)


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
    holding._check_announced(questionId)
    questions._resolve_manually(questionId, payouts_)
    if payouts_[0] == payouts_[1] and not allowsUnknown:
        raw_revert(method_id("InvalidPayouts()"))
    extcall IOptimisticOracle(oracle).abandonRequest(
        payouts.YES_OR_NO_QUERY,
        questions.questions[questionId].requestTimestamp,
        questions.questions[questionId].ancillaryData,
    )


@external
@view
def ready(questionId: bytes32) -> bool:
    """
    @notice Whether there is an answer that `resolve` would take now, or a new request to make.
    @param questionId The question
    @return True when `resolve` would change something
    """
    if not questions._is_initialized(questionId) or questions.questions[questionId].resolved:
        return False
    has_price: bool = False
    price: int256 = 0
    available_at: uint256 = 0
    has_price, price, available_at = self._answer(
        questions.questions[questionId].requestTimestamp,
        questions.questions[questionId].ancillaryData,
    )
    return has_price and not holding._is_held(questionId, available_at)


@external
@view
def getExpectedPayouts(questionId: bytes32) -> DynArray[uint256, conditions.OUTCOMES]:
    """
    @notice What the answer that is there will pay, before it is reported.
    @param questionId The question
    @return What the two outcomes will pay, as shares
    """
    questions._check_open(questionId)
    has_price: bool = False
    price: int256 = 0
    available_at: uint256 = 0
    has_price, price, available_at = self._answer(
        questions.questions[questionId].requestTimestamp,
        questions.questions[questionId].ancillaryData,
    )
    if not has_price or price == IGNORE:
        raw_revert(method_id("PriceNotAvailable()"))
    return payouts._payouts(price)


@internal
@view
def _answer(
    asked_at: uint256, text: Bytes[ancillary.SIGNED_BYTES_MAX]
) -> (bool, int256, uint256):
    return staticcall IOptimisticOracle(oracle).answer(
        self, payouts.YES_OR_NO_QUERY, asked_at, text
    )


@internal
def _ask_again(question_id: bytes32, text: Bytes[ancillary.SIGNED_BYTES_MAX]):
    """
    @dev Two requests of a question differ by their times alone.
    """
    asked_at: uint256 = questions.questions[question_id].requestTimestamp
    next: uint256 = max(block.timestamp, asked_at + 1)
    questions.questions[question_id].requestTimestamp = next
    extcall IOptimisticOracle(oracle).replaceRequest(
        payouts.YES_OR_NO_QUERY, asked_at, text, next
    )
    log QuestionReset(questionID=question_id)
