"""An API's application behind its rate limits.

The route counts a request: for the address before it is carried out, or for the key that signed it
after that was verified. What no route has counted by the time of the answer, such as an unknown
path or a signature that does not verify, counts for the address then, and the answer waits for its
turn.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import ClientGone, MalformedBody, TooManyRequests
from foretell.domain.values.strict_json import check_depth
from foretell.edge.client_addresses import UNKNOWN, ClientAddresses
from foretell.edge.codec import CLIENT, PLACE, TURN, AnyRequest
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import RateLimits
from foretell.edge.refusals import BodyOf
from foretell.edge.telemetry import AsgiApp, Message, Receive, Scope, Send
from foretell.edge.throttle import ConnectionPlace, Turn
from foretell.runtime.timed_steps import TimedSteps

GONE_WITHIN_S: Final = 0.001
"""How long a closed connection may take to be noticed."""
_BATCH: Final = msgspec.json.Decoder(list[msgspec.Raw])


class ApiLimits:
    """The rate limits of an API, the addresses of its clients, and the form of its refusals."""

    def __init__(self, limiter: RateLimiter, body_of: BodyOf) -> None:
        self.limiter = limiter
        self.addresses = ClientAddresses(limiter.limits.trusted_proxies)
        self._body_of = body_of

    def change(self, limits: RateLimits) -> None:
        """Apply other limits to the requests that come from now on."""
        self.limiter.change(limits)
        self.addresses = ClientAddresses(limits.trusted_proxies)

    def refused(self, refusal: ForetellError) -> tuple[int, bytes]:
        """Return the status and the body of a refusal."""
        status, body = self._body_of(refusal)
        return status, msgspec.json.encode(body)

    def turn(self, scope: Scope) -> Turn:
        """Return the turn of a request."""
        body_bytes, forwarded = 0, None
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                body_bytes = int(value[:18])
            elif name == b"x-forwarded-for" and self.addresses.reads_forwarded:
                text = value.decode("latin-1")
                forwarded = text if forwarded is None else f"{forwarded},{text}"
        peer = scope.get("client")
        address = self.addresses.client(peer[0] if peer else None, forwarded)
        route = self.limiter.route(scope.get("method", "GET"), scope["path"])
        return Turn(self.limiter, route, address, body_bytes, scope.get(PLACE))


class ThrottledApplication:
    """An application whose requests wait for their turn."""

    def __init__(
        self, app: AsgiApp, limits: ApiLimits, busy_s: Callable[[], float] = time.thread_time
    ) -> None:
        self._app = app
        self._limits = limits
        self._busy_s = busy_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it before its answer if nothing else has."""
        if scope["type"] == "websocket":
            await self._open_stream(scope, receive, send)
            return
        turn = scope[TURN] = self._limits.turn(scope)
        is_replaced = False

        async def limited(message: Message) -> None:
            nonlocal is_replaced
            if is_replaced:
                return
            if message["type"] == "http.response.start":
                try:
                    await take_turn(turn, turn.address)
                except TooManyRequests as refusal:
                    is_replaced = True
                    await self._refuse(refusal, turn, send, "http")
                    return
                message = {**message, "headers": [*message.get("headers", ()), *_headers(turn)]}
            await send(message)

        place: ConnectionPlace | None = scope.get(PLACE)
        if place is None:
            await self._app(scope, receive, limited)
            return
        if not self._limits.limiter.bounds(turn.route):
            await place.have_turn(turn.address)
        steps = TimedSteps(self._app(scope, receive, limited), self._busy_s)
        try:
            await steps
        finally:
            place.count_time(turn.address, steps.spent_s)

    async def _open_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn = self._limits.turn(scope)
        try:
            await take_turn(turn, turn.address)
        except TooManyRequests as refusal:
            await self._refuse(refusal, turn, send, "websocket.http")
            return
        scope[CLIENT] = turn.address
        await self._app(scope, receive, send)

    async def _refuse(self, refusal: TooManyRequests, turn: Turn, send: Send, kind: str) -> None:
        status, content = self._limits.refused(refusal)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            (b"retry-after", str(refusal.retry_after_s).encode()),
            *_headers(turn),
        ]
        await send({"type": f"{kind}.response.start", "status": status, "headers": headers})
        await send({"type": f"{kind}.response.body", "body": content})


def turn_of(request: AnyRequest) -> Turn | None:
    """Return the turn of a request, None where no limits apply."""
    turn = request.scope.get(TURN)
    assert turn is None or isinstance(turn, Turn)
    return turn


def address_of(request: AnyRequest) -> str:
    """Return the address of a request's client, as the rate limits count it."""
    return address_in(request.scope)


def address_in(scope: Mapping[str, Any]) -> str:
    """Return the address of the client of a request or of a stream; its own where no limits apply."""
    turn, client = scope.get(TURN), scope.get("client")
    if isinstance(turn, Turn):
        return turn.address
    address: str = scope.get(CLIENT) or (client[0] if client else UNKNOWN)
    return address


async def take_turn(turn: Turn, client: str, requests: int = 1) -> bool:
    """Count a request unless it counts already, and wait for its turn; return whether it waited."""
    if not turn.is_open or turn.take(client, requests):
        return False
    await turn.admitted()
    return True


async def count_for_address(request: AnyRequest) -> None:
    """Count a request for its address, unless it will count for the account whose key signed it."""
    turn = turn_of(request)
    if turn is None:
        return
    template = request.scope.get("path_template", "")
    if not turn.limiter.is_signed(request.method, template):
        await take_turn(turn, turn.address)


def readers_of(account: str) -> str:
    """Return the client that all read-only keys of an account are: who holds one uses up nothing of the account's."""
    return f"readers of {account}"


async def count_for_account(request: AnyRequest, account: str, body: bytes) -> bool:
    """Count a request for the account of a verified key, and wait for its turn; return whether it waited."""
    turn = turn_of(request)
    if turn is None:
        return False
    requests = orders_in(body) if turn.route.is_batch else 1
    has_waited = await take_turn(turn, account, requests)
    if has_waited and await _is_gone(request):
        raise ClientGone
    return has_waited


def orders_in(body: bytes) -> int:
    """Return the number of orders in the body of a batch; one if it is malformed."""
    try:
        check_depth(body)
        return max(1, len(_BATCH.decode(body)))
    except (msgspec.MsgspecError, MalformedBody, UnicodeError, RecursionError):
        return 1


async def _is_gone(request: AnyRequest) -> bool:
    """Return whether the client closed its connection; its body was read before."""
    try:
        async with asyncio.timeout(GONE_WITHIN_S):
            message = await request.receive()
    except TimeoutError:
        return False
    return message["type"] == "http.disconnect"


def _headers(turn: Turn) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in turn.header_lines()]
