"""A token's book, rebuilt from the market channel's messages."""

from dataclasses import dataclass, field
from typing import Any

from foretell.sdk.amounts import parse_base_units
from foretell.sdk.orders import BookLevel

Message = dict[str, Any]


@dataclass(slots=True)
class LiveBook:
    """The levels of one token, by price in base units of collateral; both sides sorted when they are read."""

    token_id: str
    bids: dict[int, BookLevel] = field(default_factory=dict)
    asks: dict[int, BookLevel] = field(default_factory=dict)
    hash: str = ""
    journal_sequence: int = 0
    is_known: bool = False
    """Whether a whole book has arrived since the last gap."""

    def apply(self, message: Message) -> bool:
        """Apply a message, and return whether it changed this token's book."""
        kind = message.get("event_type")
        if kind == "book" and message["asset_id"] == self.token_id:
            self._replace(message)
            return True
        if kind != "price_change" or not self.is_known:
            return False
        own = [each for each in message["price_changes"] if each["asset_id"] == self.token_id]
        for change in own:
            self._set(change)
        if own:
            self.journal_sequence = message.get("journal_sequence", self.journal_sequence)
        return bool(own)

    def forget(self) -> None:
        """Drop everything: messages were missed, and only a whole book is good now."""
        self.bids, self.asks, self.hash, self.is_known = {}, {}, "", False

    @property
    def best_bid(self) -> BookLevel | None:
        """The highest bid."""
        return self.bids[max(self.bids)] if self.bids else None

    @property
    def best_ask(self) -> BookLevel | None:
        """The lowest ask."""
        return self.asks[min(self.asks)] if self.asks else None

    def sorted_bids(self) -> list[BookLevel]:
        """Return the bids, the best one first."""
        return [self.bids[price] for price in sorted(self.bids, reverse=True)]

    def sorted_asks(self) -> list[BookLevel]:
        """Return the asks, the best one first."""
        return [self.asks[price] for price in sorted(self.asks)]

    def _replace(self, message: Message) -> None:
        self.bids = _levels(message["bids"])
        self.asks = _levels(message["asks"])
        self.hash = message["hash"]
        self.journal_sequence = message.get("journal_sequence", self.journal_sequence)
        self.is_known = True

    def _set(self, change: Message) -> None:
        side = self.bids if change["side"] == "BUY" else self.asks
        price = parse_base_units(change["price"], "price")
        if change["size"] == "0":
            side.pop(price, None)
        else:
            side[price] = BookLevel(change["price"], change["size"])
        self.hash = change["hash"]


def _levels(given: list[Message]) -> dict[int, BookLevel]:
    return {
        parse_base_units(each["price"], "price"): BookLevel(each["price"], each["size"])
        for each in given
    }
