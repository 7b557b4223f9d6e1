"""Buckets of amounts, in which wallets are counted so that a rank is a sum of few counts.

A bucket is an integer that grows with the amount. Small amounts have one each; beyond, each power of two has the same
number of buckets, so a bucket is at most a 64th as wide as its amounts are large. A bucket of many wallets is divided
further, into parts of equal widths.
"""

from typing import Final, NamedTuple

BUCKET_BITS: Final = 7
"""The leading bits of an amount that name its bucket."""


PART_BITS: Final = 8
"""The bits after those that name the part of a bucket."""


def bucket_of(units: int) -> int:
    """Return the bucket of an amount, which may be negative."""
    size = abs(units)
    dropped = max(0, size.bit_length() - BUCKET_BITS)
    bucket = (dropped << (BUCKET_BITS - 1)) + (size >> dropped)
    return bucket if units >= 0 else -bucket


def last_of_bucket(bucket: int) -> int:
    """Return the largest amount of a bucket."""
    return _first_of_positive(bucket + 1) - 1 if bucket >= 0 else -_first_of_positive(-bucket)


class BucketPart(NamedTuple):
    """The part of a bucket that an amount is in, by its first and its last amount."""

    first: int
    last: int


def part_of(units: int) -> BucketPart:
    """Return the part of an amount's bucket: a 256th of it, or one amount."""
    bucket = bucket_of(units)
    bucket_first = last_of_bucket(bucket - 1) + 1
    width = last_of_bucket(bucket) - bucket_first + 1
    step = max(1, width >> PART_BITS)
    first = units - (units - bucket_first) % step
    return BucketPart(first, first + step - 1)


def _first_of_positive(bucket: int) -> int:
    dropped = max(0, (bucket >> (BUCKET_BITS - 1)) - 1)
    return (bucket - (dropped << (BUCKET_BITS - 1))) << dropped
