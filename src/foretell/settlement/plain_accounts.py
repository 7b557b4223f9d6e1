"""Accounts that had no code when a node was last asked: an account may get some later (EIP-7702)."""

from collections.abc import Iterable
from typing import Final

from foretell.domain.values.hexadecimal import Address
from foretell.runtime.lru import LruCache

ACCOUNTS_KEPT_MAX: Final = 10_000
KNOWN_MS: Final = 600_000
"""How long an answer counts: an account that gets code meanwhile costs what one failing match does."""


class PlainAccounts:
    """A bounded number of accounts without code, each until it is asked for again."""

    def __init__(self) -> None:
        self._until_ms: LruCache[Address, int] = LruCache(ACCOUNTS_KEPT_MAX)

    def has(self, account: Address, now_ms: int) -> bool:
        """Return whether an account is known to have no code."""
        until_ms = self._until_ms.get(account)
        return until_ms is not None and now_ms < until_ms

    def add(self, accounts: Iterable[Address], now_ms: int) -> None:
        """Take the accounts of an answer."""
        for account in accounts:
            self._until_ms.put(account, now_ms + KNOWN_MS)
