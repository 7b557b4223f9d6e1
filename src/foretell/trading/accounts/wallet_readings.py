"""Readings of wallets before their first use: what they held before this installation's first block.

Logs do not show it, so the indexer reads a wallet when trading asks for it. The first request that needs the
wallet waits until the engine knows its funds, at most for `WAIT_S`; later ones do not wait.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.requests import AccountReply
from foretell.runtime.lru import LruCache
from foretell.store.database import Database
from foretell.store.index.balances import load_allowances, load_balances
from foretell.store.index.wallet_readings import is_read
from foretell.store.public_reads.places import ReadKind, answering
from foretell.store.trading.asked_wallets import record_asked
from foretell.store.write_places import writing_for
from foretell.trading.accounts.reading_budget import ReadingBudget, ReadingLimits

WAIT_S: Final = 5.0
POLL_S: Final = 0.1
WALLETS_KEPT_MAX: Final = 20_000
RETRY_MS: Final = 30_000
"""How long after a wait in vain no request waits for the same wallet."""

FetchCollateral = Callable[[Address], Awaitable[AccountReply]]
"""Fetches the engine's view of a wallet's collateral and of its allowances to the exchanges."""


class WalletReadings:
    """The wallets that are read, and those that were asked for in vain lately."""

    def __init__(
        self,
        database: Database,
        exchanges: tuple[Address, ...],
        fetch_collateral: FetchCollateral,
        now_ms: Callable[[], int],
        *,
        wait_s: float = WAIT_S,
        limits: ReadingLimits | None = None,
    ) -> None:
        self._database = database
        self._exchanges = exchanges
        self._fetch_collateral = fetch_collateral
        self._now_ms = now_ms
        self._wait_s = wait_s
        self._budget = ReadingBudget(limits or ReadingLimits())
        self._again_at_ms: LruCache[Address, float] = LruCache(WALLETS_KEPT_MAX)

    def is_known(self, wallet: Address) -> bool:
        """Return whether a request for the wallet need not wait."""
        return self._now_ms() < (self._again_at_ms.get(wallet) or 0)

    async def wait(self, wallet: Address, client: str, *, account: Address) -> None:
        """Ask for a wallet and wait until the engine has its funds, or until no longer.

        A client that asks for too much waits for nothing: its wallets have what the tables show. `account` is the
        address whose API key authenticated the request.
        """
        if self.is_known(wallet) or not self._budget.begin_waiting(client):
            return
        try:
            with answering(client), writing_for(account):
                async with asyncio.timeout(self._wait_s):
                    if not await self._is_read(wallet):
                        if not await self._ask(wallet, client):
                            return
                        await self._arrival(wallet)
            self._again_at_ms.put(wallet, float("inf"))
        except (TimeoutError, ForetellError):
            self._again_at_ms.put(wallet, self._now_ms() + RETRY_MS)
        finally:
            self._budget.end_waiting(client)

    async def _ask(self, wallet: Address, client: str) -> bool:
        """Ask the indexer for a wallet, or return False when the client may ask for no more in this minute."""
        now_ms = self._now_ms()
        if not self._budget.take(client, now_ms):
            return False
        async with self._database.writing() as tx:
            await record_asked(tx, wallet, now_ms)
        return True

    async def _is_read(self, wallet: Address) -> bool:
        async with self._database.public_reading(ReadKind.OWN) as tx:
            return await is_read(tx, wallet)

    async def _arrival(self, wallet: Address) -> None:
        """Return when the funds of the wallet have arrived; the caller has the deadline."""
        while True:
            if await self._has_arrived(wallet):
                return
            await asyncio.sleep(POLL_S)

    async def _has_arrived(self, wallet: Address) -> bool:
        """Return whether the wallet is read, and the engine has the funds that the tables show."""
        keys = [(wallet, exchange, True) for exchange in self._exchanges]
        async with self._database.public_reading(ReadKind.OWN) as tx:
            if not await is_read(tx, wallet):
                return False
            held = await load_balances(tx, [(wallet, COLLATERAL)])
            allowed = await load_allowances(tx, keys)
        view = await self._fetch_collateral(wallet)
        units_by_exchange = {row.spender: row.units for row in allowed}
        return view.confirmed_units == sum(row.units for row in held) and [
            units_by_exchange.get(exchange, 0) for exchange in self._exchanges
        ] == list(view.allowed_units)
