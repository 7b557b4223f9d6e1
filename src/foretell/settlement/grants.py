"""Further accounts and the exchanges that had them as operators when these were last asked.

An admin may dismiss an account at any time, and every batch of it would revert from then on.
"""

from typing import Final

from foretell.domain.values.hexadecimal import Address

GRANTED_MS: Final = 10_000
"""How long an answer counts: an account that is dismissed meanwhile sends batches that revert whole."""

_Pair = tuple[Address, Address]
"""An account and an exchange."""


class Grants:
    """The leave of each further account at each exchange."""

    def __init__(self) -> None:
        self._at_ms: dict[_Pair, int] = {}

    def has(self, account: Address, exchange: Address, now_ms: int) -> bool:
        """Return whether the account was an operator not too long ago."""
        at_ms = self._at_ms.get((account, exchange))
        return at_ms is not None and 0 <= now_ms - at_ms < GRANTED_MS

    def add(self, account: Address, exchange: Address, now_ms: int) -> None:
        """Take that the account is an operator now."""
        self._at_ms[account, exchange] = now_ms

    def drop(self, account: Address, exchange: Address) -> None:
        """Forget that the account was an operator."""
        self._at_ms.pop((account, exchange), None)
