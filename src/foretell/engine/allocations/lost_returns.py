"""The returns that a shard's journal has lost, and that the shard makes again.

A shard that starts from an older journal counts units as its own that it gave back: another shard may have
them by now. So it gives them back again, and its newest orders close if they need them. What its
trades took of them is owed: until it is back, the shard is granted nothing of that wallet.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from foretell.domain.exchange.allocations import Allocation, AllocationTotal, total_of
from foretell.domain.treasury.commands import TakeBack
from foretell.domain.treasury.treasury import look_up_allocation
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.endpoint import EngineEndpoint
from foretell.engine.protocol.requests import ReturnReply, ReturnRequest
from foretell.engine.writer.treasury_engine import TreasuryEngine

RETURNS_AT_ONCE: Final = 100
NOTHING: Final = Allocation()

log = structlog.get_logger(__name__)


class LostReturns:
    """The returned totals that the treasury's journal has and a shard's has not, of every shard."""

    def __init__(self, treasury: TreasuryEngine, shards: Mapping[str, EngineEndpoint]) -> None:
        self._treasury = treasury
        self._shards = shards
        self._owed_by_shard: dict[str, dict[Address, int]] = {name: {} for name in shards}

    def returned_units(self, name: str) -> dict[Address, int]:
        """Return the returned totals that the treasury knows; a later report has no less."""
        allocations_by_wallet = self._treasury.state.allocations_by_wallet
        return {
            wallet: held[name].returned_units
            for wallet, held in allocations_by_wallet.items()
            if name in held
        }

    async def make_again(
        self, name: str, returned: Mapping[Address, int], reported: Mapping[Address, Allocation]
    ) -> None:
        """Have a shard return what it returned before a whole report, where that has less."""
        lost = {
            wallet: units
            for wallet, units in returned.items()
            if units > reported.get(wallet, NOTHING).returned_units
        }
        if lost:
            log.error("shard lost returns, and makes them again", shard=name, wallets=len(lost))
            self._owed_by_shard[name].update(lost)
            await self._treasury.sync()
            await self.collect(name)

    async def collect(self, name: str) -> None:
        """Have a shard return what it still owes, as far as it is free."""
        wallets = list(self._owed_by_shard[name])
        for start in range(0, len(wallets), RETURNS_AT_ONCE):
            some = wallets[start : start + RETURNS_AT_ONCE]
            await asyncio.gather(*(self._return(name, wallet) for wallet in some))

    async def owes(self, name: str, wallet: Address) -> bool:
        """Return whether a shard still owes units of a wallet, after it was asked for them."""
        await self._return(name, wallet)
        return wallet in self._owed_by_shard[name]

    async def _return(self, name: str, wallet: Address) -> None:
        """Have a shard return what it owes of a wallet, at the cost of the wallet's newest orders."""
        owed = self._owed_by_shard[name]
        units = owed.get(wallet)
        if units is None:
            return
        given = look_up_allocation(self._treasury.state, name, wallet).given_units
        reply = await self._shards[name].handle(
            ReturnRequest(
                name, AllocationTotal(wallet, total_of(given)), total_of(units), is_forced=True
            )
        )
        assert isinstance(reply, ReturnReply)
        if int(reply.returned.total) >= units:
            owed.pop(wallet, None)
        else:
            missing = units - int(reply.returned.total)
            log.warning("shard owes units", shard=name, wallet=wallet, units=missing)
        await self._treasury.submit(TakeBack(self._treasury.now_ms(), name, (reply.returned,)))
