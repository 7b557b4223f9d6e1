"""All APIs on one port, each under its prefix, and the server for them.

The prefix is removed before an API sees the path: clients sign the route without it.
"""

import asyncio
import contextlib
import errno
import resource
import socket
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, cast

import msgspec
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from typing_extensions import override

from foretell.app.clock_and_ids import numbered_ids
from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces, PlaceLimits
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.fast_connection import FastConnection
from foretell.app.http.fast_routes import NO_FAST_ROUTES, FastRoutes
from foretell.app.http.rendered_metrics import RenderedMetrics
from foretell.app.http.stream_connection import StreamConnection
from foretell.creation.refusals import worker_body
from foretell.domain.errors.command import CannotListen, PortTaken
from foretell.domain.errors.http import OriginRefused, TooManyRequests, UnknownRoute
from foretell.edge.codec import SENT_METHOD
from foretell.edge.telemetry import AsgiApp, Receive, Scope, Send

METRICS: Final = "/metrics"
HTML: Final = b"text/html"
BACKLOG: Final = 2048
FILES_WANTED: Final = 16 * 1024
FILES_KEPT_BACK: Final = 256
"""Descriptors left for the journal, the database and the chain: connections never use the last ones."""
START_POLL_S: Final = 0.01
SHUTDOWN_S: Final = 5
"""Within which the answers of a server that ends are sent."""
STOP_DEADLINE_S: Final = 10.0
"""For a server to end."""
FRAME_BYTES_MAX: Final = 256 * 1024
UNSENT_BYTES_MAX: Final = 64 * 1024
"""Bytes that the kernel queues for a connection without having sent them: what waits beyond them waits in the server, whose
bounds count it."""


class Gateway:
    """The applications by their prefixes; an empty prefix takes every other path."""

    def __init__(
        self, app_by_prefix: Mapping[str, AsgiApp], base_url: str, *, has_metrics: bool = True
    ) -> None:
        self._app_by_prefix = app_by_prefix
        self._metrics = RenderedMetrics() if has_metrics else None
        self._index: Any = {name.strip("/"): base_url + name for name in app_by_prefix if name}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the API of its prefix."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            # The answer to GET: the server sends its head, and leaves out its body.
            scope = {**scope, "method": "GET", SENT_METHOD: "HEAD"}
        path = scope["path"]
        if path == METRICS and scope["type"] == "http":
            if self._metrics is None:
                await send_unknown_route(send, path)
            else:
                await send_metrics(scope, send, self._metrics)
            return
        prefix = "/" + path[1:].partition("/")[0]
        app = self._app_by_prefix.get(prefix)
        if app is not None:
            raw = scope.get("raw_path") or path.encode()
            inner = {
                **scope,
                "path": path[len(prefix) :] or "/",
                "raw_path": raw[len(prefix) :] or b"/",
            }
            await app(inner, receive, send)
        elif "" in self._app_by_prefix and not (path == "/" and self._wants_index(scope)):
            await self._app_by_prefix[""](scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(path, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _wants_index(self, scope: Scope) -> bool:
        """Return whether a program asks for the list of the APIs; a browser asks for the web app's page."""
        if scope["type"] != "http" or not self._index:
            return False
        accepted = (value for name, value in scope["headers"] if name == b"accept")
        return not any(HTML in value for value in accepted)

    async def _answer(self, path: str, send: Send) -> None:
        if path != "/":
            await send_unknown_route(send, path)
            return
        await _respond(send, 200, b"application/json", msgspec.json.encode(self._index))


async def send_metrics(scope: Scope, send: Send, metrics: RenderedMetrics) -> None:
    """Answer with the metrics of this process, or refuse an address that asks too often."""
    peer = scope.get("client")
    try:
        text = metrics.text_for(peer[0] if peer else None)
    except TooManyRequests as refusal:
        status, body = worker_body(refusal)
        retry = (b"retry-after", str(refusal.retry_after_s).encode())
        await _respond(send, status, b"application/json", msgspec.json.encode(body), retry)
    else:
        await _respond(send, 200, CONTENT_TYPE_LATEST.encode(), text)


async def send_unknown_route(send: Send, path: str) -> None:
    """Refuse a path that no API has."""
    status, body = worker_body(UnknownRoute(f"no API has the path {path}"))
    await _respond(send, status, b"application/json", msgspec.json.encode(body))


async def refuse_origin(send: Send, refusal: OriginRefused) -> None:
    """Refuse a page of an origin that is not allowed."""
    status, body = worker_body(refusal)
    await _respond(send, status, b"application/json", msgspec.json.encode(body))


async def _respond(
    send: Send, status: int, kind: bytes, content: bytes, *further: tuple[bytes, bytes]
) -> None:
    length = str(len(content)).encode()
    headers = [(b"content-type", kind), (b"content-length", length), *further]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


class Server(uvicorn.Server):
    """A uvicorn server as a task of its process, which handles signals itself."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self, listener: socket.socket, name: str) -> None:
        """Answer at a socket, in a task of this name, and return once that is so."""
        serving = self._serving = asyncio.create_task(self.serve([listener]), name=name)
        while not self.started:
            if serving.done():
                await serving
            await asyncio.sleep(START_POLL_S)

    async def wait(self) -> None:
        """Return when the server has ended, raising what ended it."""
        assert self._serving is not None, "it was started"
        await asyncio.shield(self._serving)

    async def finish(self) -> None:
        """Stop accepting requests, and return when those that were accepted are answered, or soon."""
        if self._serving is not None:
            self.should_exit = True
            await asyncio.wait({self._serving}, timeout=STOP_DEADLINE_S)
            self._serving.cancel()

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signal here."""
        yield


def build_server(  # noqa: PLR0913, PLR0917 - everything after the port has a default
    app: AsgiApp,
    host: str,
    port: int,
    fast_routes: FastRoutes = NO_FAST_ROUTES,
    limits: ConnectionLimits = CONNECTION_LIMITS,
    refusals: ConnectionRefusals | None = None,
    places: ConnectionPlaces | None = None,
) -> Server:
    """Return a server of an application, with the fast routes that bypass it."""
    connection = partial(
        FastConnection,
        fast_routes,
        limits=limits,
        refusals=refusals or ConnectionRefusals(numbered_ids()),
        places=places or ConnectionPlaces(PlaceLimits.of(connections_max())),
    )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=cast("type[asyncio.Protocol]", connection),
        ws=StreamConnection,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=limits.keep_alive_s,  # type: ignore[arg-type] # passed to call_later as it is
        timeout_graceful_shutdown=SHUTDOWN_S,
        ws_max_size=FRAME_BYTES_MAX,
        ws_per_message_deflate=False,  # a small frame could cost as much as a large one
    )
    return Server(config)


def connections_max() -> int:
    """Return the most connections served at once, having raised the limit of descriptors for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return min(max(soft, files), FILES_WANTED) - FILES_KEPT_BACK


def bind(host: str, port: int, setting: str, *, is_shared: bool = False) -> socket.socket:
    """Return a socket bound to the port, or refuse a port that another program uses.

    A shared one may be bound by several processes of this user.
    """
    with contextlib.ExitStack() as undo:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            # asyncio turns off Nagle's algorithm only for a socket with an explicit TCP protocol.
            kind = socket.SOCK_STREAM, socket.IPPROTO_TCP
            listener = undo.enter_context(socket.socket(family, *kind))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, is_shared)
            # Connections inherit it.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
            listener.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(host, port, setting) from error
            raise CannotListen(host, port, setting, error.strerror or str(error)) from error
        undo.pop_all()
    return listener
