"""Origins of web pages, and which of them may use the APIs from a browser."""

import re
from typing import Final, NamedTuple

ANY_ORIGIN: Final = "*"
READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_ORIGIN: Final = re.compile(r"https?://[^\s/,@?#]+\Z")


def is_origin(text: str) -> bool:
    """Return whether a text is an origin, `scheme://host[:port]`, or stands for every one."""
    return text == ANY_ORIGIN or _ORIGIN.match(text) is not None


class CrossOrigin(NamedTuple):
    """The origins that may use the APIs, and the paths whose changes are refused to all others."""

    allowed: frozenset[str]
    guarded: str | None = None
    """The beginning of these paths; the empty text guards every path, None guards none."""

    @property
    def allows_all(self) -> bool:
        """Whether pages of every origin may use the APIs."""
        return ANY_ORIGIN in self.allowed

    def allows(self, origin: str) -> bool:
        """Return whether pages of an origin may use the APIs."""
        return self.allows_all or origin in self.allowed

    def may_change(self, origin: str, path: str) -> bool:
        """Return whether a page of an origin may send a request that changes something at a path."""
        is_guarded = self.guarded is not None and path.startswith(self.guarded)
        return not is_guarded or self.allows(origin)
