"""The tokens that exchanges keep for a wallet, as the exchanges say it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address

CHAIN_S: Final = 5.0
"""The deadline of the chain's answer."""

FetchOwed = Callable[[Address, Sequence[tuple[Address, AssetId]]], Awaitable[list[int]]]
"""Returns what is owed to an account of each token at each exchange, at the newest block."""


@dataclass(frozen=True, slots=True)
class OwedReader:
    """The exchanges of an installation, and how to ask them."""

    exchanges: Sequence[Address]
    fetch: FetchOwed

    async def units(self, account: Address, keys: Sequence[tuple[Address, AssetId]]) -> list[int]:
        """Return what is owed of each exchange's token; no keys cost no request."""
        if not keys:
            return []
        try:
            async with asyncio.timeout(CHAIN_S):
                return await self.fetch(account, keys)
        except TimeoutError as error:
            raise ChainUnavailable("eth_call", f"no answer in {CHAIN_S:g} s") from error
