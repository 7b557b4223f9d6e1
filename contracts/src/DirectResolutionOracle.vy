# pragma version 0.4.3
"""
@title DirectResolutionOracle
@license Apache-2.0
@notice A proposer on the creator's whitelist answers a question, and the answer is final at once.
"""

from access import ownership
from interfaces import INegRiskOperator
from interfaces import IProposerWhitelist
from interfaces import IProposerWhitelistRegistry
from interfaces import IResolvable
from resolution import ancillary
from resolution import payouts

initializes: ownership
exports: (
    ownership.admin,
    ownership.pendingAdmin,
    ownership.isAdmin,
    ownership.admins,
    ownership.transferAdmin,
    ownership.acceptAdmin,
)

event AdapterAdded:
    adapter: indexed(address)


event AdapterRemoved:
    adapter: indexed(address)


event DirectResolution:
    adapter: indexed(address)
    questionId: indexed(bytes32)
    proposer: indexed(address)
    proposedPrice: int256


whitelistRegistry: public(immutable(address))
isAdapter: public(HashMap[address, bool])


@deploy
def __init__(whitelistRegistry_: address, admin: address):
    """
    @param whitelistRegistry_ Where creators name their whitelists
    @param admin Who names the adapters that this oracle speaks to
    """
    whitelistRegistry = whitelistRegistry_
    ownership.__init__(admin)


@external
def addAdapter(adapter: address):
    """
    @notice Speak to an adapter.
    @param adapter The resolution adapter
    """
    ownership._check_admin()
    self.isAdapter[adapter] = True
    log AdapterAdded(adapter=adapter)


@external
def removeAdapter(adapter: address):
    """
    @notice Speak to an adapter no more.
    @param adapter The resolution adapter
    """
    ownership._check_admin()
    self.isAdapter[adapter] = False
    log AdapterRemoved(adapter=adapter)


@external
@nonreentrant
def proposeAndResolve(
    adapter: address,
    questionId: bytes32,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.ANCILLARY_BYTES_MAX],
    proposedPrice: int256,
) -> uint256:
    """
    @notice Answer a question. Identifier, timestamp and text are those of the question, so that a
            proposer cannot answer another than it thinks.
    @param adapter The resolution adapter
    @param questionId The question
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @param proposedPrice 1e18 for Yes, 0 for No, 5e17 for a half
    @return The bond that was taken: none.
    """
    self._check_question(adapter, questionId, identifier, timestamp, ancillaryData)
    self._resolve(adapter, questionId, proposedPrice)
    return 0


@external
@nonreentrant
def proposeAndResolveNegRisk(
    adapter: address,
    negRiskOperator: address,
    adapterQuestionId: bytes32,
    operatorQuestionId: bytes32,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.ANCILLARY_BYTES_MAX],
    proposedPrice: int256,
) -> uint256:
    """
    @notice Answer a question of a neg-risk event: Yes, which one question of an event can be, or No.
    @param adapter The adapter that holds the request
    @param negRiskOperator The operator of its event
    @param adapterQuestionId The request at the adapter
    @param operatorQuestionId The question of the event
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @param proposedPrice 1e18 for Yes, 0 for No
    @return The bond that was taken: none.
    """
    self._check_question(adapter, adapterQuestionId, identifier, timestamp, ancillaryData)
    if negRiskOperator != staticcall IResolvable(adapter).ctf():
        raw_revert(method_id("InvalidOperator()"))
    operator: INegRiskOperator = INegRiskOperator(negRiskOperator)
    if operatorQuestionId != staticcall operator.questionIds(adapterQuestionId):
        raw_revert(method_id("InvalidQuestion()"))
    if proposedPrice == payouts.YES and staticcall operator.isDetermined(operatorQuestionId):
        raw_revert(method_id("MarketAlreadyDetermined()"))
    self._resolve(adapter, adapterQuestionId, proposedPrice)
    extcall operator.resolveQuestion(operatorQuestionId)
    return 0


@internal
def _resolve(adapter: address, question_id: bytes32, price: int256):
    extcall IResolvable(adapter).resolve(question_id, price)
    log DirectResolution(
        adapter=adapter, questionId=question_id, proposer=msg.sender, proposedPrice=price
    )


@internal
@view
def _check_question(
    adapter: address,
    question_id: bytes32,
    identifier: bytes32,
    timestamp: uint256,
    text: Bytes[ancillary.ANCILLARY_BYTES_MAX],
):
    if not self.isAdapter[adapter]:
        raw_revert(method_id("NotAdapter()"))
    if identifier != payouts.YES_OR_NO_QUERY:
        raw_revert(method_id("InvalidIdentifier()"))
    asked_at: uint256 = 0
    is_resolved: bool = False
    creator: address = empty(address)
    asked_at, is_resolved, creator = staticcall IResolvable(adapter).questionState(question_id)
    if asked_at == 0:
        raw_revert(method_id("NotInitialized()"))
    if is_resolved:
        raw_revert(method_id("AlreadyResolved()"))
    if timestamp != asked_at:
        raw_revert(method_id("InvalidTimestamp()"))
    # The id of a question is the hash of its text.
    if keccak256(text) != question_id:
        raw_revert(method_id("InvalidAncillaryData()"))
    self._check_proposer(creator)


@internal
@view
def _check_proposer(creator: address):
    whitelist: address = staticcall IProposerWhitelistRegistry(whitelistRegistry).whitelistOf(
        creator
    )
    if whitelist == empty(address):
        raw_revert(method_id("NotProposer()"))
    if not staticcall IProposerWhitelist(whitelist).isProposer(msg.sender):
        raw_revert(method_id("NotProposer()"))
