# pragma version 0.4.3
"""
@title OptimisticOracle
@license Apache-2.0
@notice Anybody proposes an answer against a bond; what nobody disputes in time is true. A dispute
        goes back to the requester, which may ask again: then the answer to its second request
        decides the first. Otherwise the arbiter decides. Where the arbiter does not, within a week,
        the request settles at its fall-back, so that no market waits for ever.
"""

from access import ownership
from interfaces import IDisputed
from interfaces import IERC20
from interfaces import IOptimisticOracle
from optimistic import appointments
from optimistic import requests
from resolution import ancillary
from resolution import payouts

implements: IOptimisticOracle
initializes: ownership
initializes: appointments[ownership := ownership]
initializes: requests
exports: (
    ownership.admin,
    ownership.pendingAdmin,
    ownership.isAdmin,
    ownership.admins,
    ownership.transferAdmin,
    ownership.acceptAdmin,
)
exports: (
    appointments.arbiter,
    appointments.treasury,
    appointments.isAdapter,
    appointments.setArbiter,
    appointments.setTreasury,
    appointments.addAdapter,
    appointments.removeAdapter,
)
exports: (requests.currency, requests.owed, requests.withdraw)

event RequestPrice:
    requester: indexed(address)
    identifier: bytes32
    timestamp: uint256
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]
    currency: address
    reward: uint256
    finalFee: uint256


event ProposePrice:
    requester: indexed(address)
    proposer: indexed(address)
    identifier: bytes32
    timestamp: uint256
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]
    proposedPrice: int256
    expirationTimestamp: uint256
    currency: address


event DisputePrice:
    requester: indexed(address)
    proposer: indexed(address)
    disputer: indexed(address)
    identifier: bytes32
    timestamp: uint256
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]
    proposedPrice: int256


event Settle:
    requester: indexed(address)
    proposer: indexed(address)
    disputer: indexed(address)
    identifier: bytes32
    timestamp: uint256
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]
    price: int256
    payout: uint256


@deploy
def __init__(currency: address, admin: address, arbiter_: address, treasury_: address):
    """
    @param currency What rewards and bonds are paid in
    @param admin Who names adapters, the arbiter and the treasury
    @param arbiter_ Who decides what was disputed
    @param treasury_ Who gets half of the bonds that are lost
    """
    requests.__init__(currency)
    ownership.__init__(admin)
    appointments.__init__(arbiter_, treasury_)


@external
@nonreentrant
def requestPrice(
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
    reward: uint256,
    bond: uint256,
    liveness: uint256,
    creator: address,
    allowsUnknown: bool,
):
    """
    @notice Ask for a price, for an adapter, which pays the reward.
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp Now
    @param ancillaryData The text of the question
    @param reward What the answer is worth to who gives it
    @param bond What a proposal and a dispute put at stake
    @param liveness How many seconds a proposal can be disputed
    @param creator Who gets the reward back where nobody has earned it
    @param allowsUnknown Whether a half is an answer
    """
    if not appointments.isAdapter[msg.sender]:
        raw_revert(method_id("NotAdapter()"))
    if identifier != payouts.YES_OR_NO_QUERY:
        raw_revert(method_id("InvalidIdentifier()"))
    key: bytes32 = requests._key(msg.sender, identifier, timestamp, keccak256(ancillaryData))
    requests._open(key, creator, reward, bond, liveness, allowsUnknown)
    self._take(msg.sender, reward)
    self._log_request(identifier, timestamp, ancillaryData, reward)


@external
def replaceRequest(
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
    next: uint256,
):
    """
    @notice Ask again on the same terms, for the requester of a request that was disputed, or that
            it was too early for. The reward goes over; the new answer decides the old dispute.
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When the request to replace was made
    @param ancillaryData The text of the question
    @param next The time of the new request
    """
    text_hash: bytes32 = keccak256(ancillaryData)
    key: bytes32 = requests._key(msg.sender, identifier, timestamp, text_hash)
    successor: bytes32 = requests._key(msg.sender, identifier, next, text_hash)
    if not requests._is_too_early(key):
        requests._check_state(key, requests.DISPUTED)
    requests._check_not_replaced(key)
    replaced: requests.Request = requests.requests[key]
    requests._open(
        successor,
        replaced.creator,
        replaced.reward,
        replaced.bond,
        replaced.liveness,
        replaced.allowsUnknown,
    )
    requests.requests[key].reward = 0
    requests.requests[key].successor = successor
    self._log_request(identifier, next, ancillaryData, replaced.reward)


@external
def abandonRequest(
    identifier: bytes32, timestamp: uint256, ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX]
):
    """
    @notice Ask no more, for the requester of a request that nobody has answered; its reward goes
            back. One that was answered goes on, and everybody gets what is due.
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    """
    key: bytes32 = requests._key(msg.sender, identifier, timestamp, keccak256(ancillaryData))
    if requests._state(key) == requests.REQUESTED:
        requests._close(key, requests.IGNORE, block.timestamp)
    elif not requests._is_too_early(key):
        requests.abandoned[key] = True
        return
    requests._return_reward(key)


