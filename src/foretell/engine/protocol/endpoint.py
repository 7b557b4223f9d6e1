"""The interfaces of an engine, the same in this process and behind a socket."""

from collections.abc import Callable
from typing import Protocol

from foretell.engine.protocol.requests import CommittedCommand, EngineReply, EngineRequest

Subscriber = Callable[[CommittedCommand], None]
"""Takes each command of an engine in order, once it is durable."""


class EngineEndpoint(Protocol):
    """An engine or a treasury that handles requests."""

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the reply, once any change is durable; or raise the refusal."""


class Shard(EngineEndpoint, Protocol):
    """An engine with tables, as its clients see it."""

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
