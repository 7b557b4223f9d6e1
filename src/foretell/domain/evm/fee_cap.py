"""A node's cap on the fee of one transaction, which is 1 coin by default in geth and its relatives.

The node refuses a transaction whose gas limit times its highest price is more. That says nothing about what it does:
one with less gas passes. A node need not name its cap, so it is found by halving.
"""

import re
from dataclasses import dataclass
from typing import Final

KEPT_PARTS: Final = 2
"""A refused fee is divided by this: prices rise until a transaction is sent, and with each replacement."""
KEPT_MS: Final = 3_600_000
"""How long a refusal counts: a node may be started again without the cap."""

_WORDS: Final = re.compile(r"\b(?:exceeds the configured cap|transaction fee cap exceeded)\b")
"""The words of geth and Erigon, and those of Besu."""


def is_beyond_fee_cap(words: str | None) -> bool:
    """Return whether a node's refusal means that the fee may be more than it takes of any transaction."""
    return words is not None and _WORDS.search(words.lower()) is not None


@dataclass(slots=True)
class FeeBound:
    """The highest fee of one transaction that is tried, none before a node has refused one."""

    _wei: int | None = None
    _refused_at_ms: int = 0

    def lower(self, refused_wei: int, now_ms: int) -> None:
        """Take that a node refused this fee; the same refusal may be taken twice."""
        wei = refused_wei // KEPT_PARTS
        self._wei = min(self.wei(now_ms) or wei, wei)
        self._refused_at_ms = now_ms

    def wei(self, now_ms: int) -> int | None:
        """Return the bound, or None while none is known."""
        return self._wei if 0 <= now_ms - self._refused_at_ms < KEPT_MS else None
