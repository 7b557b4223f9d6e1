"""The engines of an installation, each with the markets that are its own, wherever they run.

Most installations have one engine, in the process that serves clients. Larger ones have several, each
in a process of its own. A market belongs to one of them for ever; a wallet's collateral is shared out.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.sharding import shard_of
from foretell.engine.protocol.requests import (
    AccountReply,
    AccountRequest,
    CancelMatchingRequest,
    CancelOrdersReply,
    CancelOrdersRequest,
    EngineEndpoint,
    EngineReply,
    EngineRequest,
    HeartbeatReply,
    HeartbeatRequest,
)

SomeAnswer = TypeVar("SomeAnswer", bound=EngineReply)


class Shard(Protocol):
    """One engine, as those see it who ask it."""

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return the answer, durable if anything changed; or raise the refusal."""

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""


class Shards:
    """Every engine of the installation, by its number, and the treasury that several share."""

    def __init__(self, shards: Sequence[Shard], treasury: EngineEndpoint | None = None) -> None:
        assert shards
        self._shards = tuple(shards)
        self._treasury = treasury

    async def ask(
        self, condition_id: Bytes32, question: EngineRequest, kind: type[SomeAnswer]
    ) -> SomeAnswer:
        """Return what the engine of a market answers, or raise its refusal."""
        shard = self._shards[shard_of(condition_id, len(self._shards))]
        answer = await shard.ask(question)
        assert isinstance(answer, kind)
        return answer

    async def cancel(
        self, question: CancelOrdersRequest | CancelMatchingRequest
    ) -> CancelOrdersReply:
        """Take orders out of whichever book they are in."""
        answers = await self._ask_all(question, CancelOrdersReply)
        canceled = dict.fromkeys(order_id for answer in answers for order_id in answer.canceled)
        return CancelOrdersReply(
            list(canceled),
            {
                order_id: reason
                for answer in answers
                for order_id, reason in answer.not_canceled.items()
                if order_id not in canceled
            },
        )

    async def account(self, question: AccountRequest, condition_id: Bytes32 | None) -> AccountReply:
        """Return what a wallet has: of a market's token, or of collateral in all engines together."""
        if condition_id is not None:
            return await self.ask(condition_id, question, AccountReply)
        views = await self._ask_all(question, AccountReply)
        if self._treasury is not None:
            free = await self._treasury.ask(question)
            assert isinstance(free, AccountReply)
            views.append(free)
        return AccountReply(
            confirmed_units=sum(view.confirmed_units for view in views),
            pending_units=sum(view.pending_units for view in views),
            reserved_units=sum(view.reserved_units for view in views),
            allowed_units=views[0].allowed_units,
            observed_block=min(view.observed_block for view in views),
        )

    async def beat(self, question: HeartbeatRequest) -> str:
        """Take a beat of a key, and return the name of this one; the first engine keeps them."""
        answer = await self._shards[0].ask(question)
        assert isinstance(answer, HeartbeatReply)
        return answer.heartbeat_id

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        await asyncio.gather(*(shard.wait_for_tables() for shard in self._shards))

    async def _ask_all(self, question: EngineRequest, kind: type[SomeAnswer]) -> list[SomeAnswer]:
        typed: list[SomeAnswer] = []
        for answer in await asyncio.gather(*(shard.ask(question) for shard in self._shards)):
            assert isinstance(answer, kind)
            typed.append(answer)
        return typed
