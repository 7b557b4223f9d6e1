"""An API with answers that a test prepares, among them answers that ours would never give."""

import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console
from tests.rigs.applications import serving
from tests.rigs.values import a_key

from foretell.bench.rigs.world import make_world
from foretell.chain.rpc import Rpc
from foretell.edge.telemetry import Receive, Scope, Send
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.ready import NOT_SEEDED, describe
from foretell.sdk.http import HttpClient

DEPLOYMENT = make_world(a_key("desk")).deployment
NO_NODE = "http://127.0.0.1:1"


class Received(NamedTuple):
    """A request as it was received."""

    route: str
    query: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class ScriptedApi:
    """Answers each `METHOD /path` with what was prepared for it, and repeats the last answer."""

    prepared: dict[str, list[tuple[int, Any]]] = field(default_factory=lambda: defaultdict(list))
    received: list[Received] = field(default_factory=list)
    retry_after_s: int = 0

    def prepare(self, route: str, *bodies: Any, status: int = 200) -> None:
        """Prepare answers, one for each request."""
        self.prepared[route] += [(status, body) for body in bodies]

    def requests(self, route: str) -> list[Received]:
        return [each for each in self.received if each.route == route]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        route = f"{scope['method']} {scope['path']}"
        self.received.append(Received(route, scope["query_string"].decode(), headers, body))
        answers = self.prepared[route]
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        head = [(b"retry-after", b"%d" % self.retry_after_s)]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": raw})


@contextlib.asynccontextmanager
async def a_client(api: ScriptedApi) -> AsyncIterator[HttpClient]:
    async with serving(api) as host, HttpClient(f"http://{host}") as client:
        yield client


@contextlib.asynccontextmanager
async def a_session(api: ScriptedApi, rpc_url: str = NO_NODE) -> AsyncIterator[DemoSession]:
    """Give a session with the scripted API in place of every API; it has no chain by default."""
    async with a_client(api) as client, Rpc(rpc_url) as rpc:
        yield DemoSession(
            ready=describe("http://api.example", rpc_url, DEPLOYMENT, NOT_SEEDED),
            deployment=DEPLOYMENT,
            console=Console(quiet=True),
            rpc=rpc,
            trading=client,
            worker=client,
            relayer=client,
            data=client,
            discovery=client,
        )
