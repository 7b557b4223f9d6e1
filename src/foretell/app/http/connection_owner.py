"""The connection in front of the framework's, as far as the latter knows it."""

from typing import Protocol


class ConnectionOwner(Protocol):
    """The connection in front of the framework's."""

    @property
    def is_idle(self) -> bool:
        """Whether no request has begun that is not answered."""

    def framework_is_idle(self, *, has_begun: bool) -> None:
        """Every request that was passed on is answered; none has begun if only empty lines came."""

    def framework_upgrades(self) -> None:
        """The transport gets a protocol for a WebSocket."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport, which has the protocol of a WebSocket, has ended."""

    def closes_after_answer(self) -> bool:
        """Return whether a fast request is being answered; the connection closes after it."""
