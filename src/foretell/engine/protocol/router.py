"""The router from a market or a wallet to the engines that serve it.

Most installations have one engine, in the process that serves clients. Larger ones have several,
each in a process of its own. A market belongs to one of them permanently; a wallet's collateral is
allocated to several.
"""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.sharding import shard_of
from foretell.engine.protocol.endpoint import EngineEndpoint, SettlePlacing, Shard
from foretell.engine.protocol.requests import (
    AccountReply,
    AccountRequest,
    CancelMatchingRequest,
    CancelOrdersReply,
    CancelOrdersRequest,
    EngineReply,
    EngineRequest,
    HeartbeatReply,
    HeartbeatRequest,
    PlaceRequest,
)

Reply = TypeVar("Reply", bound=EngineReply)


class Shards:
    """Every engine of the installation, by its number, and the treasury that several share."""

    def __init__(self, shards: Sequence[Shard], treasury: EngineEndpoint | None = None) -> None:
        assert shards
        self._shards = tuple(shards)
        self._treasury = treasury

    async def handle(
        self, condition_id: Bytes32, request: EngineRequest, kind: type[Reply]
    ) -> Reply:
        """Return the reply of a market's engine, or raise its refusal."""
        reply = await self._shards[shard_of(condition_id, len(self._shards))].handle(request)
        assert isinstance(reply, kind)
        return reply

    def begin_placing(
        self, condition_id: Bytes32, request: PlaceRequest, settle: SettlePlacing
    ) -> bool:
        """Place an order at a market's engine without a coroutine; return False if it needs one."""
        shard = self._shards[shard_of(condition_id, len(self._shards))]
        return shard.begin_placing(request, settle)

    async def cancel(
        self, request: CancelOrdersRequest | CancelMatchingRequest
    ) -> CancelOrdersReply:
        """Cancel orders in all engines."""
        replies = await self._handle_all(request, CancelOrdersReply)
        canceled = dict.fromkeys(order_id for reply in replies for order_id in reply.canceled)
        return CancelOrdersReply(
            list(canceled),
            {
                order_id: reason
                for reply in replies
                for order_id, reason in reply.not_canceled.items()
                if order_id not in canceled
            },
        )

    async def account(self, request: AccountRequest, condition_id: Bytes32 | None) -> AccountReply:
        """Return what a wallet holds: of a market's token, or of collateral in all engines."""
        if condition_id is not None:
            return await self.handle(condition_id, request, AccountReply)
        views = await self._handle_all(request, AccountReply)
        if self._treasury is not None:
            free = await self._treasury.handle(request)
            assert isinstance(free, AccountReply)
            views.append(free)
        return AccountReply(
            confirmed_units=sum(view.confirmed_units for view in views),
            pending_units=sum(view.pending_units for view in views),
            reserved_units=sum(view.reserved_units for view in views),
            allowed_units=views[0].allowed_units,
            observed_block=min(view.observed_block for view in views),
        )

    async def beat(self, request: HeartbeatRequest) -> str:
        """Take a heartbeat, and return its id; the first engine keeps them."""
        reply = await self._shards[0].handle(request)
        assert isinstance(reply, HeartbeatReply)
        return reply.heartbeat_id

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        await asyncio.gather(*(shard.wait_for_tables() for shard in self._shards))

    async def _handle_all(self, request: EngineRequest, kind: type[Reply]) -> list[Reply]:
        """Return the replies of all engines; one alone is asked in this task, without turns of the loop for another."""
        replies: list[Reply] = []
        asked = [shard.handle(request) for shard in self._shards]
        for reply in await asyncio.gather(*asked) if len(asked) > 1 else [await asked[0]]:
            assert isinstance(reply, kind)
            replies.append(reply)
        return replies
