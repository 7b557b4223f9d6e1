"""Examples in the documents: requests and answers that were recorded while the tests ran.

`make examples` writes the files; a test checks that they fit the documents.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import msgspec

from foretell.edge.documents.errors import code_in


class Examples:
    """The examples of an API, by the name of the handler."""

    def __init__(self, recorded: Mapping[str, Mapping[str, Any]]) -> None:
        self._recorded = recorded

    @classmethod
    def of(cls, name: str) -> "Examples":
        """Return the examples of an API, none if there is no file of them."""
        file = files(__package__) / "recorded" / f"{name}.json"
        return cls(msgspec.json.decode(file.read_bytes()) if file.is_file() else {})

    def parameters(self, handler: str) -> Mapping[str, Any]:
        """Return the parameters of a request, by name."""
        found: Mapping[str, Any] = self._of(handler).get("parameters", {})
        return found

    def request(self, handler: str) -> Any:
        """Return the body of a request, or None."""
        return self._of(handler).get("request")

    def answer(self, handler: str, status: int) -> Any:
        """Return an answer of a status, or None."""
        return self._of(handler).get(str(status))

    def refusal(self, handler: str, status: int, codes: Sequence[str]) -> Any:
        """Return a refusal of a status: of the operation, or one with its codes of another, or None."""
        others = (recorded.get(str(status)) for recorded in self._recorded.values())
        shared = (body for body in others if body is not None and code_in(body) in codes)
        return self.answer(handler, status) or next(shared, None)

    def _of(self, handler: str) -> Mapping[str, Any]:
        return self._recorded.get(handler, {})
