"""`foretell bench book`: reading a book while orders change it (book).

The figure compares `GET /book` under a steady flow of orders with `GET` of a constant body from the same server,
without the flow. Both are read over the same number of connections, for the same time, in turns.
"""

import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.bench.rigs.exchange import Exchange, running_exchange
from foretell.bench.rigs.figures import BOOK, Measurement
from foretell.bench.rigs.load import (
    Answers,
    Offer,
    offer_of,
    requests_of,
    send_all,
    send_for,
    send_paced,
)
from foretell.bench.rigs.machine import disturbance, others_words, undisturbed, usage_with
from foretell.bench.rigs.trading_alone import CONSTANT_PATH
from foretell.bench.rigs.world import TICKS_PER_ONE, World, make_world

FLOW_CONNECTIONS: Final = 4
MARKET: Final = 0
FAR_BIDS: Final = range(1, 30)
FAR_ASKS: Final = range(71, 100)
FAR_SIZE_UNITS: Final = 1_234_567_123_400
"""Many digits, so that a book has about as many bytes as the constant body."""
FAR_FIRST_SALT: Final = 10**9


class BookPlan(NamedTuple):
    """Rounds, their seconds, connections that read, and the orders a second of the flow."""

    rounds: int
    orders_per_s: int
    seconds: float = 3.0
    connections: int = 16
    warm_up_orders: int = 400


class BookRound(NamedTuple):
    """Reads of a constant body without orders, and of a book under orders."""

    constant_per_s: float
    book_per_s: float
    book_p50_ms: float
    others_cores: float

    @property
    def ratio(self) -> float:
        """Reads of the book for each of the constant body."""
        return self.book_per_s / self.constant_per_s


class BookRounds:
    """Rounds on one exchange, with orders in the market whose book is read."""

    def __init__(self, plan: BookPlan, world: World, exchange: Exchange) -> None:
        self._plan = plan
        self._world = world
        self._exchange = exchange
        self._placed = 0
        self._constant = _get(exchange.path + CONSTANT_PATH)
        self._book = _get(f"{exchange.path}/book?token_id={world.tokens[MARKET].yes}")

    def warm_up(self) -> None:
        """Fill the book at all prices, and read both once."""
        orders = self._far_orders() + self._orders(self._plan.warm_up_orders)
        for requests in (orders, [self._constant], [self._book]):
            uvloop.run(send_all(self._exchange.port, requests, 1))

    def measure(self) -> BookRound:
        """Read the constant body, then the book while orders arrive."""
        plan, port = self._plan, self._exchange.port
        orders = self._orders(round(plan.orders_per_s * plan.seconds))
        before = usage_with(*self._exchange.pids)
        constant = uvloop.run(send_for(port, self._constant, plan.connections, plan.seconds))
        book = uvloop.run(self._read_under(orders))
        return BookRound(
            len(constant.latencies_s) / constant.seconds,
            len(book.latencies_s) / book.seconds,
            statistics.median(book.latencies_s) * 1e3,
            before.others_cores(usage_with(*self._exchange.pids)),
        )

    async def _read_under(self, orders: Sequence[bytes]) -> Answers:
        plan, port = self._plan, self._exchange.port
        book, _ = await asyncio.gather(
            send_for(port, self._book, plan.connections, plan.seconds),
            send_paced(port, orders, FLOW_CONNECTIONS, plan.orders_per_s),
        )
        return book

    def _orders(self, count: int) -> list[bytes]:
        """Return distinct orders in the market whose book is read."""
        first, self._placed = self._placed, self._placed + count
        offers = (
            (number, offer_of(self._world, number)._replace(market=MARKET))
            for number in range(first, self._placed)
        )
        return requests_of(self._world, self._exchange.path, offers, now_ms() // 1000)

    def _far_orders(self) -> list[bytes]:
        """Return an order at each price that no order of the flow meets."""
        offers = [
            Offer(MARKET, price < TICKS_PER_ONE // 2, price, FAR_SIZE_UNITS)
            for price in (*FAR_BIDS, *FAR_ASKS)
        ]
        numbered = enumerate(offers, start=FAR_FIRST_SALT)
        return requests_of(self._world, self._exchange.path, numbered, now_ms() // 1000)


def run_bench_book(plan: BookPlan, console: Console) -> list[Measurement]:
    """Measure round after round, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with (
        tempfile.TemporaryDirectory(prefix="foretell-bench-") as name,
        running_exchange(master_key, Path(name), proxies=("127.0.0.1",)) as exchange,
    ):
        rounds = BookRounds(plan, world, exchange)
        rounds.warm_up()
        measured = [rounds.measure() for _ in range(plan.rounds)]
    console.print(_table_of(measured))
    counted = undisturbed(measured)
    ratio = statistics.median(one.ratio for one in counted)
    constant_per_s = statistics.median(one.constant_per_s for one in counted)
    console.print(
        f"book: {ratio:.2f} reads of a book under {plan.orders_per_s} orders a second for each read"
        f" of a constant body without orders (median of {len(counted)} rounds,"
        f" {plan.connections} connections)"
    )
    if words := disturbance(measured):
        console.print(words)
    return [Measurement(BOOK, ratio, f"{constant_per_s:,.0f} reads/s of a constant 4 kB")]


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def _table_of(measured: Sequence[BookRound]) -> Table:
    table = Table("round", "constant/s", "book/s", "ratio", "book p50 ms", "cores of others")
    for number, shown in enumerate(measured, 1):
        table.add_row(
            str(number),
            f"{shown.constant_per_s:,.0f}",
            f"{shown.book_per_s:,.0f}",
            f"{shown.ratio:.2f}",
            f"{shown.book_p50_ms:.2f}",
            others_words(shown.others_cores),
        )
    return table
