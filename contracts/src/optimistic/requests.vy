# pragma version 0.4.3
"""
@title Requests
@license Apache-2.0
@notice The life of a request for a price, and whose its money is. A request is known by who made
        it, its identifier, its time and its text. Nothing is ever sent to anybody: what somebody is
        owed waits until it is withdrawn, so that no receiver can hold a settlement up.
"""

from interfaces import IERC20
from resolution import payouts

struct Request:
    proposer: address
    disputer: address
    creator: address
    reward: uint256
    bond: uint256
    liveness: uint256
    proposedPrice: int256
    price: int256
    requestedAt: uint256
    expiresAt: uint256
    disputedAt: uint256
    # When the price was there, also if nobody has settled until later; zero while it is not settled.
    availableAt: uint256
    allowsUnknown: bool
    # What took its place after a dispute, and will decide that dispute with its own price.
    successor: bytes32
    # Whether the arbiter's silence gave the price: then nobody was found wrong, and nobody loses a bond.
    isFallback: bool


INVALID: constant(uint256) = 0
REQUESTED: constant(uint256) = 1
PROPOSED: constant(uint256) = 2
EXPIRED: constant(uint256) = 3
DISPUTED: constant(uint256) = 4
SETTLED: constant(uint256) = 6

# "It is too early to say": the arbiter's alone, and the request is made again.
IGNORE: constant(int256) = min_value(int256)
# How long the arbiter has.
ARBITRATION_S: constant(uint256) = 7 * 24 * 3600
# How long after a first dispute its bonds wait for another proposal.
RELEASE_S: constant(uint256) = 7 * 24 * 3600

CURRENCY: immutable(address)

requests: HashMap[bytes32, Request]
owed: public(HashMap[address, uint256])
# Whether its requester will never ask again, whatever comes of a proposal that was made before.
abandoned: HashMap[bytes32, bool]


@deploy
def __init__(currency_: address):
    CURRENCY = currency_


@external
@view
def currency() -> address:
    """
    @notice What rewards and bonds are paid in.
    @return The token's address
    """
    return CURRENCY


@external
@nonreentrant
def withdraw() -> uint256:
    """
    @notice Pay the caller all that it is owed; return how much.
    @return How much there was
    """
    amount: uint256 = self.owed[msg.sender]
    if amount == 0:
        raw_revert(method_id("NothingOwed()"))
    self.owed[msg.sender] = 0
    if not extcall IERC20(CURRENCY).transfer(msg.sender, amount, default_return_value=True):
        raw_revert(method_id("TransferFailed()"))
    return amount


@internal
@pure
def _key(
    requester: address, identifier: bytes32, timestamp: uint256, text_hash: bytes32
) -> bytes32:
    return keccak256(abi_encode(requester, identifier, timestamp, text_hash))


@internal
def _open(
    key: bytes32,
    creator: address,
    reward: uint256,
    bond: uint256,
    liveness: uint256,
    allows_unknown: bool,
):
    self._check_state(key, INVALID)
    request: Request = empty(Request)
    request.creator = creator
    request.reward = reward
    request.bond = bond
    request.liveness = liveness
    request.requestedAt = block.timestamp
    request.allowsUnknown = allows_unknown
    self.requests[key] = request


@internal
@view
def _state(key: bytes32) -> uint256:
    if self.requests[key].requestedAt == 0:
        return INVALID
    if self.requests[key].availableAt != 0:
        return SETTLED
    if self.requests[key].disputedAt != 0:
        return DISPUTED
    if self.requests[key].expiresAt == 0:
        return REQUESTED
    if block.timestamp < self.requests[key].expiresAt:
        return PROPOSED
    return EXPIRED


@internal
@view
def _check_state(key: bytes32, state: uint256):
    if self._state(key) != state:
        raw_revert(method_id("InvalidState()"))


@internal
@view
def _check_price(key: bytes32, price: int256):
    is_allowed: bool = price == payouts.YES or price == payouts.NO
    if not is_allowed and not (price == payouts.UNKNOWN and self.requests[key].allowsUnknown):
        raw_revert(method_id("InvalidPrice()"))


