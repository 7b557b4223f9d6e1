# pragma version 0.4.3
"""
@title DirectResolutionAdapter
@license Apache-2.0
@notice Questions of the direct stack (`dro_moov2`). The adapter is the oracle of their conditions
        in Conditional Tokens, and reports the outcome that the direct resolution oracle gives.
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
    @notice Ask a question, for the creation fee; return its id. There is no proposal to reward, to
            back with a bond or to wait for, so those three are zero. A condition that somebody
            else has prepared for us in the meantime is the same condition.
    """
    if reward != 0 or proposalBond != 0 or liveness != 0:
        raw_revert(method_id("TermsNotSupported()"))
    text: Bytes[ancillary.SIGNED_BYTES_MAX] = ancillary._signed(ancillaryData, msg.sender)
    question_id: bytes32 = keccak256(text)
    if self._is_initialized(question_id):
        raw_revert(method_id("AlreadyInitialized()"))
    self.questions[question_id] = Question(
        requestTimestamp=block.timestamp,
        reward=0,
        proposalBond=0,
        liveness=0,
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
    """
    if msg.sender != oracle:
        raw_revert(method_id("NotOracle()"))
    if not self._is_initialized(questionId):
        raw_revert(method_id("NotInitialized()"))
    if self.questions[questionId].resolved:
        raw_revert(method_id("AlreadyResolved()"))
    self.questions[questionId].resolved = True
    reported: DynArray[uint256, 2] = payouts._payouts(price)
    extcall IConditionalTokens(ctf).reportPayouts(questionId, reported)
    log QuestionResolved(questionID=questionId, settledPrice=price, payouts=reported)


@external
@view
def getQuestion(questionID: bytes32) -> Question:
    """
    @notice All that is known of a question; all zero for one that was not asked.
    """
    return self.questions[questionID]


@external
@view
def questionState(questionId: bytes32) -> (uint256, bool, address):
    """
    @notice When it was asked, whether it is resolved, and who asked.
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
    """
    return self._is_initialized(questionID)


@external
@view
def questionIdOf(ancillaryData: Bytes[ancillary.ANCILLARY_BYTES_MAX], initializer: address) -> bytes32:
    """
    @notice The id that the question has, or would have, when this account asks it.
    """
    return keccak256(ancillary._signed(ancillaryData, initializer))


@external
@view
def conditionIdOf(questionId: bytes32) -> bytes32:
    """
    @notice The condition of a question.
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
