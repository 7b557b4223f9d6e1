"""An API that says what a test tells it to, also what ours never would."""

import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console
from tests.app.rig import serving
from tests.rigs.values import a_key

from foretell.bench.rigs.world import make_world
from foretell.chain.rpc import Rpc
from foretell.edge.telemetry import Receive, Scope, Send
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.ready import SeededMarket, describe
from foretell.sdk.http import HttpClient


class Seen(NamedTuple):
    """A request as it arrived."""

    what: str
    query: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Desk:
    """Answers each `METHOD /path` with what was prepared for it, the last answer again and again."""

    prepared: dict[str, list[tuple[int, Any]]] = field(default_factory=lambda: defaultdict(list))
    seen: list[Seen] = field(default_factory=list)

    def say(self, what: str, *bodies: Any, status: int = 200) -> None:
        """Prepare answers, one for each time."""
        self.prepared[what] += [(status, body) for body in bodies]

    def asked(self, what: str) -> list[Seen]:
        return [each for each in self.seen if each.what == what]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        what = f"{scope['method']} {scope['path']}"
        self.seen.append(Seen(what, scope["query_string"].decode(), headers, body))
        answers = self.prepared[what]
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        told = [(b"retry-after", b"0")]
        await send({"type": "http.response.start", "status": status, "headers": told})
        await send({"type": "http.response.body", "body": raw})


@contextlib.asynccontextmanager
async def a_client(desk: Desk) -> AsyncIterator[HttpClient]:
    async with serving(desk) as host, HttpClient(f"http://{host}") as client:
        yield client


@contextlib.asynccontextmanager
async def a_session(desk: Desk, rpc: Rpc | None = None) -> AsyncIterator[DemoSession]:
    """Give a session on which every API is the desk; it has no chain unless one is given."""
    deployment = make_world(a_key("desk")).deployment
    async with serving(desk) as host:
        market = SeededMarket("", "", "", "")
        rpc_url = rpc._url if rpc is not None else "http://127.0.0.1:1"
        ready = describe("http://api.example", rpc_url, deployment, market)
        async with HttpClient(f"http://{host}") as http, Rpc(rpc_url) as own:
            console = Console(quiet=True)
            yield DemoSession(ready, deployment, console, own, http, http, http, http, http)
