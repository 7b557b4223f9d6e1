"""Headers for browsers, on every answer: what an answer is not, and what a page made of it may do.

An answer with a header of its own for the same purpose keeps it: `/docs` is a page, and has its own policy.
"""

from typing import Final

from foretell.edge.telemetry import AsgiApp, Message, Receive, Scope, Send

SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
SECURITY_LINES: Final = "".join(
    f"{name.decode()}: {value.decode()}\r\n" for name, value in SECURITY_HEADERS
)
"""The headers as they are sent, for answers that are written without an application."""


class SecureApplication:
    """An application whose answers have the headers.

    A handshake that is refused has them from its connection: here they would cost time at every frame.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the headers to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                names = {name for name, _ in headers}
                added = [header for header in SECURITY_HEADERS if header[0] not in names]
                message = {**message, "headers": [*headers, *added]}
            await send(message)

        await self._app(scope, receive, send_with)
