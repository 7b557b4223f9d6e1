"""The interface of an engine's tables: written in this process, or in a child process."""

from typing import Protocol

from foretell.engine.protocol.requests import CommittedCommand


class Tables(Protocol):
    """The tables that follow what one engine publishes."""

    sequence: int
    """The sequence that the tables are at: its command and all before are written."""

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that no more orders should be taken."""

    async def start(self) -> None:
        """Load the sequence that the tables are at."""

    def on_committed(self, committed: CommittedCommand) -> None:
        """Take the effects of a durable command, unless the tables have them already."""

    async def drain_if_large(self) -> None:
        """Return when rows are written and not too much waits: a start may publish a whole journal."""

    async def catch_up(self) -> None:
        """Return when everything that was taken until now is written."""

    def flush_now(self) -> None:
        """Write what was taken without gathering more."""

    async def run(self) -> None:
        """Write what was taken, until cancelled."""

    async def close(self) -> None:
        """Release what the tables hold; the journal has what is not written by then."""
