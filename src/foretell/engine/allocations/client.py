"""The shard's request for collateral that its allocation of a wallet lacks.

An order that the allocation covers needs no request. For one that lacks something the treasury is
asked for exactly that, and the order is tried again. When the treasury does not reply, the order is
refused and nothing was done.
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
from foretell.engine.answers import Handler
from foretell.engine.protocol.endpoint import EngineEndpoint
from foretell.engine.protocol.requests import (
    CheckOrderRequest,
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


class _OrderAttempt(NamedTuple):
    """An order to be placed or checked, and when to give up on collateral for it."""

    handler: Handler
    engine: Engine
    request: PlaceRequest | CheckOrderRequest
    deadline_s: float

    @property
    def wallet(self) -> Address:
        """The wallet that pays for the order."""
        return self.request.command.order.maker


class _Grant(NamedTuple):
    """The total that the treasury gave, and whether it covers what was missing."""

    taking: TakeAllocations
    is_enough: bool


class AllocationClient:
    """The shard's connection to the treasury, which knows the shard by this name."""

    def __init__(
        self, shard: str, treasury: EngineEndpoint, *, fund_deadline_s: float = FUND_DEADLINE_S
    ) -> None:
        self.shard = shard
        self._treasury = treasury
        self._fund_deadline_s = fund_deadline_s
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()

    async def handle(
        self, handler: Handler, engine: Engine, request: PlaceRequest | CheckOrderRequest
    ) -> EngineReply:
        """Return the handler's reply to an order, with collateral from the treasury if needed.

        A wallet's orders that lack something wait for each other, so that one does not take away
        what was just gathered for another.
        """
        try:
            return await handler(engine, request)
        except NotEnoughFunds as refusal:
            if refusal.shortfall.asset != COLLATERAL:
                raise
            lack = refusal
        deadline_s = asyncio.get_running_loop().time() + self._fund_deadline_s
        attempt = _OrderAttempt(handler, engine, request, deadline_s)
        async with self._turn(attempt.wallet, deadline_s):
            return await self._handle_funded(attempt, lack)

    @contextlib.asynccontextmanager
    async def _turn(self, wallet: Address, deadline_s: float) -> AsyncIterator[None]:
        """Wait for the earlier orders of the wallet, and make later ones wait."""
        lock = self._locks.setdefault(wallet, asyncio.Lock())
        try:
            async with asyncio.timeout_at(deadline_s):
                await lock.acquire()
        except TimeoutError:
            raise TreasuryUnavailable(
                "earlier orders of the wallet still wait for its reply"
            ) from None
        try:
            yield
        finally:
            lock.release()

    async def _handle_funded(self, attempt: _OrderAttempt, lack: NotEnoughFunds) -> EngineReply:
        """Request what is missing and try the order again, until it is covered or cannot be."""
        tries = 0
        while True:
            grant = await self._fund(attempt, lack)
            tries += 1
            try:
                return await _handle_with(attempt, grant.taking)
            except NotEnoughFunds as refusal:
                if tries == FUND_TRIES_MAX or not grant.is_enough:
                    raise
                lack = refusal

    async def _fund(self, attempt: _OrderAttempt, lack: NotEnoughFunds) -> _Grant:
        """Return what the treasury gave in reply to a request for what is missing now."""
        engine, wallet = attempt.engine, attempt.wallet
        allocations = engine.state.allocations
        if allocations.shard != self.shard:
            raise TreasuryUnavailable("it has not accepted the shard yet")
        lacking = lack.shortfall
        missing_units = engine.state.ledger.missing_units(
            wallet, Address(lacking.spender), COLLATERAL, lacking.need_units
        )
        if missing_units == 0:
            return _Grant(TakeAllocations(engine.clock_ms(), self.shard, ()), is_enough=False)
        # The request names a total, not a difference: if its reply is lost, the same request is
        # sent again and the treasury grants nothing twice.
        wanted_units = allocations.look_up(wallet).given_units + missing_units
        request = FundRequest(self.shard, wallet, total_of(wanted_units))
        funded = await self._request(request, attempt.deadline_s)
        taking = TakeAllocations(engine.clock_ms(), self.shard, (funded.given,))
        return _Grant(taking, is_enough=int(funded.given.total) >= wanted_units)

    async def _request(self, request: FundRequest, deadline_s: float) -> FundReply:
        try:
            async with asyncio.timeout_at(deadline_s):
                reply = await self._treasury.handle(request)
        except TimeoutError:
            raise TreasuryUnavailable("it does not answer") from None
        except Unavailable as cause:
            raise TreasuryUnavailable(cause.message) from cause
        assert isinstance(reply, FundReply)
        return reply


async def _handle_with(attempt: _OrderAttempt, taking: TakeAllocations) -> EngineReply:
    """Return the reply once the shard has taken the grant.

    Both are submitted in one turn of the event loop, so no other order spends the grant in between.
    """
    taken, reply = await asyncio.gather(
        attempt.engine.submit(taking),
        attempt.handler(attempt.engine, attempt.request),
        return_exceptions=True,
    )
    if not isinstance(reply, BaseException):
        return reply
    raise taken if isinstance(taken, BaseException) else reply
