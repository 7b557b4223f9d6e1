"""An exchange that is attacked: a sandbox with many markets, a trader, and what is seen from outside."""

import asyncio
import contextlib
import itertools
import json
import re
import statistics
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from tests.faults.attacks.watcher import Seen, resident_bytes
from tests.rigs.installation import Running

from foretell.bench.rigs.machine import family
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import ApiRefused
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.sandbox.demo.create_market import event_draft
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import new_trader
from foretell.sandbox.market_creation import MarketCreator, SandboxMarket, SilentNarrator
from foretell.sandbox.session import approval_calls
from foretell.sdk.http import wait_for
from foretell.sdk.payloads import event_payload
from foretell.sdk.trading import TradingClient, Wallet, order_body

OUTCOMES_MAX: Final = 60
"""Of an event: each is a market."""
LEVELS: Final = 24
"""Of the bids for each token, of which those for the other token of its market are asks."""
ORDERS_PER_REQUEST: Final = 15
SIZE_UNITS: Final = 10 * UNITS_PER_TOKEN
COST_UNITS: Final = UNITS_PER_TOKEN
FUNDS_UNITS: Final = 20_000 * UNITS_PER_TOKEN
SWEEPS: Final = 80
"""Orders that each trade with the bids at all LEVELS, so that the list of all trades is a large answer."""
SWEEP_UNITS: Final = LEVELS * SIZE_UNITS
SWEEP_CENTS: Final = 99
TAIL: Final = 99
PAUSE_S: Final = 0.02
"""Between two orders: a trader at full speed would meet its own limit of ten minutes."""
WITHIN_S: Final = 300.0
ORDERS_MIN: Final = 3
"""Which a trader has acknowledged in that time, whatever else happens."""
WATCHER: Final = Path(__file__).with_name("watcher.py")
FAULT: Final = re.compile(
    r'^foretell_requests_total\{[^}]*status="500"[^}]*\} (\S+)$', re.MULTILINE
)
REFUSED: Final = re.compile(
    r'^foretell_requests_total\{[^}]*route="/trades",status="429"[^}]*\} (\S+)$', re.MULTILINE
)
OF_SERVER: Final = b"\0-m\0foretell."
"""In the command line of a process that the serving one started for a part of its work; the chain's has it not."""


class Latencies(NamedTuple):
    """Milliseconds of a placed and a canceled order together."""

    orders: int
    p50_ms: float
    p99_ms: float


class Target:
    """A sandbox with a trader; its markets have books."""

    def __init__(
        self, running: Running, trader: TradingClient, token_id: str, condition_ids: Sequence[str]
    ) -> None:
        self._running = running
        self._trader = trader
        self._token_id = token_id
        self._salts = itertools.count(1_000_000)
        self.condition_ids = condition_ids

    @property
    def port(self) -> int:
        """The port of all APIs."""
        return self._running.port

    @property
    def pid(self) -> int:
        """The process that serves."""
        assert self._running.process is not None
        return self._running.process.pid

    def resident_bytes(self) -> int:
        """Return the resident memory of the serving process."""
        return resident_bytes(self.pid)

    def children_bytes(self) -> int:
        """Return the resident memory of the processes to which the serving one gives a part of its work."""
        return sum(map(_bytes_of_server, family(self.pid)))

    def log_lines(self) -> int:
        """Return the number of lines that the installation has printed."""
        return self._running.output.count("\n")

    def log(self) -> str:
        """Return all lines that the installation has printed."""
        return self._running.output

    async def faults(self) -> int:
        """Return the number of requests that the metrics count as failures of the server."""
        return await self._counted(FAULT)

    async def refused_reads(self) -> int:
        """Return the number of lists of trades that were refused with 429, as the metrics count them."""
        return await self._counted(REFUSED)

    async def _counted(self, requests: re.Pattern[str]) -> int:
        async with httpx.AsyncClient(timeout=WITHIN_S) as http:
            answer = await http.get(f"http://127.0.0.1:{self.port}/metrics")
        return sum(int(float(count)) for count in requests.findall(answer.text))

    async def trade(self, seconds: float) -> Latencies:
        """Place and cancel orders for a time, one after the other; all must be acknowledged."""
        async with asyncio.timeout(seconds + WITHIN_S):
            return await self._trade(seconds)

    async def _trade(self, seconds: float) -> Latencies:
        took_ms: list[float] = []
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s or len(took_ms) < ORDERS_MIN:
            order = self._trader.sign_order(
                self._token_id, Side.BUY, SIZE_UNITS, COST_UNITS, salt=next(self._salts)
            )
            began_s = time.perf_counter()
            placed = await self._trader.place(order)
            canceled = await self._trader.send("DELETE", "/order", {"orderID": placed["orderID"]})
            took_ms.append((time.perf_counter() - began_s) * 1000)
            assert canceled["canceled"] == [placed["orderID"]]
            await asyncio.sleep(PAUSE_S)
        tail = statistics.quantiles(took_ms, n=100)[TAIL - 1]
        return Latencies(len(took_ms), statistics.median(took_ms), tail)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator["Watch"]:
        """Give a watch on the server that ends with the block."""
        pipe = asyncio.subprocess.PIPE
        watcher = await asyncio.create_subprocess_exec(
            sys.executable, str(WATCHER), str(self.port), str(self.pid), stdin=pipe, stdout=pipe
        )
        watch = Watch(watcher)
        reading = asyncio.create_task(watch.read())
        try:
            yield watch
            assert not reading.done(), "the watcher looked until the end"
            assert watcher.stdin is not None
            watcher.stdin.close()
            await asyncio.wait_for(asyncio.gather(watcher.wait(), reading), WITHIN_S)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            if watcher.returncode is None:
                watcher.kill()
                await watcher.wait()


