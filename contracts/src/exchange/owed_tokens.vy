# pragma version 0.4.3
"""
@title Owed tokens
@license Apache-2.0
@notice What is kept of the tokens that their receivers refused. It has a file of its own because its storage
        comes after all other, whose places are those of earlier versions.
"""

# By account and token id, in base units.
owed: HashMap[address, HashMap[uint256, uint256]]


@external
@view
def owedTokens(account: address, tokenId: uint256) -> uint256:
    """
    @notice What is kept of a token for an account that refused it when a match delivered it.
    @param account The account
    @param tokenId The token id
    @return The amount, in base units
    """
    return self.owed[account][tokenId]
