# pragma version 0.4.3
"""
@title Registry
@license Apache-2.0
@notice Which tokens may be traded here, and which is whose complement. Ids are not believed: they
        are derived again from the condition.
"""

from interfaces import IConditionalTokens
from exchange import custody
from exchange import roles
from tokens import conditions

uses: custody
uses: roles

event TokenRegistered:
    token0: indexed(uint256)
    token1: indexed(uint256)
    conditionId: indexed(bytes32)


struct Token:
    complement: uint256
    conditionId: bytes32


registry: public(HashMap[uint256, Token])


@external
def registerToken(tokenA: uint256, tokenB: uint256, conditionId: bytes32):
    """
    @notice Open the two tokens of a condition to trading, for a registrar.
    @param tokenA The token of its first outcome
    @param tokenB The token of its second outcome
    @param conditionId The condition, which must be prepared
    """
    roles._check_registrar()
    if self.registry[tokenA].complement != 0:
        raw_revert(method_id("AlreadyRegistered()"))
    ctf: address = custody.CONDITIONAL_TOKENS
    outcomes: uint256 = staticcall IConditionalTokens(ctf).getOutcomeSlotCount(conditionId)
    if outcomes != conditions.OUTCOMES:
        raw_revert(method_id("InvalidCondition()"))
    if (
        tokenA != self._token_id(conditionId, conditions.FIRST_OUTCOME)
        or tokenB != self._token_id(conditionId, conditions.SECOND_OUTCOME)
    ):
        raw_revert(method_id("InvalidTokenId()"))
    self._register(tokenA, tokenB, conditionId)
    self._register(tokenB, tokenA, conditionId)


@external
@view
def getComplement(tokenId: uint256) -> uint256:
    """
    @notice The other token of the same condition.
    @param tokenId A registered token
    @return The other one
    """
    return self._complement(tokenId)


@external
@view
def getConditionId(tokenId: uint256) -> bytes32:
    """
    @notice The condition of a token.
    @param tokenId A registered token
    @return Its condition
    """
    self._complement(tokenId)
    return self.registry[tokenId].conditionId


@external
@view
def validateTokenId(tokenId: uint256):
    """
    @notice Revert unless the token is registered.
    @param tokenId The token
    """
    self._complement(tokenId)


@external
@view
def validateComplement(token: uint256, complement: uint256):
    """
    @notice Revert unless the two tokens are registered as complements.
    @param token One of them
    @param complement The other
    """
    if self._complement(token) != complement:
        raw_revert(method_id("InvalidComplement()"))


@internal
def _register(token_id: uint256, complement: uint256, condition_id: bytes32):
    self.registry[token_id] = Token(complement=complement, conditionId=condition_id)
    log TokenRegistered(token0=token_id, token1=complement, conditionId=condition_id)


@internal
@view
def _complement(token_id: uint256) -> uint256:
    complement: uint256 = self.registry[token_id].complement
    if complement == 0:
        raw_revert(method_id("InvalidTokenId()"))
    return complement


@internal
@view
def _token_id(condition_id: bytes32, index_set: uint256) -> uint256:
    return conditions._token_id(
        custody.CONDITIONAL_TOKENS, custody.TOKEN_COLLATERAL, condition_id, index_set
    )
