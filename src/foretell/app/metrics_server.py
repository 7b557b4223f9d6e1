"""The metrics of a process on a port of their own, for programs of this machine alone."""

from typing import Final

from foretell.app.gateway import METRICS, bind, build_server, send_metrics, send_unknown_route
from foretell.app.http.rendered_metrics import RenderedMetrics
from foretell.edge.security_headers import SecureApplication
from foretell.edge.telemetry import Receive, Scope, Send

LOOPBACK: Final = "127.0.0.1"
SETTING: Final = "FORETELL_METRICS_PORT"


class MetricsApplication:
    """The metrics at their path, and nothing else."""

    def __init__(self) -> None:
        self._metrics = RenderedMetrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        del receive
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["path"] == METRICS:
            await send_metrics(scope, send, self._metrics)
        else:
            await send_unknown_route(send, scope["path"])


class MetricsServer:
    """A server of the metrics at a port of the loopback address.

    Workers share the port, as they share that of the API: each answer is of one of them.
    """

    def __init__(self, port: int, *, is_shared: bool = False) -> None:
        self._port = port
        self._is_shared = is_shared
        self.server = build_server(SecureApplication(MetricsApplication()), LOOPBACK, port)

    async def start(self) -> None:
        """Answer, and return once that is so."""
        listener = bind(LOOPBACK, self._port, SETTING, is_shared=self._is_shared)
        await self.server.start(listener, "metrics")

    async def wait(self) -> None:
        """Return when the server has ended."""
        await self.server.wait()

    async def finish(self) -> None:
        """End the server."""
        await self.server.finish()
