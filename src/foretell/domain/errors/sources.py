"""Refusals of the node and the database that a command reads.

Their place in the tree of refusals: see `families`.
"""

from foretell.domain.errors.families import Conflict, Unavailable, Upstream


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
