# pragma version 0.4.3
"""
@title Conditions
@license Apache-2.0
@notice Conditions of Conditional Tokens, and the ids of their tokens. A condition has two outcomes;
        its tokens have the index sets 1 and 2.
"""

from interfaces import IConditionalTokens

OUTCOMES: constant(uint256) = 2

# The index sets of the first and of the second outcome.
FIRST_OUTCOME: constant(uint256) = 1
SECOND_OUTCOME: constant(uint256) = 2
PARTITION: constant(DynArray[uint256, OUTCOMES]) = [FIRST_OUTCOME, SECOND_OUTCOME]


@internal
@pure
def _condition_id(oracle: address, question_id: bytes32) -> bytes32:
    return keccak256(concat(convert(oracle, bytes20), question_id, convert(OUTCOMES, bytes32)))


@internal
@view
def _token_id(
    conditional_tokens: address, collateral: address, condition_id: bytes32, index_set: uint256
) -> uint256:
    """
    @dev Asked of Conditional Tokens, for it takes a square root on a curve.
    """
    collection: bytes32 = staticcall IConditionalTokens(conditional_tokens).getCollectionId(
        empty(bytes32), condition_id, index_set
    )
    return staticcall IConditionalTokens(conditional_tokens).getPositionId(collateral, collection)
