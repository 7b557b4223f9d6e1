# pragma version 0.4.3
"""
@title Nonces
@license Apache-2.0
@notice A v1 order stands as long as its maker's nonce does: one call ends all of them.
"""

event NonceIncremented:
    maker: indexed(address)
    nonce: uint256


nonces: public(HashMap[address, uint256])


@external
@nonreentrant
def incrementNonce():
    """
    @notice End every v1 order that the caller signed with its present nonce.
    """
    nonce: uint256 = self.nonces[msg.sender] + 1
    self.nonces[msg.sender] = nonce
    log NonceIncremented(maker=msg.sender, nonce=nonce)
