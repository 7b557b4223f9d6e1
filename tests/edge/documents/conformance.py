"""Conformance of every answer that a test gets to the API's document, and the examples in the documents.

The applications of the rigs pass each exchange to `Conformance`. An answer that the document does not have
fails its test. With FORETELL_TEST_EXAMPLES the examples of the documents are recorded in that folder.
"""

import contextlib
import functools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import jsonschema_rs
import pytest
from litestar import Litestar

from foretell.edge.codec import SINK
from foretell.edge.documents.errors import code_in
from foretell.edge.documents.openapi import document_of, operations_of
from foretell.edge.telemetry import AsgiApp, Message, Receive, Scope, Send
from foretell.trading.streams.document import CHANNELS, asyncapi_document
from foretell.trading.streams.document import EXAMPLES as STREAMS

EXAMPLE_BYTES_MAX: Final = 3_000
TEXT_FRAME: Final = 0x81
EXAMPLES: Final = os.environ.get("FORETELL_TEST_EXAMPLES")
JUDGING: Final = frozenset({"/orders", "/order/validate", "/validate"})
"""Paths whose answer is a verdict on what was sent, so that a wrong body succeeds too."""
FINDINGS: list[str] = []
"""What answers of the present test have that their documents lack."""
RECORDED: dict[str, dict[str, dict[str, Any]]] = {}
"""The examples, by API and handler."""
_RANKS: dict[tuple[str, str], tuple[bool, int]] = {}


class Exchange(NamedTuple):
    """A request that a route answered, and the answer."""

    method: str
    path: str
    query: bytes
    parameters: Mapping[str, Any]
    request: bytes
    status: int
    media_type: str
    answer: bytes


class Conformance:
    """The document of an application, and the validators of its answers."""

    def __init__(self, app: Litestar) -> None:
        self.name = app.opt["api"].name
        self.document = document_of(app)
        self._handler_by_operation = {
            (each.method, each.path): each.handler.handler_name for each in operations_of(app)
        }

    def check(self, exchange: Exchange) -> Iterator[str]:
        """Yield what the document lacks."""
        operation = self.document["paths"].get(exchange.path, {}).get(exchange.method.lower())
        if operation is None:
            return
        described = _described(operation, exchange)
        where = f"{exchange.method} {exchange.path} {exchange.status}"
        if described is None:
            yield f"{where}: {exchange.answer[:300]!r}"
        elif exchange.media_type not in described["content"] and "*/*" not in described["content"]:
            yield f"{where}: {exchange.media_type}"
        elif exchange.media_type == "application/json" and "*/*" not in described["content"]:
            yield from self._check_body(exchange, where, described)
        sent = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if sent is not None and exchange.status == 200 and exchange.path not in JUDGING:
            for error in self._validator(json.dumps(sent["schema"]), is_closed=False).iter_errors(
                json.loads(exchange.request)
            ):
                yield f"{where} accepts: {error.instance_path} {error.message[:300]}"

    def _check_body(
        self, exchange: Exchange, where: str, described: Mapping[str, Any]
    ) -> Iterator[str]:
        body = json.loads(exchange.answer)
        schema = json.dumps(described["content"]["application/json"]["schema"])
        for error in self._validator(schema).iter_errors(body):
            yield f"{where}: {error.instance_path} {error.message[:300]}"
        codes = described.get("x-codes")
        if codes is not None and code_in(body) not in codes:
            yield f"{where}: the code {code_in(body)}"

    @functools.cache  # noqa: B019 - one for each product
    def _validator(self, schema: str, *, is_closed: bool = True) -> Any:
        components = self.document["components"]
        if is_closed:
            components = closed(components)
        return jsonschema_rs.Draft202012Validator({**json.loads(schema), "components": components})

    def record(self, exchange: Exchange) -> None:
        """Keep the exchange as an example, if it is better than the one before."""
        handler = self._handler_by_operation.get((exchange.method, exchange.path))
        operation = self.document["paths"].get(exchange.path, {}).get(exchange.method.lower())
        content = (
            (operation or {}).get("responses", {}).get(str(exchange.status), {}).get("content")
        )
        is_text = exchange.media_type in {"application/json", "text/plain"}
        if handler is None or not is_text or exchange.media_type not in (content or ()):
            return
        recorded = RECORDED.setdefault(self.name, {}).setdefault(handler, {})
        status, is_success = str(exchange.status), exchange.status == 200
        if status in recorded and not (is_success and _rank(exchange) > _RANKS[self.name, handler]):
            return
        is_json = exchange.media_type == "application/json"
        recorded[status] = json.loads(exchange.answer) if is_json else exchange.answer.decode()
        if is_success:
            _RANKS[self.name, handler] = _rank(exchange)
            recorded["parameters"] = _parameters(exchange)
            if exchange.request.startswith((b"{", b"[")):
                recorded["request"] = json.loads(exchange.request)


