"""The markets that a connection of the user channel subscribed to."""

from collections.abc import Sequence

from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.auth import L2Caller


class Subscription:
    """A connection's markets: all except some, or only some."""

    __slots__ = ("caller", "covers_all", "excluded", "included")

    def __init__(self, caller: L2Caller) -> None:
        self.caller = caller
        self.covers_all = False
        self.included: set[str] = set()
        self.excluded: set[str] = set()

    def covers(self, condition_id: Bytes32) -> bool:
        """Return whether the connection subscribed to a market."""
        if self.covers_all:
            return condition_id not in self.excluded
        return condition_id in self.included

    def add(self, markets: Sequence[str]) -> None:
        """Subscribe to these markets, or to all when none is named."""
        if not markets:
            self.covers_all = True
            self.excluded.clear()
        self.excluded.difference_update(markets)
        self.included.update(() if self.covers_all else markets)

    def remove(self, markets: Sequence[str]) -> None:
        """Unsubscribe from these markets, or from all when none is named."""
        if not markets:
            self.covers_all = False
            self.included.clear()
        self.included.difference_update(markets)
        self.excluded.update(markets if self.covers_all else ())

    @property
    def size(self) -> int:
        """The number of markets that are kept, included or excluded."""
        return len(self.included) + len(self.excluded)
