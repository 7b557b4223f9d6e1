from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.evm.bloom import BLOOM_BYTES, BloomQuery, bloom_bits

ADDRESS = bytes.fromhex("7a0fae6e9a407a6997bdff0fd6d4bf13ff114df1")
NAME = bytes.fromhex("a82a649bbd060c9099cd7b7326e2b0dc9e9af0836480e0f849dc9eaa79710b3b")
MAKER = bytes.fromhex("000000000000000000000000f39fd6e51aad88f6f4ce6ab8827279cfffb92266")

# The bits of anvil in the header of a block with one log of this address and these topics.
BITS_OF_A_NODE = [349, 381, 386, 453, 918, 1088, 1184, 1227, 2021]


def filter_of(*parts: bytes) -> bytes:
    bits = 0
    for part in parts:
        bits |= bloom_bits(part)
    return bits.to_bytes(BLOOM_BYTES, "big")


def test_a_filter_is_filled_as_a_node_fills_it() -> None:
    filled = int.from_bytes(filter_of(ADDRESS, NAME, MAKER), "big")
    assert [bit for bit in range(2048) if filled >> bit & 1] == BITS_OF_A_NODE


parts = st.lists(st.binary(min_size=20, max_size=32), max_size=20)


@given(parts, st.binary(min_size=20, max_size=20), st.binary(min_size=32, max_size=32))
def test_a_logged_value_is_never_excluded(
    others: list[bytes], address: bytes, topic: bytes
) -> None:
    question = BloomQuery([ADDRESS, address], [NAME, topic])
    assert question.may_be_in(filter_of(*others, address, topic))


def test_an_address_alone_or_a_topic_alone_is_excluded() -> None:
    question = BloomQuery([ADDRESS], [NAME])
    assert question.may_be_in(filter_of(ADDRESS, NAME))
    assert not question.may_be_in(filter_of(ADDRESS))
    assert not question.may_be_in(filter_of(NAME))
    assert not question.may_be_in(bytes(BLOOM_BYTES))
