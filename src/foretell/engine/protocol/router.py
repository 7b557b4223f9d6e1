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
    AccountView,
    Answer,
    Answering,
    Beat,
    Beaten,
    Canceled,
    CancelMatching,
    CancelNamed,
    LookUpAccount,
    Question,
)

SomeAnswer = TypeVar("SomeAnswer", bound=Answer)


class Shard(Protocol):
    """One engine, as those see it who ask it."""

    async def ask(self, question: Question) -> Answer:
        """Return the answer, durable if anything changed; or raise the refusal."""

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""


class Shards:
    """Every engine of the installation, by its number, and the treasury that several share."""

    def __init__(self, shards: Sequence[Shard], treasury: Answering | None = None) -> None:
        assert shards
        self._shards = tuple(shards)
        self._treasury = treasury

    async def ask(
        self, condition_id: Bytes32, question: Question, kind: type[SomeAnswer]
    ) -> SomeAnswer:
        """Return what the engine of a market answers, or raise its refusal."""
        shard = self._shards[shard_of(condition_id, len(self._shards))]
        answer = await shard.ask(question)
        assert isinstance(answer, kind)
        return answer

    async def cancel(self, question: CancelNamed | CancelMatching) -> Canceled:
        """Take orders out of whichever book they are in."""
        answers = await self._ask_all(question, Canceled)
        canceled = dict.fromkeys(order_id for answer in answers for order_id in answer.canceled)
        return Canceled(
            list(canceled),
            {
                order_id: reason
                for answer in answers
                for order_id, reason in answer.not_canceled.items()
                if order_id not in canceled
            },
        )

    async def account(self, question: LookUpAccount, condition_id: Bytes32 | None) -> AccountView:
        """Return what a wallet has: of a market's token, or of collateral in all engines together."""
        if condition_id is not None:
            return await self.ask(condition_id, question, AccountView)
        views = await self._ask_all(question, AccountView)
        if self._treasury is not None:
            free = await self._treasury.ask(question)
            assert isinstance(free, AccountView)
            views.append(free)
        return AccountView(
            confirmed_units=sum(view.confirmed_units for view in views),
            pending_units=sum(view.pending_units for view in views),
            reserved_units=sum(view.reserved_units for view in views),
            allowed_units=views[0].allowed_units,
            observed_block=min(view.observed_block for view in views),
        )

    async def beat(self, question: Beat) -> str:
        """Take a beat of a key, and return the name of this one; the first engine keeps them."""
        answer = await self._shards[0].ask(question)
        assert isinstance(answer, Beaten)
        return answer.heartbeat_id

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        await asyncio.gather(*(shard.wait_for_tables() for shard in self._shards))

    async def _ask_all(self, question: Question, kind: type[SomeAnswer]) -> list[SomeAnswer]:
        typed: list[SomeAnswer] = []
        for answer in await asyncio.gather(*(shard.ask(question) for shard in self._shards)):
            assert isinstance(answer, kind)
            typed.append(answer)
        return typed
