"""The process of the load: orders, cancels, trades, reads and streams at steady rates.

`python -m foretell.bench.rigs.soak.load FOLDER PLAN WINDOW_S` prints a line for each window, and one at the end, when
every accepted order was looked up again and the trades had a minute to settle. Requests are sent when they are due,
whether or not earlier ones were answered, and their latency counts from then.
"""

import asyncio
import contextlib
import itertools
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.soak.audit import AcceptedOrder, lost_orders, unsettled_trades
from foretell.bench.rigs.soak.clients import Seen, SoakClients, cancel_all, follow_stream
from foretell.bench.rigs.soak.fill import fill
from foretell.bench.rigs.soak.messages import Line, SoakOutcome, SoakPlan, SoakWindow
from foretell.bench.rigs.soak.reads import reads_of
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.command import ApiRefused, ApiUnreachable, NotInTime
from foretell.domain.exchange.order import Side
from foretell.sdk.http import wait_for
from foretell.sdk.trading import TradingClient

IN_FLIGHT_MAX: Final = 64
CHAIN_DEADLINE_S: Final = 60.0
"""For how long the chain may be away while it is started again."""
RESTING_S: Final = 10.0
"""How long an order rests before it is canceled; a tenth of a shorter load."""
SIZE_UNITS: Final = 5_000_000
CENTS: Final = 100
PRICES: Final = 20
"""Resting bids are at 1 to 20 cents, for either outcome, so none of them meets another or a trade."""
TRADE_CENTS: Final = 50


