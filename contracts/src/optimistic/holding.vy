# pragma version 0.4.3
"""
@title Holding
@license Apache-2.0
@notice The admin may pause a question, or flag it: announce that it will answer it itself after the
        safety period, within a week; then the announcement lapses. Both hold up its resolution and
        nothing else, and no longer than a week after its answer was there.
"""

from access import ownership
from resolution import questions

uses: ownership
uses: questions

event QuestionPaused:
    questionID: indexed(bytes32)


event QuestionUnpaused:
    questionID: indexed(bytes32)


SAFETY_S: constant(uint256) = 3_600
# How long the admin may answer after that: an old flag must not be a power to answer without notice.
ANSWER_S: constant(uint256) = 7 * 24 * 3600
HOLD_S: constant(uint256) = 7 * 24 * 3600


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
def answerPeriod() -> uint256:
    """
    @notice How many seconds after the safety period the admin may answer, before the flag lapses.
    @return Seconds
    """
    return ANSWER_S


@external
@pure
def holdPeriod() -> uint256:
    """
    @notice How many seconds after its answer was there a question can still be held up.
    @return Seconds
    """
    return HOLD_S


@external
@view
def isFlagged(questionID: bytes32) -> bool:
    """
    @notice Whether the admin has announced to answer the question itself.
    @param questionID The question
    @return True until that is withdrawn or has lapsed
    """
    return self._is_flagged(questionID)


@external
def flag(questionID: bytes32):
    """
    @notice Announce to answer a question, and hold it up until then.
    @param questionID The question
    """
    ownership._check_admin()
    questions._check_open(questionID)
    if self._is_flagged(questionID):
        raw_revert(method_id("Flagged()"))
    questions.questions[questionID].manualResolutionTimestamp = block.timestamp + SAFETY_S
    questions.questions[questionID].paused = True
    log questions.QuestionFlagged(questionID=questionID)


@external
def unflag(questionID: bytes32):
    """
    @notice Take the announcement back.
    @param questionID The question
    """
    ownership._check_admin()
    questions._check_open(questionID)
    if questions.questions[questionID].manualResolutionTimestamp == 0:
        raw_revert(method_id("NotFlagged()"))
    self._withdraw_announcement(questionID)
    questions.questions[questionID].paused = False


@external
def pause(questionID: bytes32):
    """
    @notice Hold a question up.
    @param questionID The question
    """
    ownership._check_admin()
    questions._check_open(questionID)
    questions.questions[questionID].paused = True
    log QuestionPaused(questionID=questionID)


@external
def unpause(questionID: bytes32):
    """
    @notice Let a question go on; an announced answer is not announced any more.
    @param questionID The question
    """
    ownership._check_admin()
    questions._check_open(questionID)
    # Otherwise the admin could answer a question that looks ordinary, at any later time.
    if questions.questions[questionID].manualResolutionTimestamp != 0:
        self._withdraw_announcement(questionID)
    questions.questions[questionID].paused = False
    log QuestionUnpaused(questionID=questionID)


@internal
def _withdraw_announcement(question_id: bytes32):
    questions.questions[question_id].manualResolutionTimestamp = 0
    log questions.QuestionUnflagged(questionID=question_id)


@internal
@view
def _is_flagged(question_id: bytes32) -> bool:
    answers_at: uint256 = questions.questions[question_id].manualResolutionTimestamp
    return answers_at != 0 and block.timestamp < answers_at + ANSWER_S


@internal
@view
def _is_held(question_id: bytes32, available_at: uint256) -> bool:
    return questions.questions[question_id].paused and block.timestamp < available_at + HOLD_S


@internal
@view
def _check_not_held(question_id: bytes32, available_at: uint256):
    if self._is_held(question_id, available_at):
        raw_revert(method_id("Paused()"))


@internal
@view
def _check_announced(question_id: bytes32):
    if not self._is_flagged(question_id):
        raw_revert(method_id("NotFlagged()"))
    if block.timestamp < questions.questions[question_id].manualResolutionTimestamp:
        raw_revert(method_id("SafetyPeriodNotPassed()"))
