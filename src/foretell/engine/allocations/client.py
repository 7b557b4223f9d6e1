"""What a shard's orders reach for when the shard's slice of a wallet's collateral is too small.

An order that its slice covers asks nobody. One that lacks something has the treasury asked for
exactly that and is tried again. When the treasury cannot be asked, nothing was done.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from foretell.domain.errors.exchange import NotEnoughFunds, TreasuryUnavailable
from foretell.domain.errors.families import Unavailable
from foretell.domain.exchange.allocations import total_of
from foretell.domain.exchange.commands import TakeAllocations
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address
from foretell.engine import answers
from foretell.engine.protocol.requests import (
    CheckOrderRequest,
    EngineEndpoint,
    EngineReply,
    FundReply,
    FundRequest,
    PlaceRequest,
)
from foretell.engine.writer.engine import Engine

FUND_DEADLINE_S: Final = 5.0
"""How long an order waits for the treasury, and for other orders of its wallet that wait for it."""
FUND_TRIES_MAX: Final = 3
"""How often an order asks: another shard may take what came for it while that is under way."""


class _Given(NamedTuple):
    """What the treasury gave in all, and whether it is what was wanted."""

    taking: TakeAllocations
    is_enough: bool


class AllocationClient:
    """A shard's way to the treasury, which knows the shard by this name."""

    def __init__(self, shard: str, treasury: EngineEndpoint) -> None:
        self.shard = shard
        self._treasury = treasury
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()

    async def answer(
        self, engine: Engine, question: PlaceRequest | CheckOrderRequest
    ) -> EngineReply:
        """Return what the engine makes of an order, with what the treasury finds for it.

        A wallet's orders that lack something wait for each other, lest one takes away what was
        just gathered for another.
        """
        try:
            return await answers.handle(engine, question)
        except NotEnoughFunds as refusal:
            if refusal.shortfall.asset != COLLATERAL:
                raise
            lack = refusal
        deadline_s = asyncio.get_running_loop().time() + FUND_DEADLINE_S
        async with self._turn(question.command.order.maker, deadline_s):
            return await self._answer_funded(engine, question, lack, deadline_s)

    @contextlib.asynccontextmanager
    async def _turn(self, wallet: Address, deadline_s: float) -> AsyncIterator[None]:
        """Wait for the orders of the wallet that came before, and have others wait."""
        lock = self._locks.setdefault(wallet, asyncio.Lock())
        try:
            async with asyncio.timeout_at(deadline_s):
                await lock.acquire()
        except TimeoutError:
            raise TreasuryUnavailable("other orders of the wallet still wait for it") from None
        try:
            yield
        finally:
            lock.release()

    async def _answer_funded(
        self,
        engine: Engine,
        question: PlaceRequest | CheckOrderRequest,
        lack: NotEnoughFunds,
        deadline_s: float,
    ) -> EngineReply:
        """Have what is missing given, and try the order again, until it is there or nowhere."""
        wallet, tries = question.command.order.maker, 0
        while True:
            given = await self._fund(engine, wallet, lack, deadline_s)
            tries += 1
            try:
                return await _answer_with(engine, question, given.taking)
            except NotEnoughFunds as refusal:
                if tries == FUND_TRIES_MAX or not given.is_enough:
                    raise
                lack = refusal

    async def _fund(
        self, engine: Engine, wallet: Address, lack: NotEnoughFunds, deadline_s: float
    ) -> _Given:
        """Return what the treasury gave, once it was asked for what is missing now."""
        allocations = engine.state.allocations
        if allocations.shard != self.shard:
            raise TreasuryUnavailable("it has not greeted the shard yet")
        lacking = lack.shortfall
        missing_units = engine.state.ledger.missing_units(
            wallet, Address(lacking.spender), COLLATERAL, lacking.need_units
        )
        if missing_units == 0:
            return _Given(TakeAllocations(engine.clock_ms(), self.shard, ()), is_enough=False)
        wanted_units = allocations.look_up(wallet).given_units + missing_units
        funded = await self._ask(
            FundRequest(self.shard, wallet, total_of(wanted_units)), deadline_s
        )
        taking = TakeAllocations(engine.clock_ms(), self.shard, (funded.given,))
        return _Given(taking, is_enough=int(funded.given.total) >= wanted_units)

    async def _ask(self, question: FundRequest, deadline_s: float) -> FundReply:
        try:
            async with asyncio.timeout_at(deadline_s):
                funded = await self._treasury.ask(question)
        except TimeoutError:
            raise TreasuryUnavailable("it does not answer") from None
        except Unavailable as cause:
            raise TreasuryUnavailable(cause.message) from cause
        assert isinstance(funded, FundReply)
        return funded


async def _answer_with(
    engine: Engine, question: PlaceRequest | CheckOrderRequest, taking: TakeAllocations
) -> EngineReply:
    """Return the answer once the slice is here; nothing comes between the two."""
    taken, answered = await asyncio.gather(
        engine.submit(taking), answers.handle(engine, question), return_exceptions=True
    )
    if not isinstance(answered, BaseException):
        return answered
    raise taken if isinstance(taken, BaseException) else answered
