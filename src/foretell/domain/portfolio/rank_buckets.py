"""Buckets of amounts, in which wallets are counted so that a rank is a sum of few counts.

A bucket is an integer that grows with the amount. Small amounts have one each; beyond, each power of two has the same
number of buckets, so a bucket is at most a 64th as wide as its amounts are large.
"""

from typing import Final

BUCKET_BITS: Final = 7
"""The leading bits of an amount that name its bucket."""


def bucket_of(units: int) -> int:
    """Return the bucket of an amount, which may be negative."""
    size = abs(units)
    dropped = max(0, size.bit_length() - BUCKET_BITS)
    bucket = (dropped << (BUCKET_BITS - 1)) + (size >> dropped)
    return bucket if units >= 0 else -bucket


def last_of_bucket(bucket: int) -> int:
    """Return the largest amount of a bucket."""
    return _first_of_positive(bucket + 1) - 1 if bucket >= 0 else -_first_of_positive(-bucket)


def _first_of_positive(bucket: int) -> int:
    dropped = max(0, (bucket >> (BUCKET_BITS - 1)) - 1)
    return (bucket - (dropped << (BUCKET_BITS - 1))) << dropped
