"""The operations of `operations.py` as commands of an engine, in some markets of a world."""

from collections.abc import Iterator
from itertools import cycle
from typing import Final

import msgspec

from foretell.bench.rigs.load import make_order
from foretell.bench.rigs.operations import BookOperation, operations
from foretell.bench.rigs.world import TICKS_PER_ONE, World
from foretell.domain.exchange.commands import CancelOrders, PlaceOrder
from foretell.domain.exchange.order import OrderTerms, OrderType, Side
from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256, word_of

LOT_UNITS: Final = 10_000_000
"""Large enough to be whole lots at every price."""


class CommandStream:
    """Commands for this many of a world's markets; most users are makers, the others takers."""

    def __init__(self, world: World, markets: int) -> None:
        assert markets <= len(world.conditions)
        self._world = world
        self.markets = markets
        self._makers = len(world.users) * 9 // 10
        self._template = make_order(world, world.users[0], world.deployment.separators(), 0)

    def commands(self, depth: int) -> Iterator[PlaceOrder | CancelOrders]:
        """Yield commands that fill the books to a total depth, then rounds without end in every market."""
        share, more = divmod(depth, self.markets)
        books = [(market, operations(share + (market < more))) for market in range(self.markets)]
        turns = cycle(books)
        for _ in range(depth):
            market, book = next(turns)
            yield self.command(market, next(book))
        for market, book in cycle(books):
            yield self.command(market, next(book))

    def command(self, market: int, operation: BookOperation) -> PlaceOrder | CancelOrders:
        """Return an operation on a market's book as a command."""
        if operation.is_cancel:
            order_id = order_id_of(market, operation.number)
            return CancelOrders(0, self._user(market, operation), (order_id,))
        return self._place(market, operation)

    def _user(self, market: int, operation: BookOperation) -> Address:
        number = operation.number + market
        if operation.is_taker:
            takers = len(self._world.users) - self._makers
            return self._world.users[self._makers + number % takers].address
        return self._world.users[number % self._makers].address

    def _place(self, market: int, operation: BookOperation) -> PlaceOrder:
        user, size_units = self._user(market, operation), operation.lots * LOT_UNITS
        cost_units = size_units * operation.price_ticks // TICKS_PER_ONE
        order = msgspec.structs.replace(
            self._template,
            salt=str(operation.number),
            maker=user,
            signer=user,
            token_id=str(self._world.tokens[market].yes),
            side=Side.BUY if operation.is_bid else Side.SELL,
            maker_amount=cost_units if operation.is_bid else size_units,
            taker_amount=size_units if operation.is_bid else cost_units,
        )
        return PlaceOrder(
            at_ms=0,
            order_id=order_id_of(market, operation.number),
            order=order,
            order_type=OrderType.GTC,
            is_post_only=False,
            owner="bench",
            condition_id=self._world.conditions[market],
            is_yes=True,
            terms=OrderTerms(operation.price_ticks, TICKS_PER_ONE, size_units, None),
        )


def order_id_of(market: int, number: int) -> Bytes32:
    """Return the id of the order of this number in a market."""
    return word_of(keccak256(b"%d/%d" % (market, number)))
