"""Condition, collection and token ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import an_address

from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256, word_of
from foretell.domain.values.tokens import (
    FIELD_PRIME,
    FULL_PARTITION,
    INDEX_SET_NO,
    INDEX_SET_YES,
    collection_id,
    condition_id,
    is_token_id,
    token_id,
    token_pair,
)

# A condition of another deployment and its token ids, read from its chain.
CONDITION = Bytes32("0x5f65177b394277fd294cd75650044e32ba009a95022d88a0c1d565897d72f8f1")
COLLATERAL = Address("0x9c4e1703476e875070ee25b56a58b008cfb8fa78")
YES = 71321045679252212594626385532706912750332728571942532289631379312455583992563
NO = 52114319501245915516055106046884209969926127482827954674443846427813813222426

WORDS = st.binary(min_size=32, max_size=32).map(word_of)


def test_token_ids_are_those_of_a_known_condition() -> None:
    assert token_pair(COLLATERAL, CONDITION) == (YES, NO)


def test_a_token_id_is_that_of_its_index_set() -> None:
    assert token_id(COLLATERAL, collection_id(CONDITION, INDEX_SET_YES)) == YES
    assert token_id(COLLATERAL, collection_id(CONDITION, INDEX_SET_NO)) == NO
    assert FULL_PARTITION == (INDEX_SET_YES, INDEX_SET_NO) == (1, 2)


@given(WORDS, st.integers(1, 3))
def test_a_collection_is_a_point_of_the_curve(condition: Bytes32, index_set: int) -> None:
    folded = int(collection_id(condition, index_set), 16)
    x = folded & ~(1 << 254)
    assert x < FIELD_PRIME
    assert pow(x**3 + 3, (FIELD_PRIME - 1) // 2, FIELD_PRIME) in {0, 1}


@given(WORDS)
def test_a_collection_is_the_first_point_after_its_hash(condition: Bytes32) -> None:
    packed = bytes.fromhex(condition[2:]) + (1).to_bytes(32, "big")
    start = int.from_bytes(keccak256(packed), "big") % FIELD_PRIME
    x = int(collection_id(condition, 1), 16) & ~(1 << 254)
    passed = [(start + step) % FIELD_PRIME for step in range(1, (x - start) % FIELD_PRIME)]
    half = (FIELD_PRIME - 1) // 2
    assert all(pow(each**3 + 3, half, FIELD_PRIME) == FIELD_PRIME - 1 for each in passed)


@given(WORDS)
def test_the_two_outcomes_have_two_tokens(condition: Bytes32) -> None:
    pair = token_pair(COLLATERAL, condition)
    assert pair.yes != pair.no
    assert pair != token_pair(an_address("another collateral"), condition)


def test_a_condition_depends_on_its_oracle_its_question_and_its_slots() -> None:
    question, other = word_of(bytes(32)), word_of(bytes(31) + b"\x01")
    alice, bob = an_address("alice"), an_address("bob")
    ids = {
        condition_id(alice, question),
        condition_id(bob, question),
        condition_id(alice, other),
        condition_id(alice, question, 3),
    }
    assert len(ids) == 4


def test_a_condition_packs_the_oracle_tightly() -> None:
    packed = bytes.fromhex(an_address("alice")[2:]) + bytes(32) + bytes(31) + b"\x02"
    assert condition_id(an_address("alice"), word_of(bytes(32))) == word_of(keccak256(packed))


@given(st.integers(0, 2**256 - 1))
def test_every_word_is_a_token_id_in_decimal(word: int) -> None:
    assert is_token_id(str(word))


@pytest.mark.parametrize(
    "text",
    ["", "0x12", "-1", "+1", " 1", "1\n", "1.0", "1e3", "\u0661", "\u00b2", "1" * 79],
    ids=range(11),
)
def test_a_text_that_is_no_integer_of_a_word_is_no_token_id(text: str) -> None:
    assert not is_token_id(text)
