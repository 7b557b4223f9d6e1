"""Which engine a market belongs to, when an installation has several."""

from foretell.domain.hexadecimal import Bytes32, word_bytes


def shard_of(condition_id: Bytes32, count: int) -> int:
    """Return the number of the shard that a condition belongs to, of so many.

    A condition id is a hash, so its first bytes spread the conditions evenly.
    """
    assert count > 0
    return int.from_bytes(word_bytes(condition_id)[:8], "big") % count
