"""Assignment of markets to the engines of an installation."""

from dataclasses import dataclass
from typing import Final, NewType

from foretell.domain.values.hexadecimal import Bytes32, word_bytes

ShardNumber = NewType("ShardNumber", int)
"""The number of a shard, from 0 on, or `TREASURY`."""

TREASURY: Final = ShardNumber(-1)
"""The number under which the treasury keeps its journal, next to those of the shards."""


def shard_numbers(count: int) -> list[ShardNumber]:
    """Return the numbers of this many shards."""
    return [ShardNumber(number) for number in range(count)]


def shard_of(condition_id: Bytes32, count: int) -> int:
    """Return the number of the shard of a condition, of `count` shards.

    A condition id is a hash, so its first bytes spread the conditions evenly.
    """
    assert count > 0
    return int.from_bytes(word_bytes(condition_id)[:8], "big") % count


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """The number of an engine's shard and the count of all shards."""

    number: int = 0
    count: int = 1

    @property
    def has_treasury(self) -> bool:
        """Whether collateral is allocated by a treasury, since several shards spend it."""
        return self.count > 1

    @property
    def name(self) -> str:
        """The name of the shard in the treasury, in tables and in commands."""
        return f"trading:{self.number}" if self.has_treasury else "trading"

    def has(self, condition_id: Bytes32) -> bool:
        """Return whether a condition belongs to this shard."""
        return shard_of(condition_id, self.count) == self.number


ALONE: Final = ShardPlace()