class Watch:
    """What a process has seen of a server."""

    def __init__(self, watcher: Process) -> None:
        self.seen = Seen()
        self._watcher = watcher

    @property
    def pid(self) -> int:
        """The process that looks."""
        return self._watcher.pid

    async def read(self) -> None:
        """Note what is printed, until the process ends."""
        assert self._watcher.stdout is not None
        async for line in self._watcher.stdout:
            self.seen = Seen(*json.loads(line))


def _bytes_of_server(pid: int) -> int:
    """Return the resident memory of a process that works for the server; none if it does not, or has just ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return resident_bytes(pid) if OF_SERVER in words else 0
    except (FileNotFoundError, ProcessLookupError):
        return 0


@asynccontextmanager
async def a_target(running: Running, markets: int) -> AsyncIterator[Target]:
    """Give a running installation with so many more markets, many trades, and a funded trader.

    The trader's connections are kept.
    """
    ready = await running.ready()
    async with running.session() as session:
        trader = await _funded(session)
        await _sweep(session, trader, ready.market.token_yes, ready.market.token_no)
        seeded = [(ready.market.token_yes, ready.market.token_no)]
        created = [each async for each in _create(session, markets)]
        of_events = trader.for_exchange(session.deployment.neg_risk_separators())
        salts = itertools.count(1)
        await _fill(trader, itertools.chain.from_iterable(seeded), salts)
        tokens = ((each.token_yes, each.token_no) for each in created)
        await _fill(of_events, itertools.chain.from_iterable(tokens), salts)
        conditions = [ready.market.condition_id, *(each.condition_id for each in created)]
        yield Target(running, trader, ready.market.token_yes, conditions)


async def _create(session: DemoSession, markets: int) -> AsyncIterator[SandboxMarket]:
    """Create events that have so many markets, and wait until they trade."""
    creator = MarketCreator(session, session.account(AccountRole.CREATOR), SilentNarrator())
    for first in range(0, markets, OUTCOMES_MAX):
        outcomes = [f"o{number}" for number in range(first, min(first + OUTCOMES_MAX, markets))]
        draft = event_draft(session, session.new_salt())
        for market in await creator.create(event_payload(draft, outcomes)):
            await _until_traded(session, market)
            yield market


async def _until_traded(session: DemoSession, market: SandboxMarket) -> None:
    async def fetch_book() -> Any:
        with contextlib.suppress(ApiRefused):
            return await session.trading.get("/book", token_id=market.token_no)

    await wait_for("the market's order book", fetch_book)


async def _fill(trader: TradingClient, tokens: Iterator[str], salts: Iterator[int]) -> None:
    """Place bids at LEVELS prices for each of the tokens, which meet no others."""
    assert trader.credentials is not None
    owner = trader.credentials.key_id
    orders = (
        trader.sign_order(token, Side.BUY, SIZE_UNITS, SIZE_UNITS * cents // 100, next(salts))
        for token in tokens
        for cents in range(1, LEVELS + 1)
    )
    while batch := list(itertools.islice(orders, ORDERS_PER_REQUEST)):
        bodies = [order_body(each, owner, OrderType.GTC) for each in batch]
        answers = await trader.send("POST", "/orders", bodies)
        assert {answer["status"] for answer in answers} == {"live"}, answers


async def _sweep(session: DemoSession, trader: TradingClient, token: str, complement: str) -> None:
    """Let another trader meet all bids for a token again and again, and wait until the trades are listed."""
    taker = await _funded(session)
    assert taker.credentials is not None
    salts = itertools.count(10_000_000)
    cost_units = SWEEP_UNITS * SWEEP_CENTS // 100
    for _ in range(SWEEPS):
        await _fill(trader, iter([token]), salts)
        order = taker.sign_order(complement, Side.BUY, SWEEP_UNITS, cost_units, next(salts))
        answer = await taker.place(order)
        assert answer["status"] == "matched", answer

    async def fetch_all() -> bool | None:
        trades = await session.data.get("/trades", limit=10_000, takerOnly="false")
        return len(trades) >= SWEEPS * (1 + LEVELS) or None

    await wait_for("the trades in the list of all", fetch_all)


async def _funded(session: DemoSession) -> TradingClient:
    trader = await new_trader(session, Wallet(await session.new_account()))
    await session.fund(trader.wallet.maker, FUNDS_UNITS)
    await session.caller(trader.wallet.private_key).call_all(approval_calls(session.deployment))

    async def fetch_funded() -> bool | None:
        found = await trader.get("/balance-allowance", asset_type="COLLATERAL", signature_type=0)
        allowed = min(map(int, found["allowances"].values()))
        return True if int(found["balance"]) >= FUNDS_UNITS and allowed > 0 else None

    await wait_for("funds at the exchange", fetch_funded)
    return trader
