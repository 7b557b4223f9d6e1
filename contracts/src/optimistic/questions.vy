# pragma version 0.4.3
"""
@title Questions
@license Apache-2.0
@notice What the optimistic adapter knows of each question, in the form that clients of the field
        read: `reset` says that it was disputed once and asked again, `refund` that it was disputed
        again and is the arbiter's, `paused` that it is held up.
"""

from resolution import ancillary

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

questions: HashMap[bytes32, Question]


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
def isFlagged(questionID: bytes32) -> bool:
    """
    @notice Whether the admin has announced to answer the question itself.
    @param questionID The question
    @return True while it is flagged
    """
    return self.questions[questionID].manualResolutionTimestamp != 0


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
    return self._condition_id(questionId)


@internal
def _add(
    question_id: bytes32,
    text: Bytes[ancillary.SIGNED_BYTES_MAX],
    reward_token: address,
    reward: uint256,
    bond: uint256,
    liveness: uint256,
):
    if self._is_initialized(question_id):
        raw_revert(method_id("AlreadyInitialized()"))
    self.questions[question_id].requestTimestamp = block.timestamp
    self.questions[question_id].reward = reward
    self.questions[question_id].proposalBond = bond
    self.questions[question_id].liveness = liveness
    self.questions[question_id].rewardToken = reward_token
    self.questions[question_id].creator = msg.sender
    self.questions[question_id].ancillaryData = text


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


@internal
@view
def _condition_id(question_id: bytes32) -> bytes32:
    return keccak256(concat(convert(self, bytes20), question_id, convert(OUTCOMES, bytes32)))
