"""Load on an exchange: prepared requests over kept connections, at full speed or at a steady rate."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

import httptools
import msgspec
from typing_extensions import override

from foretell.bench.rigs.world import TICKS_PER_ONE, User, World
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.order import OrderType, Side, SignatureType, SignedOrder
from foretell.domain.exchange.profiles import Separators
from foretell.domain.values.credentials import L2Signer
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, checksum_address
from foretell.sdk.trading import order_body

OK: Final = 200
ROUND_DEADLINE_S: Final = 300.0
SIZE_UNITS: Final = 10_000_000
CROSSING_ONE_IN: Final = 4
PACE_S: Final = 0.001


class Answers(NamedTuple):
    """The time of a round, and the latency of each request, in seconds."""

    seconds: float
    latencies_s: list[float]


class Offer(NamedTuple):
    """What an order offers in a market of a world: a side, a price in ticks, a size in base units."""

    market: int
    is_buy: bool
    price_ticks: int
    size_units: int = SIZE_UNITS


def make_requests(world: World, path: str, count: int, first_salt: int, now_s: int) -> list[bytes]:
    """Return distinct signed orders as whole HTTP requests; one in four crosses the book."""
    numbers = range(first_salt, first_salt + count)
    return requests_of(
        world, path, ((number, offer_of(world, number)) for number in numbers), now_s
    )


def requests_of(
    world: World, path: str, offers: Iterable[tuple[int, Offer]], now_s: int
) -> list[bytes]:
    """Return offers, each with its distinct number, as whole HTTP requests of a world's users in turn."""
    separators = world.deployment.separators()
    signers = [L2Signer(user.credentials.secret) for user in world.users]
    requests = []
    for number, offer in offers:
        index = number % len(world.users)
        user = world.users[index]
        order = _sign(world, user, separators, number, offer)
        body = msgspec.json.encode(order_body(order, user.credentials.key_id, OrderType.GTC))
        requests.append(_request(user, signers[index], path, body, str(now_s)))
    return requests


def offer_of(world: World, number: int) -> Offer:
    """Return the offer of a number: bids below and asks above the middle, some of them across it."""
    is_buy = number % 2 == 0
    distance = 1 + number * 7 % 20
    if number % CROSSING_ONE_IN == CROSSING_ONE_IN - 1:
        distance = -distance
    price = TICKS_PER_ONE // 2 + (-distance if is_buy else distance)
    return Offer(number // len(world.users) % len(world.tokens), is_buy, price)


def make_order(world: World, user: User, separators: Separators, number: int) -> SignedOrder:
    """Return the signed order of a number."""
    return _sign(world, user, separators, number, offer_of(world, number))


def _sign(
    world: World, user: User, separators: Separators, number: int, offer: Offer
) -> SignedOrder:
    token = world.tokens[offer.market].yes
    return sign_order(separators, user.private_key, user.address, number, token, offer)


def sign_order(
    separators: Separators,
    private_key: bytes,
    address: Address,
    salt: int,
    token_id: int,
    offer: Offer,
) -> SignedOrder:
    """Return an order for an offer of a token, signed by the account that owns what it offers."""
    cost = offer.size_units * offer.price_ticks // TICKS_PER_ONE
    order = SignedOrder(
        salt=str(salt),
        maker=address,
        signer=address,
        taker=ZERO_ADDRESS,
        token_id=str(token_id),
        maker_amount=cost if offer.is_buy else offer.size_units,
        taker_amount=offer.size_units if offer.is_buy else cost,
        expiration_s=0,
        nonce=0,
        fee_rate_bps=0,
        side=Side.BUY if offer.is_buy else Side.SELL,
        signature_type=SignatureType.EOA,
        profile=0,
        signature=b"",
    )
    digest = bytes.fromhex(separators.order_id(order)[2:])
    return msgspec.structs.replace(order, signature=sign_digest(digest, private_key))


def _request(user: User, signer: L2Signer, path: str, body: bytes, timestamp: str) -> bytes:
    signature = signer.sign(timestamp, "POST", "/order", body)
    head = (
        f"POST {path}/order HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"SERVICE_ADDRESS: {checksum_address(user.address)}\r\n"
        f"SERVICE_SIGNATURE: {signature}\r\nSERVICE_TIMESTAMP: {timestamp}\r\n"
        f"SERVICE_API_KEY: {user.credentials.key_id}\r\n"
        f"SERVICE_PASSPHRASE: {user.credentials.passphrase}\r\n\r\n"
    )
    return head.encode() + body


async def send_all(port: int, requests: Sequence[bytes], connections: int) -> Answers:
    """Send every request once, each when a connection has its previous answer."""
    return await _Load(requests).run(port, connections)


async def send_for(port: int, request: bytes, connections: int, seconds: float) -> Answers:
    """Send the same request again and again for some seconds, at most as long as a round may take."""
    return await _TimedLoad(request, seconds).run(port, connections)


async def send_paced(
    port: int, requests: Sequence[bytes], connections: int, per_s: float
) -> Answers:
    """Send every request once, this many a second, however slowly they are answered.

    A latency counts from when the request was due, so the wait for a connection counts in full.
    """
    return await _PacedLoad(requests, per_s).run(port, connections)


class _Load:
    """Requests that are sent whenever a connection is free."""

    def __init__(self, requests: Sequence[bytes]) -> None:
        self._requests = requests
        self._sent = 0
        self._latencies_s: list[float] = []
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, port: int, connections: int) -> Answers:
        """Send everything over this many connections, and return the latencies."""
        loop = asyncio.get_running_loop()
        senders: list[_Sender] = []
        try:
            for _ in range(connections):
                _, sender = await loop.create_connection(lambda: _Sender(self), "127.0.0.1", port)
                senders.append(sender)
            started = time.perf_counter()
            self.begin(senders)
            async with asyncio.timeout(ROUND_DEADLINE_S):
                await self._finished
            return Answers(time.perf_counter() - started, self._latencies_s)
        finally:
            self._finished.cancel()
            for sender in senders:
                sender.close()

    def begin(self, senders: Sequence["_Sender"]) -> None:
        """Use connections that are free for the first time."""
        for sender in senders:
            self.use(sender)

    def use(self, sender: "_Sender") -> None:
        """Send the next request, if there is one, on a connection that is free."""
        if self._sent < len(self._requests):
            self._send(sender, time.perf_counter())

    def take(self, latency_s: float) -> None:
        """Count an answer."""
        self._latencies_s.append(latency_s)
        if len(self._latencies_s) == len(self._requests):
            self._finished.set_result(None)

    def fail(self, failure: BenchFailed) -> None:
        """End the round; later failures change nothing."""
        if not self._finished.done():
            self._finished.set_exception(failure)

    def _send(self, sender: "_Sender", due_at_s: float) -> None:
        request = self._requests[self._sent]
        self._sent += 1
        sender.send(request, due_at_s)