@internal
@view
def _check_not_replaced(key: bytes32):
    if self.requests[key].successor != empty(bytes32):
        raw_revert(method_id("AlreadyReplaced()"))


@internal
@view
def _is_too_early(key: bytes32) -> bool:
    """
    @dev Whether the arbiter said so, and nothing has taken the request's place yet.
    """
    return (
        self._state(key) == SETTLED
        and self.requests[key].price == IGNORE
        and self.requests[key].successor == empty(bytes32)
    )


@internal
@view
def _outlook(key: bytes32) -> (bool, int256, uint256):
    """
    @dev Whether a request has a price, settled or not, which one, and since when. Undisputed, the
         proposal is right. Replaced, the replacement decides. Left by the arbiter, nobody is right:
         the price is a half where that is one, and No where it is not.
    """
    state: uint256 = self._state(key)
    if state == SETTLED:
        return True, self.requests[key].price, self.requests[key].availableAt
    if state == EXPIRED:
        return True, self.requests[key].proposedPrice, self.requests[key].expiresAt
    if state != DISPUTED:
        return False, 0, 0
    successor: bytes32 = self.requests[key].successor
    if successor != empty(bytes32):
        return self._successors_answer(key, successor)
    over_at: uint256 = self.requests[key].disputedAt + ARBITRATION_S
    fallback_price: int256 = payouts.UNKNOWN if self.requests[key].allowsUnknown else payouts.NO
    return block.timestamp >= over_at, fallback_price, over_at


@internal
@view
def _successors_answer(key: bytes32, successor: bytes32) -> (bool, int256, uint256):
    """
    @dev The price that the replacement gives to a request that was disputed. Where nobody has proposed
         again for a week, the dispute ends undecided, so that its bonds do not wait for the end of
         a market that may last for years. A later answer decides the question, not this dispute.
    """
    released_at: uint256 = self.requests[key].disputedAt + RELEASE_S
    state: uint256 = self._state(successor)
    if state == REQUESTED and block.timestamp >= released_at:
        return True, IGNORE, released_at
    return state == SETTLED, self.requests[successor].price, block.timestamp


@internal
def _settle(key: bytes32, treasury: address):
    has_price: bool = False
    price: int256 = 0
    available_at: uint256 = 0
    has_price, price, available_at = self._outlook(key)
    if not has_price:
        raw_revert(method_id("NotSettleable()"))
    self._close(key, price, available_at)
    request: Request = self.requests[key]
    if request.disputedAt == 0:
        self.owed[request.proposer] += request.bond + request.reward
    elif request.successor != empty(bytes32) and not self.requests[request.successor].isFallback:
        self._pay_dispute(request, price, treasury)
    else:
        # Nobody was found right: bonds go back, and so does the reward, unless a successor has it.
        self.requests[key].isFallback = True
        self._pay_back(request)
        self.owed[request.creator] += request.reward


@internal
def _close(key: bytes32, price: int256, available_at: uint256):
    self.requests[key].price = price
    self.requests[key].availableAt = available_at


@internal
def _return_reward(key: bytes32):
    self.owed[self.requests[key].creator] += self.requests[key].reward
    self.requests[key].reward = 0


@internal
def _pay_back(request: Request):
    self.owed[request.proposer] += request.bond
    self.owed[request.disputer] += request.bond


@internal
def _pay_dispute(request: Request, price: int256, treasury: address):
    """
    @dev Who was right gets its bond back, the reward, and half of the other's bond, rounded down.
         The rest goes to the treasury, so that nobody disputes itself for nothing.
    """
    if price == IGNORE:
        self._pay_back(request)
        return
    winner: address = request.proposer if price == request.proposedPrice else request.disputer
    half: uint256 = request.bond // 2
    self.owed[winner] += request.bond + half + request.reward
    self.owed[treasury] += request.bond - half
