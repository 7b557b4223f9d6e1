"""Refusals of what a command reads or opens: the node, the database, a journal, the number of an engine.

Their place in the tree of refusals: see `families`.
"""

from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    InvalidInput,
    Unavailable,
    Upstream,
)
from foretell.domain.errors.storage import ForeignJournal


class ForeignNode(Conflict):
    """A command's node serves another chain than the tables are of; nothing was read from it."""

    def __init__(self, node: str, seen: str, database: str, kept: str) -> None:
        super().__init__(
            f"the node {node} serves {seen}, and the database {database} is of {kept}: start the sandbox of this"
            " data folder, or name the two that belong together with FORETELL_RPC_URL and FORETELL_DATABASE_URL"
        )


class NodeUnavailable(Upstream):
    """A command's node did not answer; the message names its address without keys."""

    definite = False

    def __init__(self, cause: str, node: str) -> None:
        super().__init__(f"{cause}; the node is {node}; FORETELL_RPC_URL names another")


class DatabaseUnavailable(Unavailable):
    """A command's database did not answer, or does not exist; the message names it without a password."""

    definite = False

    def __init__(self, cause: str, database: str) -> None:
        super().__init__(
            f"{cause}; the database is {database}; FORETELL_DATABASE_URL names another"
        )


class JournalOfAnotherReader(ForeignJournal):
    """The journal of one engine was opened by another; its commands are of markets of the other one."""

    def __init__(self, name: str, reader: str, journal_id: str) -> None:
        ForetellError.__init__(
            self,
            f"the journal with id {journal_id} is that of {reader}, and was opened as that of {name}: start with the"
            " number of shards that the journals were created with, and put each journal back in its place",
            reader=reader,
            seen=journal_id,
        )


class UnknownShard(InvalidInput):
    """An engine has a number that no shard has."""

    def __init__(self, shard: int, shard_count: int) -> None:
        super().__init__(
            f"--shard {shard} is no engine of {shard_count}; their numbers are 0 to {shard_count - 1}"
        )