def _described(operation: Mapping[str, Any], exchange: Exchange) -> Mapping[str, Any] | None:
    """Return what the document says of an answer; one without a body may have any type."""
    found: Mapping[str, Any] | None = operation["responses"].get(str(exchange.status))
    if found is not None and "content" not in found and not exchange.answer:
        return {**found, "content": {"*/*": {}}}
    return found


def _rank(exchange: Exchange) -> tuple[bool, int]:
    """Return how good an example is: the longest that is short enough, or else the shortest."""
    length = len(exchange.answer)
    is_short = length <= EXAMPLE_BYTES_MAX
    return is_short, length if is_short else -length


def _parameters(exchange: Exchange) -> dict[str, Any]:
    query = dict(parse_qsl(exchange.query.decode("latin-1")))
    return {str(name): str(value) for name, value in exchange.parameters.items()} | query


def closed(schema: Any) -> Any:
    """Return a schema whose objects have no other fields than those that it names."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    is_open = "properties" in schema and "additionalProperties" not in schema
    return parts | ({"additionalProperties": False} if is_open else {})


@functools.cache
def _conformance(routed: Litestar) -> Conformance:
    return Conformance(routed)


def conforming(routed: Litestar, inner: AsgiApp) -> AsgiApp:
    """Return an application that checks all its answers; `routed` has the document."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            channel = _channel(scope)
            if channel is not None and SINK in scope:
                scope[SINK] = _CheckingSink(channel, scope[SINK])
            await inner(scope, _noting_requests(channel, receive), _checking_frames(channel, send))
            return
        sent, answer = bytearray(), bytearray()
        head: dict[str, Any] = {}

        async def receive_kept() -> Message:
            message = await receive()
            sent.extend(message.get("body", b""))
            return message

        async def send_kept(message: Message) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            answer.extend(message.get("body", b""))
            await send(message)

        await inner(scope, receive_kept, send_kept)
        path = scope.get("path_template")
        if head and path is not None:
            media_type = dict(head["headers"]).get(b"content-type", b"").partition(b";")[0]
            _judge(
                _conformance(routed),
                Exchange(
                    scope["method"],
                    path,
                    scope["query_string"],
                    scope.get("path_params", {}),
                    bytes(sent),
                    head["status"],
                    media_type.decode(),
                    bytes(answer),
                ),
            )

    return checked


def _channel(scope: Scope) -> str | None:
    """Return the channel of a WebSocket."""
    path = scope["path"].rstrip("/")
    return next((name for name, each in CHANNELS.items() if path == each.address), None)


def _noting_requests(channel: str | None, receive: Receive) -> Receive:
    """Return a receiver of frames that records the first request of each kind as an example."""

    async def receive_noted() -> Message:
        message = await receive()
        text = message.get("text") or ""
        name = f"{channel}.request"
        if EXAMPLES is not None and text.startswith("{") and name in message_validators():
            with contextlib.suppress(ValueError):
                message_validators()[name].validate(json.loads(text))
                RECORDED.setdefault(STREAMS, {}).setdefault(name, {"request": json.loads(text)})
        return message

    return receive_noted


