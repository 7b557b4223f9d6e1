"""Requests made beforehand and sent as fast as they are answered, over kept connections."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, cast

import httptools
import msgspec
from typing_extensions import override

from foretell.cli.bench.world import TICKS_PER_ONE, User, World
from foretell.cli.clients.trading import order_body
from foretell.domain.command_errors import BenchFailed
from foretell.domain.credentials import L2Signer
from foretell.domain.hexadecimal import ZERO_ADDRESS, checksum_address
from foretell.domain.order import OrderType, Side, SignatureType, SignedOrder
from foretell.domain.profiles import Separators
from foretell.domain.typed_data import sign_digest

OK: Final = 200
ROUND_DEADLINE_S: Final = 300.0
SIZE_UNITS: Final = 10_000_000
CROSSING_ONE_IN: Final = 4


class Answers(NamedTuple):
    """How a round of requests went; times are in seconds, one for each request."""

    seconds: float
    latencies_s: list[float]


def make_requests(world: World, path: str, count: int, first_salt: int, now_s: int) -> list[bytes]:
    """Return distinct signed orders as whole HTTP requests; one in four crosses the book."""
    separators = world.deployment.separators()
    signers = [L2Signer(user.credentials.secret) for user in world.users]
    requests = []
    for number in range(first_salt, first_salt + count):
        index = number % len(world.users)
        user = world.users[index]
        order = make_order(world, user, separators, number)
        body = msgspec.json.encode(order_body(order, user.credentials.key_id, OrderType.GTC))
        requests.append(_request(user, signers[index], path, body, str(now_s)))
    return requests


def make_order(world: World, user: User, separators: Separators, number: int) -> SignedOrder:
    """Return order number so: bids below and asks above the middle, some of them across it."""
    pair = world.tokens[number // len(world.users) % len(world.tokens)]
    is_buy = number % 2 == 0
    distance = 1 + number * 7 % 20
    if number % CROSSING_ONE_IN == CROSSING_ONE_IN - 1:
        distance = -distance
    price = TICKS_PER_ONE // 2 + (-distance if is_buy else distance)
    cost = SIZE_UNITS * price // TICKS_PER_ONE
    order = SignedOrder(
        salt=str(number),
        maker=user.address,
        signer=user.address,
        taker=ZERO_ADDRESS,
        token_id=str(pair.yes),
        maker_amount=cost if is_buy else SIZE_UNITS,
        taker_amount=SIZE_UNITS if is_buy else cost,
        expiration_s=0,
        nonce=0,
        fee_rate_bps=0,
        side=Side.BUY if is_buy else Side.SELL,
        signature_type=SignatureType.EOA,
        profile=0,
        signature=b"",
    )
    digest = bytes.fromhex(separators.order_id(order)[2:])
    return msgspec.structs.replace(order, signature=sign_digest(digest, user.private_key))


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
    """Send every request once, a new one on a connection when the one before was answered."""
    queue = iter(requests)
    loop = asyncio.get_running_loop()
    senders: list[_Sender] = []
    try:
        for _ in range(connections):
            _, sender = await loop.create_connection(lambda: _Sender(queue), "127.0.0.1", port)
            senders.append(sender)
        started = time.perf_counter()
        for sender in senders:
            sender.send_next()
        async with asyncio.timeout(ROUND_DEADLINE_S):
            await asyncio.gather(*(sender.finished for sender in senders))
        seconds = time.perf_counter() - started
    finally:
        for sender in senders:
            sender.close()
    return Answers(seconds, [latency for sender in senders for latency in sender.latencies_s])


class _Sender(asyncio.Protocol):
    """One connection."""

    def __init__(self, queue: Iterator[bytes]) -> None:
        self._queue = queue
        self._parser = httptools.HttpResponseParser(self)
        self._sent_at = 0.0
        self.latencies_s: list[float] = []
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.finished.done():
            self.finished.set_exception(BenchFailed("the exchange closed a connection"))

    def on_message_complete(self) -> None:
        """Count an answer and send the next request."""
        self.latencies_s.append(time.perf_counter() - self._sent_at)
        if self._parser.get_status_code() != OK:
            self.finished.set_exception(BenchFailed(f"HTTP {self._parser.get_status_code()}"))
            return
        self._parser = httptools.HttpResponseParser(self)
        self.send_next()

    def send_next(self) -> None:
        """Send a request, or end when there is none left."""
        request = next(self._queue, None)
        if request is None:
            self.finished.set_result(None)
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection, and let nobody wait for it."""
        self.finished.cancel()
        self._transport.close()
