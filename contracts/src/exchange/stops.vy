# pragma version 0.4.3
"""
@title Stops
@license Apache-2.0
@notice How a maker ends many orders in one call: its v1 orders by the nonce, its v2 orders by the time
        that they were signed with, and, for a Safe, all that its first owner signs alone. Most makers
        never do, so that one word remembers, by the last byte of their addresses, who may have: a
        match reads the stops of those alone.
"""

event NonceIncremented:
    maker: indexed(address)
    nonce: uint256


event OrdersCancelledBefore:
    maker: indexed(address)
    timestamp: uint256


event OwnerSigningChanged:
    safe: indexed(address)
    isAllowed: bool


LAST_BYTE: constant(uint256) = 255

# A maker's word: its nonce, the earliest timestamp that still counts, and whether its owner may sign.
NONCE: constant(uint256) = 2**64 - 1
TIMESTAMP_AT: constant(uint256) = 64
TIMESTAMP: constant(uint256) = NONCE << TIMESTAMP_AT
NO_OWNER: constant(uint256) = 1 << 128

# Clients sign milliseconds. A mistaken unit must not end what a wallet signs in years to come.
MS_PER_S: constant(uint256) = 1_000
AHEAD_MAX_S: constant(uint256) = 24 * 3600

words: HashMap[address, uint256]
# A bit for each last byte of an address whose word is not zero.
raised: uint256


@external
@nonreentrant
def incrementNonce():
    """
    @notice End every v1 order that the caller signed with its present nonce.
    """
    word: uint256 = self.words[msg.sender] + 1
    self._raise(msg.sender, word)
    log NonceIncremented(maker=msg.sender, nonce=word & NONCE)


@external
@nonreentrant
def cancelBefore(timestamp: uint256):
    """
    @notice End every v2 order of the caller's whose signed timestamp is earlier than this one.
    @param timestamp In milliseconds, later than any before, and at most a day ahead
    """
    word: uint256 = self.words[msg.sender]
    is_later: bool = timestamp > self._timestamp(word)
    if not is_later or timestamp > (block.timestamp + AHEAD_MAX_S) * MS_PER_S:
        raw_revert(method_id("InvalidTimestamp()"))
    self._raise(msg.sender, word & ~TIMESTAMP | (timestamp << TIMESTAMP_AT))
    log OrdersCancelledBefore(maker=msg.sender, timestamp=timestamp)


@external
@nonreentrant
def setOwnerSigning(isAllowed: bool):
    """
    @notice Say, as a Safe, whether orders of type 2 count, which its first owner signs alone. A Safe
            with other owners or a higher threshold signs orders of type 3 instead.
    @param isAllowed True, as it is at first, or False
    """
    word: uint256 = self.words[msg.sender] & ~NO_OWNER
    self._raise(msg.sender, word if isAllowed else word | NO_OWNER)
    log OwnerSigningChanged(safe=msg.sender, isAllowed=isAllowed)


@external
@view
def nonces(maker: address) -> uint256:
    """
    @notice The nonce that a maker's v1 orders must have.
    @param maker The maker
    @return Its nonce
    """
    return self.words[maker] & NONCE


@external
@view
def isValidNonce(maker: address, nonce: uint256) -> bool:
    """
    @notice Whether v1 orders with this nonce count.
    @param maker The maker
    @param nonce The nonce of its order
    @return True for the maker's present nonce
    """
    return self.words[maker] & NONCE == nonce


@external
@view
def cancelledBefore(maker: address) -> uint256:
    """
    @notice The earliest timestamp with which a maker's v2 orders count.
    @param maker The maker
    @return Milliseconds; zero when all of them count
    """
    return self._timestamp(self.words[maker])


@external
@view
def isOwnerSigning(safe: address) -> bool:
    """
    @notice Whether orders of type 2 count for a Safe.
    @param safe The Safe
    @return True unless the Safe has said otherwise
    """
    return self.words[safe] & NO_OWNER == 0


@internal
def _raise(maker: address, word: uint256):
    self.words[maker] = word
    self.raised |= 1 << (convert(maker, uint256) & LAST_BYTE)


@internal
@view
def _word(maker: address, raised: uint256) -> uint256:
    """
    @dev A maker's word; `raised` is what the caller has read once for all makers.
    """
    if raised & (1 << (convert(maker, uint256) & LAST_BYTE)) == 0:
        return 0
    return self.words[maker]


@internal
@pure
def _timestamp(word: uint256) -> uint256:
    return (word & TIMESTAMP) >> TIMESTAMP_AT
