"""Condition, collection and token ids, as the Conditional Tokens contract derives them.

A collection id is a point of the curve alt_bn128 in 32 bytes: hash the condition with the index
set, increase x until y^2 = x^3 + 3 has a solution, and keep the parity of y in a bit.
"""

from typing import Final, NamedTuple

from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    address_bytes,
    keccak256,
    word_bytes,
    word_of,
)

FIELD_PRIME: Final = 21888242871839275222246405745257275088696311157297823662689037894645226208583
OUTCOME_SLOTS: Final = 2
INDEX_SET_YES: Final = 1
INDEX_SET_NO: Final = 2
FULL_PARTITION: Final = (INDEX_SET_YES, INDEX_SET_NO)

TOKEN_ID_DIGITS_MAX: Final = 78
"""The digits of the largest 256-bit number."""

_SIGN_BIT: Final = 1 << 255
_ODD_BIT: Final = 1 << 254


class TokenPair(NamedTuple):
    """The two outcome tokens of a condition, first outcome first."""

    yes: int
    no: int


def condition_id(oracle: Address, question_id: Bytes32, slots: int = OUTCOME_SLOTS) -> Bytes32:
    """Return the id of the condition of a question that an oracle reports."""
    packed = address_bytes(oracle) + word_bytes(question_id) + slots.to_bytes(32, "big")
    return word_of(keccak256(packed))


def collection_id(condition: Bytes32, index_set: int) -> Bytes32:
    """Return the id of the collection of an index set, without a parent collection."""
    digest = int.from_bytes(keccak256(word_bytes(condition) + index_set.to_bytes(32, "big")), "big")
    wants_odd = bool(digest & _SIGN_BIT)
    x = digest % FIELD_PRIME
    while True:
        x = (x + 1) % FIELD_PRIME
        square = (x * x * x + 3) % FIELD_PRIME
        y = pow(square, (FIELD_PRIME + 1) // 4, FIELD_PRIME)
        if y * y % FIELD_PRIME == square:
            break
    if wants_odd != bool(y & 1):
        y = FIELD_PRIME - y
    return word_of((x ^ (_ODD_BIT if y & 1 else 0)).to_bytes(32, "big"))


def token_id(collateral: Address, collection: Bytes32) -> int:
    """Return the ERC-1155 id of a collection backed by this collateral."""
    return int.from_bytes(keccak256(address_bytes(collateral) + word_bytes(collection)), "big")


def token_pair(collateral: Address, condition: Bytes32) -> TokenPair:
    """Return both outcome tokens of a binary condition."""
    return TokenPair(
        yes=token_id(collateral, collection_id(condition, INDEX_SET_YES)),
        no=token_id(collateral, collection_id(condition, INDEX_SET_NO)),
    )


def is_token_id(text: str) -> bool:
    """Return whether a text can be a token id: a decimal integer of at most 78 digits."""
    return text.isascii() and text.isdigit() and len(text) <= TOKEN_ID_DIGITS_MAX
