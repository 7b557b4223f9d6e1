"""Locks of wallets: one task at a time sends for a wallet, and few wait for it, not for long."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from foretell.domain.errors.relayer import WalletInUse
from foretell.domain.values.hexadecimal import Address

HELD_WAIT_S: Final = 20.0
"""The longest wait for a wallet's lock."""
WAITING_MAX: Final = 16
"""Tasks that wait for a wallet's lock."""
UNSIGNED_MAX: Final = 3
"""Tasks that hold it or wait for it whose request its owner has not signed: the creation of its deposit wallet."""


@dataclass(slots=True)
class _Users:
    """The tasks that hold a lock or wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    all: int = 0
    unsigned: int = 0


class WalletLocks:
    """A lock for each wallet with a request in progress."""

    def __init__(self, wait_s: float = HELD_WAIT_S) -> None:
        self._wait_s = wait_s
        self._users_by_wallet: dict[Address, _Users] = {}

    def is_free(self, wallet: Address) -> bool:
        """Return whether no task holds the wallet's lock or waits for it."""
        return wallet not in self._users_by_wallet

    @contextlib.asynccontextmanager
    async def holding(self, wallet: Address, *, is_signed: bool = True) -> AsyncIterator[None]:
        """Hold the wallet's lock, or refuse if too many wait for it, or for too long."""
        users = self._users_by_wallet.setdefault(wallet, _Users())
        if users.all > WAITING_MAX or not (is_signed or users.unsigned < UNSIGNED_MAX):
            raise WalletInUse(wallet)
        users.all += 1
        users.unsigned += not is_signed
        try:
            await self._acquire(wallet, users.lock)
            try:
                yield
            finally:
                users.lock.release()
        finally:
            users.all -= 1
            users.unsigned -= not is_signed
            if not users.all:
                del self._users_by_wallet[wallet]

    async def _acquire(self, wallet: Address, lock: asyncio.Lock) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await lock.acquire()
        except TimeoutError:
            raise WalletInUse(wallet) from None
