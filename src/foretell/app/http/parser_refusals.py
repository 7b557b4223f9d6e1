"""The refusals of requests that the parser of HTTP does not take."""

import re
from http import HTTPMethod
from typing import Final

import httptools

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedRequest, UnknownMethod, UnsupportedVersion

_METHOD: Final = re.compile(rb"[A-Za-z][A-Za-z-]{0,39}(?= )")
_KNOWN_METHODS: Final = frozenset(HTTPMethod)
_OTHER_VERSION: Final = "Invalid HTTP version"
"""The parser's words for a version that does not exist."""


class RequestRefused(Exception):
    """Ends the parsing of a request from within one of the parser's callbacks."""

    def __init__(self, refusal: ForetellError) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refusal_of(error: httptools.HttpParserError, data: bytes) -> ForetellError:
    """Return the refusal of a request that the parser refuses; `data` begins with it, or is empty."""
    if isinstance(error.__context__, RequestRefused):
        return error.__context__.refusal
    method = _METHOD.match(data)
    if isinstance(error, httptools.HttpParserInvalidMethodError) and method is not None:
        name = method[0].decode()
        if name not in _KNOWN_METHODS:
            return UnknownMethod(name)
    if str(error) == _OTHER_VERSION:
        return UnsupportedVersion()
    if isinstance(error, httptools.HttpParserCallbackError):
        return MalformedRequest("its path is malformed")
    return MalformedRequest(str(error))
