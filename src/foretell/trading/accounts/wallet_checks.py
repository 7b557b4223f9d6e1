"""Checks that contract wallets accept their owners' signatures on the chain.

The signature was recovered before: the owner of a wallet of a known factory signed the order. The chain
is asked whether the wallet is there and answers as its code should, with the gas that the exchange would
give it. The code of a wallet never changes, so the answer is kept for a while: most orders of a wallet
cost no call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.order import WalletRefuses
from foretell.domain.values.hexadecimal import Address
from foretell.runtime.lru import LruCache

WALLETS_KEPT_MAX: Final = 20_000
ACCEPTED_KEPT_MS: Final = 60_000
ANSWER_DEADLINE_S: Final = 5.0

FetchAccepts = Callable[[Address, bytes, bytes], Awaitable[bool]]
"""Fetches from the chain whether a wallet accepts a signature over a digest (ERC-1271)."""


class WalletChecks:
    """The wallets that accepted a signature lately."""

    def __init__(
        self,
        fetch_accepts: FetchAccepts,
        now_ms: Callable[[], int],
        *,
        kept_max: int = WALLETS_KEPT_MAX,
    ) -> None:
        self._fetch_accepts = fetch_accepts
        self._now_ms = now_ms
        self._accepted_at_ms: LruCache[Address, int] = LruCache(kept_max)

    def is_known(self, wallet: Address) -> bool:
        """Return whether the wallet accepted a signature of its owner within a minute."""
        at_ms = self._accepted_at_ms.get(wallet)
        return at_ms is not None and self._now_ms() - at_ms < ACCEPTED_KEPT_MS

    async def check(self, wallet: Address, digest: bytes, signature: bytes) -> None:
        """Refuse an order that its wallet does not accept, or that the chain does not answer for in time."""
        try:
            async with asyncio.timeout(ANSWER_DEADLINE_S):
                is_accepted = await self._fetch_accepts(wallet, digest, signature)
        except TimeoutError as error:
            raise ChainUnavailable("isValidSignature", "no answer in time") from error
        if not is_accepted:
            raise WalletRefuses(wallet)
        self._accepted_at_ms.put(wallet, self._now_ms())
