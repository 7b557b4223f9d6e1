"""Which engine a market belongs to, when an installation has several."""

from dataclasses import dataclass
from typing import Final, NewType

from foretell.domain.values.hexadecimal import Bytes32, word_bytes

ShardNumber = NewType("ShardNumber", int)
"""The number of a shard, from 0 on, or `TREASURY`."""

TREASURY: Final = ShardNumber(-1)
"""The number under which the treasury keeps its journal, next to those of the shards."""


def shard_numbers(count: int) -> list[ShardNumber]:
    """Return the numbers of so many shards."""
    return [ShardNumber(number) for number in range(count)]


def shard_of(condition_id: Bytes32, count: int) -> int:
    """Return the number of the shard that a condition belongs to, of so many.

    A condition id is a hash, so its first bytes spread the conditions evenly.
    """
    assert count > 0
    return int.from_bytes(word_bytes(condition_id)[:8], "big") % count


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Which one of how many shards an engine is; by itself it is the only one."""

    number: int = 0
    count: int = 1

    @property
    def has_treasury(self) -> bool:
        """Whether collateral comes from a treasury, since others spend it too."""
        return self.count > 1

    @property
    def name(self) -> str:
        """What the treasury, the tables and operators call it."""
        return f"trading:{self.number}" if self.has_treasury else "trading"

    def has(self, condition_id: Bytes32) -> bool:
        """Whether a condition belongs to this shard."""
        return shard_of(condition_id, self.count) == self.number


ALONE: Final = ShardPlace()
