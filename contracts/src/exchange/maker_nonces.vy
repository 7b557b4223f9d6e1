# pragma version 0.4.3
"""
@title Nonces
@license Apache-2.0
@notice A v1 order stands as long as its maker's nonce does: one call ends all of them. Most makers
        never make it, so that one word remembers, by the last byte of their addresses, who may have:
        a match reads the nonces of those alone.
"""

event NonceIncremented:
    maker: indexed(address)
    nonce: uint256


LAST_BYTE: constant(uint256) = 255

nonces: public(HashMap[address, uint256])
# A bit for each last byte of an address whose nonce is not zero.
raised: uint256


@external
@nonreentrant
def incrementNonce():
    """
    @notice End every v1 order that the caller signed with its present nonce.
    """
    nonce: uint256 = self.nonces[msg.sender] + 1
    self.nonces[msg.sender] = nonce
    self.raised |= 1 << (convert(msg.sender, uint256) & LAST_BYTE)
    log NonceIncremented(maker=msg.sender, nonce=nonce)


@internal
@view
def _nonce(maker: address) -> uint256:
    if self.raised & (1 << (convert(maker, uint256) & LAST_BYTE)) == 0:
        return 0
    return self.nonces[maker]
