"""Ids and calls of the neg-risk contracts, for events of which at most one outcome is true.

The contracts call an event a market. A market id is the hash of oracle, fee and metadata with a
zero last byte; a question id has the question's index there. The operator appends the creator to
the metadata, so that two creators never have the same id.
"""

from typing import Final

from foretell.domain.evm.abi import contract_function
from foretell.domain.values.eip712 import address_word, uint_word
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    address_bytes,
    keccak256,
    word_bytes,
    word_of,
)

QUESTIONS_EVER_MAX: Final = 255
"""The most questions of an event on any adapter; an adapter of today takes 100."""
NO_TOKEN_BURN: Final = Address("0xa5ef39c3d3e10d0b270233af41cac69796b12966")
"""Receives the No positions of a conversion; no key exists to redeem them."""

PREPARE_MARKET: Final = contract_function("prepareMarket(uint256,bytes)", "(bytes32)")
PREPARE_QUESTION: Final = contract_function("prepareQuestion(bytes32,bytes,bytes32)", "(bytes32)")
SEAL_MARKET: Final = contract_function("sealMarket(bytes32)")
SET_ORACLE: Final = contract_function("setOracle(address)")
RESOLVE_QUESTION: Final = contract_function("resolveQuestion(bytes32)")
PROPOSE_AND_RESOLVE_NEG_RISK: Final = contract_function(
    "proposeAndResolveNegRisk(address,address,bytes32,bytes32,bytes32,uint256,bytes,int256)",
    "(uint256)",
)
SPLIT_SETS: Final = contract_function("splitPosition(bytes32,uint256)")
MERGE_SETS: Final = contract_function("mergePositions(bytes32,uint256)")
REDEEM_SETS: Final = contract_function("redeemPositions(bytes32,uint256[])")
CONVERT_POSITIONS: Final = contract_function("convertPositions(bytes32,uint256,uint256)")
UNWRAP: Final = contract_function("unwrap(address,uint256)")

_INITIALIZER: Final = b",initializer:"
_OFFSET_OF_METADATA: Final = 96


def market_id(operator: Address, fee_bips: int, metadata: bytes, creator: Address) -> Bytes32:
    """Return the id of the market that the operator prepares for this creator."""
    text = metadata + _INITIALIZER + address_bytes(creator).hex().encode()
    encoded = (
        address_word(operator)
        + uint_word(fee_bips)
        + uint_word(_OFFSET_OF_METADATA)
        + uint_word(len(text))
        + text
        + bytes(-len(text) % 32)
    )
    return word_of(keccak256(encoded)[:-1] + b"\0")


def question_id(market: Bytes32, index: int) -> Bytes32:
    """Return the id of a market's question; its condition's oracle is the neg-risk adapter."""
    assert 0 <= index < QUESTIONS_EVER_MAX
    return word_of(word_bytes(market)[:-1] + bytes((index,)))


def market_of_question(question: Bytes32) -> Bytes32:
    """Return the id of the market that a question belongs to."""
    return word_of(word_bytes(question)[:-1] + b"\0")
