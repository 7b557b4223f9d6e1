"""Commands as an engine gets them, with nothing before it: the same ones each time.

Orders come to rest until the books are as deep as wanted. Then each round of four leaves them so: it
takes the oldest order out, puts a new one in, puts a best bid in and fills that.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from foretell.cli.bench.load import make_order
from foretell.cli.bench.world import TICKS_PER_ONE, World
from foretell.domain.commands import CancelOrders, PlaceOrder
from foretell.domain.hexadecimal import keccak256, word_of
from foretell.domain.order import OrderTerms, OrderType, Side

SIZE_UNITS: Final = 10_000_000
"""Of every order: large enough to be whole lots at every price."""
RESTING_PRICES: Final = 40
"""How many prices the orders that stay are spread over; the best bid is one above them."""


class Stream:
    """Commands of so many makers, whom the user after each of them fills, in so many markets."""

    def __init__(self, world: World, makers: int, markets: int) -> None:
        assert makers <= len(world.users)
        assert markets <= len(world.conditions)
        self._world = world
        self._makers = makers
        self._markets = markets
        self._template = make_order(world, world.users[0], world.deployment.separators(), 0)

    def commands(self, depth: int) -> Iterator[PlaceOrder | CancelOrders]:
        """Yield what fills the books to a depth in all, then rounds for ever."""
        resting: deque[PlaceOrder | CancelOrders] = deque()
        for number in range(depth):
            bid = self._bid(number, 1 + number % RESTING_PRICES)
            resting.append(_cancel(bid))
            yield bid
        number = depth
        while True:
            bid = self._bid(number, 1 + number % RESTING_PRICES)
            resting.append(_cancel(bid))
            yield resting.popleft()
            yield bid
            yield self._bid(number + 1, RESTING_PRICES + 1)
            yield self._fill(number + 1)
            number += 3

    def _bid(self, number: int, price_ticks: int) -> PlaceOrder:
        return self._place(b"bid %d" % number, number % self._makers, number, price_ticks, Side.BUY)

    def _fill(self, number: int) -> PlaceOrder:
        """Return what fills the best bid of this number."""
        taker = (number % self._makers + 1) % len(self._world.users)
        return self._place(b"fill %d" % number, taker, number, RESTING_PRICES + 1, Side.SELL)

    def _place(
        self, name: bytes, user: int, number: int, price_ticks: int, side: Side
    ) -> PlaceOrder:
        market = number // self._makers % self._markets
        maker = self._world.users[user].address
        cost = SIZE_UNITS * price_ticks // TICKS_PER_ONE
        order = msgspec.structs.replace(
            self._template,
            salt=str(number),
            maker=maker,
            signer=maker,
            token_id=str(self._world.tokens[market].yes),
            side=side,
            maker_amount=cost if side is Side.BUY else SIZE_UNITS,
            taker_amount=SIZE_UNITS if side is Side.BUY else cost,
        )
        return PlaceOrder(
            at_ms=0,
            order_id=word_of(keccak256(name)),
            order=order,
            order_type=OrderType.GTC,
            is_post_only=False,
            owner="bench",
            condition_id=self._world.conditions[market],
            is_yes=True,
            terms=OrderTerms(price_ticks, TICKS_PER_ONE, SIZE_UNITS, None),
        )


def _cancel(placing: PlaceOrder) -> CancelOrders:
    return CancelOrders(0, placing.order.signer, (placing.order_id,))
