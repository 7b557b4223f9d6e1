"""The ids of the package and of the exchange, compared with the bytecode of Conditional Tokens."""

from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.scenarios.rig import scenario_rig
from tests.contracts.signing import ZERO_WORD

from foretell.domain.values.hexadecimal import Address, address_of, word_bytes, word_of
from foretell.domain.values.tokens import collection_id, condition_id, token_id

words = st.binary(min_size=32, max_size=32)
addresses = st.binary(min_size=20, max_size=20).map(address_of)


@given(oracle=addresses, question=words, slots=st.integers(0, 256))
def test_condition_ids_are_those_of_the_bytecode(
    oracle: Address, question: bytes, slots: int
) -> None:
    theirs = scenario_rig().world.ctf.call("getConditionId", oracle, question, slots)
    assert word_bytes(condition_id(oracle, word_of(question), slots)) == theirs


@given(condition=words, index_set=st.integers(1, 2**256 - 1) | st.integers(1, 3))
def test_collection_ids_are_those_of_the_bytecode(condition: bytes, index_set: int) -> None:
    theirs = scenario_rig().world.ctf.call("getCollectionId", ZERO_WORD, condition, index_set)
    assert word_bytes(collection_id(word_of(condition), index_set)) == theirs


@given(collateral=addresses, collection=words)
def test_token_ids_are_those_of_the_bytecode(collateral: Address, collection: bytes) -> None:
    theirs = scenario_rig().world.ctf.call("getPositionId", collateral, collection)
    assert token_id(collateral, word_of(collection)) == theirs


@given(question=words)
def test_the_exchange_derives_the_same_ids_as_the_package(question: bytes) -> None:
    """It refuses other ids, so a successful registration proves them equal."""
    world = scenario_rig().world
    with world.evm.rolled_back():
        world.open_market(question)
        yes, no = world.tokens_of(question)
        assert world.exchange.call("getComplement", yes) == no
        assert world.exchange.call("getConditionId", no) == bytes.fromhex(
            world.condition_of(question)[2:]
        )
