"""The interfaces of an engine, the same in this process and behind a socket."""

from collections.abc import Callable
from typing import Protocol

from foretell.domain.errors.families import ForetellError
from foretell.engine.protocol.requests import (
    CommittedCommand,
    EngineReply,
    EngineRequest,
    PlaceReply,
    PlaceRequest,
)

Subscriber = Callable[[CommittedCommand], None]
"""Takes each command of an engine in order, once it is durable."""


SettlePlacing = Callable[[PlaceReply | ForetellError], None]
"""Takes the reply or the refusal of a request to place an order, once."""


class EngineEndpoint(Protocol):
    """An engine or a treasury that handles requests."""

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the reply, once any change is durable; or raise the refusal."""


class Shard(EngineEndpoint, Protocol):
    """An engine with tables, as its clients see it."""

    def begin_placing(self, request: PlaceRequest, settle: SettlePlacing) -> bool:
        """Place an order without a coroutine; `settle` gets the reply once it is durable.

        Return False, and do nothing, when this request needs `handle`.
        """

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
