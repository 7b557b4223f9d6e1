"""The clients of a soak: the sandbox's traders with their streams, and what they saw.

A fault is a status of 500 or above, even if it is repeated with success, a refusal, or a stream that ended: this load
does nothing that may be refused.
"""

import asyncio
import contextlib
import math
import re
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from typing_extensions import override
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.soak.messages import FAULTS_SHOWN_MAX
from foretell.domain.contracts.deployment import parse_deployment
from foretell.domain.contracts.sandbox_accounts import AccountRole, sandbox_accounts
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sdk.http import HttpClient
from foretell.sdk.trading import TradingClient, Wallet

SERVER_FAULT: Final = 500
SQLITE_MEMORY: Final = re.compile(r"^foretell_sqlite_memory_bytes (\S+)$", re.MULTILINE)
WINDOW_TIMES_MAX: Final = 100_000
"""Latencies that are kept between two windows."""


class SandboxAddresses(msgspec.Struct, frozen=True, rename="camel"):
    """What the load reads of `ready.json`."""

    clob: str
    data: str
    discovery: str
    ws: str
    rpc: str
    chain_id: int
    market: "SoakMarket"


class SoakMarket(msgspec.Struct, frozen=True, rename="camel"):
    """The market of the sandbox."""

    condition_id: str
    token_yes: str
    token_no: str
    slug: str


@dataclass(slots=True)
class Seen:
    """What the clients saw, since the last window and in total."""

    orders_s: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_TIMES_MAX))
    reads_s: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_TIMES_MAX))
    faults: int = 0
    examples: list[str] = field(default_factory=list)
    shown: int = 0
    """The examples that a window had."""
    reads: int = 0
    stream_messages: int = 0
    matched_at_s: dict[str, float] = field(default_factory=dict)
    """Trades that no stream has reported as settled, with the time of their match."""
    backlog_most: int = 0
    """The most of them at a time."""
    settled_s: list[float] = field(default_factory=list)
    settled_last_s: float = 0.0
    """The time of the last report of a settled trade."""
    trades: set[str] = field(default_factory=set)

    def fault(self, what: str) -> None:
        """Count a fault."""
        self.faults += 1
        if len(self.examples) < FAULTS_SHOWN_MAX:
            self.examples.append(what[:200])

    def new_examples(self) -> list[str]:
        """Return the examples since the last call."""
        new = self.examples[self.shown :]
        self.shown = len(self.examples)
        return new

    def matched(self, trade_id: str) -> None:
        """Await the settlement of a trade."""
        self.trades.add(trade_id)
        self.matched_at_s[trade_id] = time.monotonic()
        self.backlog_most = max(self.backlog_most, len(self.matched_at_s))

    def take_trade(self, trade_id: str, status: str) -> None:
        """Take a report of a trade from a stream."""
        if status == "FAILED":
            self.fault(f"trade {trade_id} failed")
        if status in {"CONFIRMED", "FAILED"}:
            began_s = self.matched_at_s.pop(trade_id, None)
            if began_s is not None:
                self.settled_last_s = time.monotonic()
                self.settled_s.append(self.settled_last_s - began_s)

    def unsettled_s(self) -> float:
        """Return the age of the oldest trade that no stream has reported as settled."""
        now_s = time.monotonic()
        return now_s - min(self.matched_at_s.values(), default=now_s)


class StrictClient(HttpClient):
    """A client of one API that counts every status of 500 and above, before it is repeated."""

    def __init__(self, base_url: str, seen: Seen) -> None:
        super().__init__(base_url)
        self._seen = seen

    @override
    async def _attempt(self, method: str, path: str, **parts: Any) -> httpx.Response:
        response = await super()._attempt(method, path, **parts)
        if response.status_code >= SERVER_FAULT:
            self._seen.fault(f"{method} {path} answered {response.status_code}: {response.text}")
        return response


@dataclass(frozen=True, slots=True)
class SoakClients:
    """Every API of a sandbox, and its traders with keys."""

    addresses: SandboxAddresses
    trading: StrictClient
    data: StrictClient
    discovery: StrictClient
    traders: tuple[TradingClient, ...]
    process: StrictClient
    """The metrics of the process that serves these APIs."""

    @classmethod
    async def open(
        cls, folder: Path, seen: Seen, stack: contextlib.AsyncExitStack
    ) -> "SoakClients":
        """Return the clients of the sandbox of a data folder; they end with the stack."""
        raw = (folder / "ready.json").read_bytes()
        addresses = msgspec.json.decode(raw, type=SandboxAddresses)
        root = str(httpx.URL(addresses.clob).join("/")).removesuffix("/")
        trading, data, discovery, process = [
            await stack.enter_async_context(StrictClient(url, seen))
            for url in (addresses.clob, addresses.data, addresses.discovery, root)
        ]
        separators = parse_deployment((folder / "deployment.json").read_bytes()).separators()
        accounts = sandbox_accounts(AccountRole.TRADER, addresses.chain_id)
        traders = tuple(
            TradingClient(trading, Wallet(each.private_key), addresses.chain_id, separators, _now_s)
            for each in accounts
        )
        for trader in traders:
            await trader.create_key()
        return cls(addresses, trading, data, discovery, traders, process)

    async def sqlite_bytes(self) -> float | None:
        """Return the memory of SQLite in the serving process, None if that does not know it."""
        found = SQLITE_MEMORY.search(await self.process.get_text("/metrics"))
        known_bytes = math.nan if found is None else float(found[1])
        return None if math.isnan(known_bytes) else known_bytes

    def subscriptions(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the addresses of all streams with their subscriptions: the market, and each trader."""
        market = self.addresses.market
        tokens = [market.token_yes, market.token_no]
        streams: list[tuple[str, Mapping[str, Any]]] = [
            (f"{self.addresses.ws}/market", {"type": "market", "assets_ids": tokens})
        ]
        for trader in self.traders:
            assert trader.credentials is not None
            auth = {
                "apiKey": trader.credentials.key_id,
                "secret": trader.credentials.secret,
                "passphrase": trader.credentials.passphrase,
            }
            streams.append((f"{self.addresses.ws}/user", {"type": "user", "auth": auth}))
        return streams


def wallet_of(trader: TradingClient) -> str:
    """Return the address of a trader, as routes take it."""
    return checksum_address(trader.wallet.maker)


async def follow_stream(url: str, subscription: Mapping[str, Any], seen: Seen) -> None:
    """Read a stream until cancelled; a stream that ends is a fault."""
    try:
        async with connect(url, proxy=None) as connection:
            await connection.send(msgspec.json.encode(subscription).decode())
            async for text in connection:
                _take(text, seen)
    except (OSError, ConnectionClosed) as error:
        seen.fault(f"a stream failed: {error!r}")
    else:
        seen.fault(f"the stream {url} ended")


def _take(text: str | bytes, seen: Seen) -> None:
    try:
        message = msgspec.json.decode(text)
    except msgspec.DecodeError:  # the answer to a ping is no JSON
        return
    seen.stream_messages += 1
    for frame in message if isinstance(message, list) else [message]:
        if frame.get("event_type") == "trade":
            seen.take_trade(frame["id"], frame["status"])


def _now_s() -> int:
    return now_ms() // 1000


async def cancel_all(tasks: "list[asyncio.Task[None]]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
