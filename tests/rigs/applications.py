"""Applications: one per product in a test process, because building its routes is slow; served."""

import asyncio
import contextlib
import copy
import functools
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from litestar import Litestar
from tests.edge.documents.conformance import conforming

from foretell.app.gateway import bind, build_server
from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.fast_routes import NO_FAST_ROUTES, FastRoutes
from foretell.app.http.request_pace import LoopClock
from foretell.edge.documents.openapi import document_of
from foretell.edge.injection import state_with
from foretell.edge.telemetry import AsgiApp

POLL_S = 0.005

BuildApp = Callable[[Any], Litestar]


def an_app(build_app: BuildApp, context: object) -> Litestar:
    """Return the product's application with this context; other applications keep theirs."""
    routed = _routed(build_app)
    app = copy.copy(routed)
    app.state = state_with(context)
    if "api" in app.opt:
        app.asgi_handler = conforming(routed, routed.asgi_handler)
    return app


def openapi_document(build_app: BuildApp) -> dict[str, Any]:
    """Return the OpenAPI document of a product."""
    return document_of(_routed(build_app))


@functools.cache
def _routed(build_app: BuildApp) -> Litestar:
    return build_app(None)


def unlimited_places() -> ConnectionPlaces:
    """Return places by whose clock all debts are paid at once: time passes a million times as fast, and work takes none."""
    return ConnectionPlaces(clock=LoopClock(lambda: 1e6 * time.monotonic(), lambda: 0.0))


@contextlib.asynccontextmanager
async def serving(
    app: AsgiApp,
    fast_routes: FastRoutes = NO_FAST_ROUTES,
    limits: ConnectionLimits = CONNECTION_LIMITS,
    refusals: ConnectionRefusals | None = None,
    places: ConnectionPlaces | None = None,
) -> AsyncIterator[str]:
    """Serve an application by the real server on a free port, and give its host and port.

    With fast routes, but without places, no request waits long because of others before it, however much time these took of
    a busy machine.
    """
    listener = bind("127.0.0.1", 0, "FORETELL_PORT")
    if places is None and fast_routes:
        places = unlimited_places()
    server = build_server(app, "127.0.0.1", 0, fast_routes, limits, refusals, places)
    running = asyncio.create_task(server.serve([listener]))
    while not server.started:  # noqa: ASYNC110 - the server has no event to wait for
        await asyncio.sleep(POLL_S)
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