def _checking_frames(channel: str | None, send: Send) -> Send:
    """Return a sender of frames that checks each of them against the document of the streams."""

    async def send_checked(message: Message) -> None:
        text = message.get("text")
        if channel is not None and text is not None:
            _check_text(channel, text)
        await send(message)

    return send_checked


class _CheckingSink:
    """A taker of frames in bytes that checks them too."""

    def __init__(self, channel: str, sink: Any) -> None:
        self._channel = channel
        self._sink = sink

    @property
    def is_ready(self) -> bool:
        return bool(self._sink.is_ready)

    def write_frames(self, frames: bytes) -> None:
        for text in _texts(frames):
            _check_text(self._channel, text)
        self._sink.write_frames(frames)


def _texts(frames: bytes) -> Iterator[str]:
    """Yield the payload of each text frame of a server, which has no mask."""
    place = 0
    while place < len(frames):
        assert frames[place] == TEXT_FRAME
        size, place = frames[place + 1], place + 2
        for mark, digits in ((126, 2), (127, 8)):
            if size == mark:
                size, place = int.from_bytes(frames[place : place + digits]), place + digits
                break
        yield frames[place : place + size].decode()
        place += size


def _check_text(channel: str, text: str) -> None:
    is_json = text.startswith(("{", "["))
    frame = json.loads(text) if is_json else text
    for each in frame if isinstance(frame, list) else [frame]:
        check_message(channel, each)


def check_message(channel: str, message: Any) -> None:
    """Note a message of the server that the document of the streams lacks."""
    name = message_name(channel, message)
    validator = message_validators().get(name)
    if validator is None:
        FINDINGS.append(f"no message {name}")
        return
    FINDINGS.extend(f"{name}: {error.message[:300]}" for error in validator.iter_errors(message))
    if EXAMPLES is not None and not isinstance(message, str):
        RECORDED.setdefault(STREAMS, {}).setdefault(name, {"request": message})


def message_name(channel: str, message: Any) -> str:
    """Return the name of a message in the document."""
    described = CHANNELS[channel]
    if isinstance(message, str):
        kind = next(
            (name for name, each in described.sent_texts.items() if each.text == message), ""
        )
    elif "error" in message:
        kind = "refused"
    else:
        kind = message.get("event_type", next(iter(described.sent)))
    return f"{channel}.{kind}"


@functools.cache
def message_validators() -> Mapping[str, Any]:
    """Return the validator of each message; objects have no other fields than those of their parts."""
    components = asyncapi_document()["components"]
    return {
        name: jsonschema_rs.Draft202012Validator(
            {
                **message["payload"],
                **({"unevaluatedProperties": False} if "allOf" in message["payload"] else {}),
                "components": components,
            }
        )
        for name, message in components["messages"].items()
    }


def _judge(conformance: Conformance, exchange: Exchange) -> None:
    FINDINGS.extend(conformance.check(exchange))
    if EXAMPLES is not None:
        conformance.record(exchange)


@pytest.fixture(autouse=True)
def conformance_to_the_documents() -> Iterator[None]:
    """Fail a test that got an answer that its document lacks."""
    FINDINGS.clear()
    yield
    assert not FINDINGS


def _sorted(examples: Mapping[str, Any]) -> dict[str, Any]:
    """Return the examples of a handler by status, so that their order is not that of the tests."""
    return {name: examples[name] for name in sorted(examples)}


def pytest_sessionfinish() -> None:
    """Write the recorded examples."""
    if EXAMPLES is None:
        return
    for name, recorded in RECORDED.items():
        path = Path(EXAMPLES) / f"{name}.json"
        path.write_text(
            json.dumps(
                {each: _sorted(recorded[each]) for each in sorted(recorded)},
                indent=1,
                ensure_ascii=False,
            )
            + "\n"
        )
