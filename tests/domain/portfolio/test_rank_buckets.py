from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.gains import SUM_MAX
from foretell.domain.portfolio.rank_buckets import bucket_of, last_of_bucket, part_of

AMOUNTS = st.integers(-SUM_MAX, SUM_MAX) | st.integers(-300, 300)


@given(one=AMOUNTS, other=AMOUNTS)
def test_buckets_are_in_the_order_of_amounts(one: int, other: int) -> None:
    assert (bucket_of(one) < bucket_of(other)) <= (one < other)


@given(units=AMOUNTS)
def test_a_bucket_ends_with_its_last_amount(units: int) -> None:
    bucket, last = bucket_of(units), last_of_bucket(bucket_of(units))
    assert units <= last
    assert (bucket_of(last), bucket_of(last + 1)) == (bucket, bucket + 1)


@given(units=AMOUNTS)
def test_a_bucket_is_narrow_beside_its_amounts(units: int) -> None:
    bucket = bucket_of(units)
    width = last_of_bucket(bucket) - last_of_bucket(bucket - 1)
    assert width <= max(1, abs(units) // 64)


@given(units=AMOUNTS)
def test_a_part_has_its_amounts_and_is_a_256th_of_the_bucket_or_one_amount(units: int) -> None:
    first, last = part_of(units)
    assert first <= units <= last
    assert part_of(first) == part_of(last) == (first, last)
    width = last_of_bucket(bucket_of(units)) - last_of_bucket(bucket_of(units) - 1)
    assert last - first + 1 == max(1, width // 256)


@given(units=AMOUNTS)
def test_parts_follow_each_other(units: int) -> None:
    assert part_of(part_of(units).last + 1).first == part_of(units).last + 1
    assert bucket_of(part_of(units).first) == bucket_of(part_of(units).last)