@external
@nonreentrant
def proposePrice(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
    proposedPrice: int256,
) -> uint256:
    """
    @notice Answer, against the bond; return it. The bond comes back unless the answer is wrong.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @param proposedPrice 1e18 for Yes, 0 for No, 5e17 for a half
    @return What the proposal took of the caller
    """
    key: bytes32 = requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    requests._check_state(key, requests.REQUESTED)
    requests._check_price(key, proposedPrice)
    bond: uint256 = requests.requests[key].bond
    expires_at: uint256 = block.timestamp + requests.requests[key].liveness
    requests.requests[key].proposer = msg.sender
    requests.requests[key].proposedPrice = proposedPrice
    requests.requests[key].expiresAt = expires_at
    self._take(msg.sender, bond)
    log ProposePrice(
        requester=requester,
        proposer=msg.sender,
        identifier=identifier,
        timestamp=timestamp,
        ancillaryData=ancillaryData,
        proposedPrice=proposedPrice,
        expirationTimestamp=expires_at,
        currency=requests.CURRENCY,
    )
    return bond


@external
@nonreentrant
def disputePrice(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
) -> uint256:
    """
    @notice Say that an answer is wrong, within its liveness and against a bond of the same size;
            return it.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @return What the dispute took of the caller
    """
    key: bytes32 = requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    requests._check_state(key, requests.PROPOSED)
    requests.requests[key].disputer = msg.sender
    requests.requests[key].disputedAt = block.timestamp
    bond: uint256 = requests.requests[key].bond
    self._take(msg.sender, bond)
    log DisputePrice(
        requester=requester,
        proposer=requests.requests[key].proposer,
        disputer=msg.sender,
        identifier=identifier,
        timestamp=timestamp,
        ancillaryData=ancillaryData,
        proposedPrice=requests.requests[key].proposedPrice,
    )
    extcall IDisputed(requester).priceDisputed(identifier, timestamp, ancillaryData, 0)
    return bond


@external
@nonreentrant
def arbitrate(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
    price: int256,
):
    """
    @notice Decide a disputed request that was not replaced, within the arbiter's week. The lowest
            number there is says that it is too early: bonds go back, the question is asked again.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @param price 1e18 for Yes, 0 for No, 5e17 for a half
    """
    if msg.sender != appointments.arbiter:
        raw_revert(method_id("NotArbiter()"))
    key: bytes32 = requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    requests._check_state(key, requests.DISPUTED)
    request: requests.Request = requests.requests[key]
    requests._check_not_replaced(key)
    if block.timestamp >= request.disputedAt + requests.ARBITRATION_S:
        raw_revert(method_id("ArbitrationOver()"))
    if price != requests.IGNORE:
        requests._check_price(key, price)
    requests._close(key, price, block.timestamp)
    requests._pay_dispute(request, price, appointments.treasury)
    if price == requests.IGNORE and requests.abandoned[key]:
        # It is not asked again, so no other request would take the reward over.
        requests._return_reward(key)
    self._log_settled(requester, identifier, timestamp, ancillaryData, key)


@external
@nonreentrant
def settle(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
) -> uint256:
    """
    @notice Fix the price of a request that has one, for anybody, and say who is owed what; return
            the reward. One that is settled stays as it is.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @return The reward; zero of one that was settled before
    """
    key: bytes32 = requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    if requests._state(key) == requests.SETTLED:
        return 0
    requests._settle(key, appointments.treasury)
    self._log_settled(requester, identifier, timestamp, ancillaryData, key)
    return requests.requests[key].reward


@external
@view
def hasPrice(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
) -> bool:
    """
    @notice Whether a request is settled or can be.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @return True when there is an answer
    """
    return requests._outlook(
        requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    )[0]


@external
@view
def answer(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
) -> (bool, int256, uint256):
    """
    @notice Whether a request has a price, settled or not, which one, and since when.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @return Whether there is an answer, the answer, and the second from which it stood
    """
    return requests._outlook(
        requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    )


@external
@view
def getRequest(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
) -> requests.Request:
    """
    @notice All that is known of a request.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @return Its parties, terms and state
    """
    return requests.requests[
        requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    ]


@external
@view
def getState(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    ancillaryData: Bytes[ancillary.SIGNED_BYTES_MAX],
) -> uint256:
    """
    @notice 0 not requested, 1 requested, 2 proposed, 3 expired, 4 disputed, 6 settled.
    @param requester The adapter that asked
    @param identifier What is asked: `YES_OR_NO_QUERY`
    @param timestamp When it was asked
    @param ancillaryData The text of the question
    @return The state's number
    """
    return requests._state(
        requests._key(requester, identifier, timestamp, keccak256(ancillaryData))
    )


@internal
def _take(payer: address, amount: uint256):
    if amount == 0:
        return
    if not extcall IERC20(requests.CURRENCY).transferFrom(
        payer, self, amount, default_return_value=True
    ):
        raw_revert(method_id("TransferFailed()"))


@internal
def _log_request(
    identifier: bytes32,
    timestamp: uint256,
    text: Bytes[ancillary.SIGNED_BYTES_MAX],
    reward: uint256,
):
    log RequestPrice(
        requester=msg.sender,
        identifier=identifier,
        timestamp=timestamp,
        ancillaryData=text,
        currency=requests.CURRENCY,
        reward=reward,
        finalFee=0,
    )


@internal
def _log_settled(
    requester: address,
    identifier: bytes32,
    timestamp: uint256,
    text: Bytes[ancillary.SIGNED_BYTES_MAX],
    key: bytes32,
):
    log Settle(
        requester=requester,
        proposer=requests.requests[key].proposer,
        disputer=requests.requests[key].disputer,
        identifier=identifier,
        timestamp=timestamp,
        ancillaryData=text,
        price=requests.requests[key].price,
        payout=requests.requests[key].reward,
    )
