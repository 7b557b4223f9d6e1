"""The application of an API until its process has started: it refuses every request.

A start takes longer the more commands it replays. Each refusal says that the API is starting, and when to
try again.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from foretell.app.roles import Role
from foretell.creation.refusals import worker_body
from foretell.data.refusals import data_body
from foretell.discovery.refusals import discovery_body
from foretell.domain.errors.exchange import EngineRestarting
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import Starting
from foretell.edge.telemetry import Receive, Scope, Send
from foretell.relayer.refusals import relayer_body
from foretell.trading.refusals import trading_body

_REFUSAL_BY_ROLE: Final[
    Mapping[Role, tuple[Callable[[ForetellError], tuple[int, object]], ForetellError]]
] = MappingProxyType(
    {
        Role.TRADING: (trading_body, EngineRestarting()),
        Role.CREATION: (worker_body, Starting()),
        Role.RELAYER: (relayer_body, Starting()),
        Role.DATA: (data_body, Starting()),
        Role.DISCOVERY: (discovery_body, Starting()),
    }
)


class UnavailableApp:
    """An application that refuses every request in the words of its API."""

    def __init__(self, role: Role) -> None:
        body_of, refusal = _REFUSAL_BY_ROLE[role]
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
