"""An API's application whose dear reads are answered in another process."""

from collections.abc import Callable
from typing import Any

import msgspec

from foretell.app.read_process.client import DearReads
from foretell.domain.errors.families import ForetellError
from foretell.edge.client_addresses import UNKNOWN
from foretell.edge.codec import PLACE, TURN
from foretell.edge.rate_limiter import routed_path
from foretell.edge.read_answers import DearRules
from foretell.edge.refusals import BodyOf
from foretell.edge.telemetry import AsgiApp, Receive, Scope, Send
from foretell.edge.throttled_application import address_in, take_turn


class DearReadsApplication:
    """Passes dear reads to their process, and all other requests to the application.

    So are reads of the same routes by a client that reads much while others read little: see `store/public_reads/rests.py`.
    """

    def __init__(
        self,
        app: AsgiApp,
        api: str,
        rules: DearRules,
        reads: DearReads,
        body_of: BodyOf,
    ) -> None:
        self._app = app
        self._api = api
        self._rules = rules
        self._reads = reads
        self._body_of = body_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a dear read counts for its client before it is carried out."""
        path = self._dear_path(scope)
        if path is None:
            await self._app(scope, receive, send)
            return
        scope["path_template"] = path
        turn, client = scope.get(TURN), scope.get("client")
        try:
            address = (client[0] if client else UNKNOWN) if turn is None else turn.address
            if turn is not None:
                await take_turn(turn, address)
            answer = await self._reads.read(
                self._api, path, scope["query_string"], address, _known(scope)
            )
        except ForetellError as refusal:
            await self._refuse(refusal, send)
            return
        with self._reads.unsent.sending(address, answer.parts, _closing(scope)) as parts:
            head = {"type": "http.response.start", "status": answer.head.status}
            await send({**head, "headers": list(answer.head.headers)})
            for part, is_followed in parts:
                await send({"type": "http.response.body", "body": part, "more_body": is_followed})

    def _dear_path(self, scope: Scope) -> str | None:
        """Return the path of a dear read's route, however the request spells it; None of other requests."""
        if scope["type"] != "http" or scope["method"] != "GET":
            return None
        path = routed_path(scope["path"])
        rule = self._rules.get(path)
        if rule is None:
            return None
        is_dear = rule.is_dear(scope["query_string"])
        return path if is_dear or self._reads.is_moved(address_in(scope)) else None

    async def _refuse(self, refusal: ForetellError, send: Send) -> None:
        status, body = self._body_of(refusal)
        content = msgspec.json.encode(body)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
        ]
        if refusal.retry_after_s is not None:
            headers.append((b"retry-after", str(refusal.retry_after_s).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _closing(scope: Scope) -> Callable[[], None]:
    """Return what closes the connection of a request, which has one wherever a server accepted it."""
    place: Any = scope.get(PLACE)
    return lambda: None if place is None else place.holder.close_now()


def _known(scope: Scope) -> bytes:
    """Return the tags of the answers that the client has."""
    return b",".join(value for name, value in scope["headers"] if name == b"if-none-match")
