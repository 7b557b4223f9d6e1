"""The metrics of a process on a port of their own, for programs of this machine alone."""

import asyncio
from typing import Final

from foretell.app.gateway import METRICS, bind, build_server, send_metrics, send_unknown_route
from foretell.edge.telemetry import Receive, Scope, Send

LOOPBACK: Final = "127.0.0.1"
SETTING: Final = "FORETELL_METRICS_PORT"
START_POLL_S: Final = 0.01


async def answer_metrics(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the metrics at their path, and nothing else."""
    del receive
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1008})
    elif scope["path"] == METRICS:
        await send_metrics(send)
    else:
        await send_unknown_route(send, scope["path"])


class MetricsServer:
    """A server of the metrics at a port of the loopback address.

    Workers share the port, as they share that of the API: each answer is of one of them.
    """

    def __init__(self, port: int, *, is_shared: bool = False) -> None:
        self._port = port
        self._is_shared = is_shared
        self._server = build_server(answer_metrics, LOOPBACK, port)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Answer, and return once that is so."""
        listener = bind(LOOPBACK, self._port, SETTING, is_shared=self._is_shared)
        self._serving = asyncio.create_task(self._server.serve([listener]), name="metrics")
        while not self._server.started:
            if self._serving.done():
                await self._serving
            await asyncio.sleep(START_POLL_S)

    async def finish(self) -> None:
        """End the server."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving
