"""Traders over HTTP, each with its own connection, that record requests and responses."""

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.rigs.values import CHAIN_ID, TOKEN, a_deployment, a_key, an_asset

from foretell.domain.errors.command import ApiRefused, ApiUnreachable
from foretell.domain.exchange.order import OrderType, Side, SignedOrder
from foretell.domain.values.hexadecimal import Bytes32
from foretell.sdk.http import HttpClient
from foretell.sdk.trading import TradingClient, Wallet, order_body

BUYERS: Final = ("ada", "bea", "cleo")
SELLERS: Final = ("dan", "eli", "fred")
MARKETS: Final = ("rain", "snow")
SIZE_UNITS: Final = 10 * TOKEN
RESTING_PRICES: Final = {Side.BUY: (20, 45), Side.SELL: (55, 80)}
CROSSING_PRICE: Final = {Side.BUY: 60, Side.SELL: 40}
CROSSING_RATE: Final = 0.2
CANCEL_RATE: Final = 0.25
ENTRIES_PER_REQUEST: Final = 15
NO_LONGER: Final = {425, 503}
"""Statuses of refusals after which the outcome is looked up later."""


class Received(NamedTuple):
    """The requests and responses of the traders, from their notes."""

    asked: set[Bytes32]
    answer_by_order: dict[Bytes32, Any]
    canceling: set[Bytes32]
    canceled: set[Bytes32]


class Notes:
    """A file of requests, written before they are sent, and of answers when they arrive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def note(self, word: str, order_id: Bytes32, answer: Any = None) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps([word, order_id, answer]) + "\n")

    def read(self) -> Received:
        received = Received(set(), {}, set(), set())
        with self._path.open() as file:
            for word, order_id, answer in map(json.loads, file):
                match word:
                    case "asks":
                        received.asked.add(order_id)
                    case "placed":
                        received.answer_by_order[order_id] = answer
                    case "cancels":
                        received.canceling.add(order_id)
                    case _:
                        assert word == "canceled"
                        received.canceled.add(order_id)
        return received


@dataclass
class Person:
    """A trader who only buys, or only sells, so that no order meets one of its own."""

    client: TradingClient
    side: Side
    notes: Notes
    rng: random.Random
    salts: Iterator[int]
    placed: list[Bytes32] = field(default_factory=list)
    order_by_id: dict[Bytes32, SignedOrder] = field(default_factory=dict)

    async def trade(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Place and cancel until it is over, or the exchange does not answer or is unavailable."""
        while not is_over():
            try:
                await self.act()
            except ApiUnreachable:
                return
            except ApiRefused as refusal:
                if refusal.details["status"] not in NO_LONGER:
                    raise
                return

    async def act(self) -> None:
        if self.placed and self.rng.random() < CANCEL_RATE:
            await self.cancel(self.placed.pop(self.rng.randrange(len(self.placed))))
        else:
            await self.place(self.next_order())

    def next_order(self) -> SignedOrder:
        if self.rng.random() < CROSSING_RATE:
            price = CROSSING_PRICE[self.side]
        else:
            price = self.rng.randint(*RESTING_PRICES[self.side])
        return self.order(price, self.rng.choice(MARKETS))

    def order(self, price: int, market: str = MARKETS[0]) -> SignedOrder:
        token = an_asset(is_yes=True, market=market)
        cost = SIZE_UNITS * price // 100
        return self.client.sign_order(token, self.side, SIZE_UNITS, cost, next(self.salts))

    async def place(self, order: SignedOrder) -> Any:
        order_id = a_deployment().separators().order_id(order)
        self.order_by_id[order_id] = order
        self.notes.note("asks", order_id)
        answer = await self.client.place(order)
        assert answer["orderID"] == order_id
        self.notes.note("placed", order_id, answer)
        self.placed.append(order_id)
        return answer

    async def cancel(self, order_id: Bytes32) -> Any:
        self.notes.note("cancels", order_id)
        answer = await self.client.send("DELETE", "/order", {"orderID": order_id})
        if answer["canceled"]:
            assert answer["canceled"] == [order_id]
            self.notes.note("canceled", order_id)
        return answer

    async def send_again(self, ids: Sequence[Bytes32]) -> dict[Bytes32, Any]:
        """Send orders once more, and return the answer to each."""
        assert self.client.credentials is not None
        key_id = self.client.credentials.key_id
        answers: dict[Bytes32, Any] = {}
        for start in range(0, len(ids), ENTRIES_PER_REQUEST):
            part = ids[start : start + ENTRIES_PER_REQUEST]
            bodies = [order_body(self.order_by_id[each], key_id, OrderType.GTC) for each in part]
            replies = await self.client.send("POST", "/orders", bodies)
            answers |= dict(zip(part, replies, strict=True))
        return answers


def now_s() -> int:
    return int(time.time())


def a_person(name: str, http: HttpClient, notes: Notes, rng: random.Random) -> Person:
    """Return one of BUYERS or SELLERS; its orders have salts of their own."""
    signers = a_deployment().separators()
    client = TradingClient(http, Wallet(a_key(name)), CHAIN_ID, signers, now_s)
    side = Side.BUY if name in BUYERS else Side.SELL
    return Person(client, side, notes, rng, itertools.count(rng.getrandbits(48)))