class _TimedLoad(_Load):
    """One request that is sent until a time, whenever a connection is free."""

    def __init__(self, request: bytes, seconds: float) -> None:
        super().__init__([request])
        self._seconds = seconds
        self._ends_at_s = 0.0
        self._unanswered = 0

    @override
    def begin(self, senders: Sequence["_Sender"]) -> None:
        self._ends_at_s = time.perf_counter() + self._seconds
        super().begin(senders)

    @override
    def use(self, sender: "_Sender") -> None:
        now_s = time.perf_counter()
        if now_s < self._ends_at_s:
            self._unanswered += 1
            sender.send(self._requests[0], now_s)
        elif self._unanswered == 0 and not self._finished.done():
            self._finished.set_result(None)

    @override
    def take(self, latency_s: float) -> None:
        self._latencies_s.append(latency_s)
        self._unanswered -= 1


class _PacedLoad(_Load):
    """Requests that are sent when they are due, or as soon after that as a connection is free."""

    def __init__(self, requests: Sequence[bytes], per_s: float) -> None:
        super().__init__(requests)
        self._per_s = per_s
        self._began_at_s = 0.0
        self._free: deque[_Sender] = deque()

    @override
    def begin(self, senders: Sequence["_Sender"]) -> None:
        self._began_at_s = time.perf_counter()
        self._free.extend(senders)
        self._send_due()

    @override
    def use(self, sender: "_Sender") -> None:
        self._free.append(sender)
        self._send_overdue()

    def _send_due(self) -> None:
        """Send what is due, and again when the next is due; event loops count in milliseconds."""
        self._send_overdue()
        if self._sent < len(self._requests):
            wait_s = max(self._due_at_s() - time.perf_counter(), PACE_S)
            asyncio.get_running_loop().call_later(wait_s, self._send_due)

    def _send_overdue(self) -> None:
        while self._free and self._sent < len(self._requests):
            due_at_s = self._due_at_s()
            if due_at_s > time.perf_counter():
                return
            self._send(self._free.popleft(), due_at_s)

    def _due_at_s(self) -> float:
        """Return when the next request is due."""
        return self._began_at_s + self._sent / self._per_s


class _Sender(asyncio.Protocol):
    """One connection, free or with one request in flight."""

    def __init__(self, load: _Load) -> None:
        self._load = load
        self._parser = httptools.HttpResponseParser(self)
        self._due_at_s = 0.0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._load.fail(BenchFailed("the exchange closed a connection"))

    def on_message_complete(self) -> None:
        """Count an answer and be free again."""
        status = self._parser.get_status_code()
        if status != OK:
            self._load.fail(BenchFailed(f"HTTP {status}"))
            return
        self._parser = httptools.HttpResponseParser(self)
        self._load.take(time.perf_counter() - self._due_at_s)
        self._load.use(self)

    def send(self, request: bytes, due_at_s: float) -> None:
        """Send a request with the time from which its latency counts."""
        self._due_at_s = due_at_s
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()
