"""The application of an API until its process has started: it refuses every request.

A start takes longer the more commands it replays. Each refusal says that the API is starting, and when to
try again.
"""

from collections.abc import Callable

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.edge.telemetry import Receive, Scope, Send

BodyOf = Callable[[ForetellError], tuple[int, object]]
"""Returns the status and the body of a refusal, as the clients of an API expect them."""


class UnavailableApp:
    """An application that refuses every request in the words of its API."""

    def __init__(self, body_of: BodyOf, refusal: ForetellError) -> None:
        self._status, body = body_of(refusal)
        self._content = msgspec.json.encode(body)
        self._retry_after_s = str(refusal.retry_after_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse; the handshake of a WebSocket gets the same body."""
        del receive
        kind = "http" if scope["type"] == "http" else "websocket.http"
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self._content)).encode()),
            (b"retry-after", self._retry_after_s.encode()),
        ]
        await send({"type": f"{kind}.response.start", "status": self._status, "headers": headers})
        await send({"type": f"{kind}.response.body", "body": self._content})
