from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_word

from foretell.domain.values.hexadecimal import Bytes32, word_of
from foretell.domain.values.sharding import ShardPlace, shard_of

WORDS = st.binary(min_size=32, max_size=32).map(word_of)
COUNTS = st.integers(1, 10_000)


@given(condition_id=WORDS, count=COUNTS)
def test_every_condition_has_a_shard(condition_id: Bytes32, count: int) -> None:
    assert 0 <= shard_of(condition_id, count) < count


@given(condition_id=WORDS)
def test_a_single_shard_has_every_condition(condition_id: Bytes32) -> None:
    assert shard_of(condition_id, 1) == 0


@pytest.mark.parametrize(("first_byte", "count", "shard"), [(0, 4, 3), (1, 4, 3), (255, 1000, 839)])
def test_the_shard_of_a_condition_never_changes(first_byte: int, count: int, shard: int) -> None:
    """Existing journals depend on these values."""
    assert shard_of(word_of(bytes([first_byte]) + b"\x07" * 31), count) == shard


def test_conditions_are_spread_evenly() -> None:
    counts = Counter(shard_of(a_word(f"condition {number}"), 8) for number in range(8_000))
    assert sorted(counts) == list(range(8))
    assert max(counts.values()) < 1.15 * min(counts.values())


@pytest.mark.parametrize("count", [0, -1])
def test_there_is_at_least_one_shard(count: int) -> None:
    with pytest.raises(AssertionError):
        shard_of(a_word("condition"), count)


@given(condition_id=WORDS, count=st.integers(1, 9))
def test_a_condition_is_in_exactly_one_shard(condition_id: Bytes32, count: int) -> None:
    places = [ShardPlace(number, count) for number in range(count)]
    assert sum(place.has(condition_id) for place in places) == 1


def test_only_several_shards_need_a_treasury() -> None:
    assert [ShardPlace().has_treasury, ShardPlace(0, 2).has_treasury] == [False, True]


def test_a_single_shard_is_named_trading() -> None:
    assert ShardPlace().name == "trading"


def test_several_shards_have_numbered_names() -> None:
    assert [ShardPlace(number, 2).name for number in range(2)] == ["trading:0", "trading:1"]
