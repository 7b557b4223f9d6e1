"""What a connection of the user channel wants to hear of."""

from collections.abc import Sequence

from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.auth import L2Caller


class Subscription:
    """Which markets a connection wants to hear of: all but some, or some alone."""

    __slots__ = ("caller", "excluded", "included", "wants_all")

    def __init__(self, caller: L2Caller) -> None:
        self.caller = caller
        self.wants_all = False
        self.included: set[str] = set()
        self.excluded: set[str] = set()

    def wants(self, condition_id: Bytes32) -> bool:
        """Return whether the connection wants to hear of a market."""
        if self.wants_all:
            return condition_id not in self.excluded
        return condition_id in self.included

    def add(self, markets: Sequence[str]) -> None:
        """Want these markets, or all when none is named."""
        if not markets:
            self.wants_all = True
            self.excluded.clear()
        self.excluded.difference_update(markets)
        self.included.update(() if self.wants_all else markets)

    def remove(self, markets: Sequence[str]) -> None:
        """Want these markets no more, or none when none is named."""
        if not markets:
            self.wants_all = False
            self.included.clear()
        self.included.difference_update(markets)
        self.excluded.update(markets if self.wants_all else ())

    @property
    def size(self) -> int:
        """How many markets are remembered."""
        return len(self.included) + len(self.excluded)
