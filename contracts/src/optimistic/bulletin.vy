# pragma version 0.4.3
"""
@title Bulletin
@license Apache-2.0
@notice A board of clarifications of questions. Anybody may post; readers decide whose updates count:
        the creator's, as a rule. Nothing on it moves a question.
"""

# Updates of one account on one question, and the length of each.
UPDATES_MAX: constant(uint256) = 16
UPDATE_BYTES_MAX: constant(uint256) = 1_024

event AncillaryDataUpdated:
    questionID: indexed(bytes32)
    owner: indexed(address)
    update: Bytes[UPDATE_BYTES_MAX]


struct AncillaryDataUpdate:
    timestamp: uint256
    update: Bytes[UPDATE_BYTES_MAX]


updates: HashMap[bytes32, DynArray[AncillaryDataUpdate, UPDATES_MAX]]


@external
def postUpdate(questionID: bytes32, update: Bytes[UPDATE_BYTES_MAX]):
    """
    @notice Post a clarification of a question.
    @param questionID The question, which need not be asked yet
    @param update The text, at most 1,024 bytes; an account has at most 16 updates of a question
    """
    key: bytes32 = self._key(questionID, msg.sender)
    if len(self.updates[key]) == UPDATES_MAX:
        raw_revert(method_id("TooManyUpdates()"))
    self.updates[key].append(AncillaryDataUpdate(timestamp=block.timestamp, update=update))
    log AncillaryDataUpdated(questionID=questionID, owner=msg.sender, update=update)


@external
@view
def getUpdates(
    questionID: bytes32, owner: address
) -> DynArray[AncillaryDataUpdate, UPDATES_MAX]:
    """
    @notice The clarifications of a question by one account.
    @param questionID The question
    @param owner Who posted them
    @return The updates with their times, the first one first
    """
    return self.updates[self._key(questionID, owner)]


@external
@view
def getLatestUpdate(questionID: bytes32, owner: address) -> AncillaryDataUpdate:
    """
    @notice The last clarification of a question by one account.
    @param questionID The question
    @param owner Who posted it
    @return The update with its time; a time of zero when there is none
    """
    key: bytes32 = self._key(questionID, owner)
    count: uint256 = len(self.updates[key])
    if count == 0:
        return empty(AncillaryDataUpdate)
    return self.updates[key][count - 1]


@internal
@pure
def _key(question_id: bytes32, owner: address) -> bytes32:
    return keccak256(abi_encode(question_id, owner))