class Load:
    """A mixed load on one sandbox."""

    def __init__(self, clients: SoakClients, rpc: Rpc, seen: Seen, plan: SoakPlan) -> None:
        self._clients = clients
        self._rpc = rpc
        self._seen = seen
        self._plan = plan
        self._salts = itertools.count(now_ms() * 1000)
        self._free = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._resting: deque[tuple[float, TradingClient, str]] = deque()
        self._trading = asyncio.Lock()
        self._reads = reads_of(clients)
        self._resting_s = min(RESTING_S, plan.seconds / 10)
        self.accepted: dict[str, AcceptedOrder] = {}
        self.cancels = 0

    async def run(self, window_s: float, report: Callable[[Line], None]) -> SoakOutcome:
        """Fill and load the sandbox as planned, then look for everything that was accepted."""
        await fill(self._clients, self._plan.filling_orders, self._salts, self._seen)
        streams = [
            asyncio.create_task(follow_stream(url, subscription, self._seen))
            for url, subscription in self._clients.subscriptions()
        ]
        plan, began_s = self._plan, time.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._paced(plan.orders_per_s, self._rest))
                group.create_task(self._paced(plan.orders_per_s, self._cancel_oldest))
                group.create_task(self._paced(plan.trades_per_s, self._trade))
                group.create_task(self._paced(plan.reads_per_s, self._read))
                group.create_task(self._report(window_s, began_s, report))
            ended_s, backlog_end = time.monotonic(), len(self._seen.matched_at_s)
            while self._resting:
                with self._counting_failures():
                    await self._cancel(*self._resting.popleft()[1:])
            lost = await lost_orders(self.accepted, self._seen)
            unsettled = len(self._seen.trades)
            with self._counting_failures():
                unsettled = await unsettled_trades(self._clients, self._seen, ended_s)
        finally:
            await cancel_all(streams)
        drained_s = None
        if not self._seen.matched_at_s:
            drained_s = max(self._seen.settled_last_s - ended_s, 0.0)
        outcome = self._outcome(lost, unsettled)
        return msgspec.structs.replace(outcome, backlog_end=backlog_end, drained_s=drained_s)

    async def _paced(self, per_s: float, act: Callable[[int, float], Awaitable[None]]) -> None:
        """Do something this many times a second, each time when it is due."""
        began_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(int(per_s * self._plan.seconds)):
                due_at_s = began_s + number / per_s
                await asyncio.sleep(max(due_at_s - time.monotonic(), 0))
                await self._free.acquire()
                group.create_task(self._guarded(act, number, due_at_s))

    async def _guarded(
        self, act: Callable[[int, float], Awaitable[None]], number: int, due_at_s: float
    ) -> None:
        try:
            with self._counting_failures():
                await act(number, due_at_s)
        finally:
            self._free.release()

    @contextlib.contextmanager
    def _counting_failures(self) -> Iterator[None]:
        """Count a refusal as a fault of the exchange, and go on."""
        try:
            yield
        except (ApiRefused, ApiUnreachable) as failure:
            self._seen.fault(failure.message)

    async def _rest(self, number: int, due_at_s: float) -> None:
        """Place an order that nobody takes."""
        traders, market = self._clients.traders, self._clients.addresses.market
        token = market.token_yes if number % 2 == 0 else market.token_no
        trader = traders[number % len(traders)]
        answer = await self._place(trader, token, Side.BUY, 1 + number * 7 % PRICES, due_at_s)
        self._resting.append((time.monotonic(), trader, answer["orderID"]))

    async def _cancel_oldest(self, _: int, due_at_s: float) -> None:
        """Cancel the order that rests for the longest time, if that is long enough."""
        if self._resting and self._resting[0][0] + self._resting_s < due_at_s:
            await self._cancel(*self._resting.popleft()[1:])

    async def _cancel(self, trader: TradingClient, order_id: str) -> None:
        answer = await trader.send("DELETE", "/order", {"orderID": order_id})
        if answer["canceled"] != [order_id]:
            self._seen.fault(f"order {order_id} is not canceled: {answer}")
            return
        self.cancels += 1
        self.accepted[order_id] = AcceptedOrder(trader, "CANCELED")

    async def _trade(self, number: int, due_at_s: float) -> None:
        """Let two traders trade, so that four trades of a pair leave both with what they had.

        One mint, two sales of Yes, there and back, and one merge. One trade at a time, so that no order meets another
        pair's.
        """
        traders, market = self._clients.traders, self._clients.addresses.market
        pair = number // 4 % (len(traders) // 2) * 2
        one, other = traders[pair], traders[pair + 1]
        yes, no = market.token_yes, market.token_no
        (first, first_token, first_side), (second, second_token, second_side) = (
            ((one, yes, Side.BUY), (other, no, Side.BUY)),
            ((one, yes, Side.SELL), (other, yes, Side.BUY)),
            ((other, yes, Side.SELL), (one, yes, Side.BUY)),
            ((one, yes, Side.SELL), (other, no, Side.SELL)),
        )[number % 4]
        async with self._trading:
            began_s = max(due_at_s, time.monotonic())
            maker = await self._place(first, first_token, first_side, TRADE_CENTS, began_s)
            began_s = time.monotonic()
            taker = await self._place(second, second_token, second_side, TRADE_CENTS, began_s)
        if taker["status"] != "matched" or not taker["tradeIDs"]:
            self._seen.fault(f"an order did not match: {taker}")
            return
        for order_id in (maker["orderID"], taker["orderID"]):
            client = self.accepted[order_id].trader
            self.accepted[order_id] = AcceptedOrder(client, "MATCHED")
        for trade_id in taker["tradeIDs"]:
            self._seen.matched(trade_id)

    async def _place(
        self, trader: TradingClient, token: str, side: Side, cents: int, due_at_s: float
    ) -> Any:
        cost_units = SIZE_UNITS * cents // CENTS
        order = trader.sign_order(token, side, SIZE_UNITS, cost_units, next(self._salts))
        answer = await trader.place(order)
        self._seen.orders_s.append(time.monotonic() - due_at_s)
        self.accepted[answer["orderID"]] = AcceptedOrder(trader, "LIVE")
        return answer

    async def _read(self, number: int, due_at_s: float) -> None:
        await self._reads[number % len(self._reads)]()
        self._seen.reads += 1
        self._seen.reads_s.append(time.monotonic() - due_at_s)

    async def _report(
        self, window_s: float, began_s: float, report: Callable[[Line], None]
    ) -> None:
        for number in range(1, int(self._plan.seconds / window_s) + 1):
            await asyncio.sleep(max(began_s + number * window_s - time.monotonic(), 0))
            report(await self._window(time.monotonic() - began_s))

    async def _head(self) -> int | None:
        """Return the newest block, or None while the chain is started again."""
        try:
            return int(await self._rpc.call("eth_blockNumber"), 16)
        except ChainUnavailable:
            return None

    async def _window(self, at_s: float) -> SoakWindow:
        seen, trader = self._seen, self._clients.traders[0]
        orders_p50_ms, orders_p99_ms = _percentiles_ms(seen.orders_s)
        reads_p50_ms, reads_p99_ms = _percentiles_ms(seen.reads_s)
        tables_ms, index_blocks, sqlite_bytes = 0.0, 0.0, None
        try:
            tables_ms = await self._tables_ms()
            sqlite_bytes = await self._clients.sqlite_bytes()
            head = await wait_for("the chain", self._head, CHAIN_DEADLINE_S)
            balance = await trader.get("/balance-allowance", asset_type="COLLATERAL")
            index_blocks = float(max(head - int(balance["as_of_block"]), 0))
        except (ApiRefused, ApiUnreachable, NotInTime) as failure:
            seen.fault(failure.message)
        return SoakWindow(
            at_s=at_s,
            orders_p50_ms=orders_p50_ms,
            orders_p99_ms=orders_p99_ms,
            reads_p50_ms=reads_p50_ms,
            reads_p99_ms=reads_p99_ms,
            tables_ms=tables_ms,
            index_blocks=index_blocks,
            unsettled_s=seen.unsettled_s(),
            backlog=len(seen.matched_at_s),
            orders=len(self.accepted),
            faults=seen.faults,
            examples=tuple(seen.new_examples()),
            sqlite_bytes=sqlite_bytes,
        )

    async def _tables_ms(self) -> float:
        """Return the time until an order that was just accepted is in the tables."""
        if not self.accepted:
            return 0.0
        order_id = next(reversed(self.accepted))
        began_s = time.monotonic()
        await self.accepted[order_id].trader.get(f"/data/order/{order_id}")
        return (time.monotonic() - began_s) * 1e3

    def _outcome(self, lost: int, unsettled: int) -> SoakOutcome:
        seen, settled_s = self._seen, sorted(self._seen.settled_s)
        return SoakOutcome(
            orders=len(self.accepted),
            cancels=self.cancels,
            trades=len(seen.trades),
            reads=seen.reads,
            stream_messages=seen.stream_messages,
            settled_p50_s=settled_s[len(settled_s) // 2] if settled_s else None,
            settled_max_s=settled_s[-1] if settled_s else None,
            backlog_most=seen.backlog_most,
            backlog_end=len(seen.matched_at_s),
            drained_s=None,
            lost=lost,
            unsettled=unsettled,
            faults=seen.faults,
            examples=tuple(seen.examples),
        )


def _percentiles_ms(times_s: deque[float]) -> tuple[float | None, float | None]:
    """Return the median and the 99th percentile of times, in milliseconds, and forget the times."""
    ordered = sorted(times_s)
    times_s.clear()
    if not ordered:
        return None, None
    last = len(ordered) - 1
    return ordered[last // 2] * 1e3, ordered[int(0.99 * last)] * 1e3


def print_line(line: Line) -> None:
    """Print a line for the process of the benchmark."""
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


async def load(folder: Path, plan: SoakPlan, window_s: float) -> None:
    """Load the sandbox of a data folder, and print its windows and its outcome."""
    seen = Seen()
    async with contextlib.AsyncExitStack() as stack:
        clients = await SoakClients.open(folder, seen, stack)
        rpc = await stack.enter_async_context(Rpc(clients.addresses.rpc))
        print_line(await Load(clients, rpc, seen, plan).run(window_s, print_line))


if __name__ == "__main__":
    uvloop.run(
        load(
            Path(sys.argv[1]),
            msgspec.json.decode(sys.argv[2], type=SoakPlan),
            float(sys.argv[3]),
        )
    )
