"""A read that is measured beside its bare SQL."""

from typing import Final, NamedTuple

DATA: Final = "data"
DISCOVERY: Final = "discovery"
TRADING: Final = "trading"


class ReadCase(NamedTuple):
    """A request, and the SQL that returns the rows of its answer; a body is posted."""

    name: str
    api: str
    path: str
    query: str
    sql: str
    values: dict[str, str]
    body: bytes = b""

    @property
    def method(self) -> str:
        """The method of the request."""
        return "POST" if self.body else "GET"
