"""Matching engines with the same operations: ours, and peers by other authors in Python.

Peers are called by their public interfaces. They are optional: requirements/peers.txt.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from foretell.bench.rigs.command_stream import LOT_UNITS, CommandStream, order_id_of
from foretell.bench.rigs.operations import BookOperation
from foretell.bench.rigs.world import TICKS_PER_ONE, World, funding_command, market_commands
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.book import Book, LiveOrder
from foretell.domain.exchange.effects import TradeMatched
from foretell.domain.exchange.matching import PlannedFill, Taker, plan_match
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.exchange.state import State
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32, Bytes32, address_of

BOOK_NAME: Final = "book"
TAKER: Final = address_of(b"\x01" * 20)


class BookFill(NamedTuple):
    """The maker order of a fill, in the order of fills; whole lots, prices in ticks."""

    maker: int
    lots: int
    price_ticks: int


class Contender(Protocol):
    """An engine with one book."""

    def prepare(self, operations: Sequence[BookOperation]) -> Sequence[Any]:
        """Return operations as the engine takes them; this is not measured."""

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """Do the operations, and return the engine's results; this is measured."""

    def fills(self, results: Sequence[Any]) -> list[BookFill]:
        """Return the fills in the results."""


class WholeEngine:
    """The engine as it trades: balances, trades, effects, and the book."""

    def __init__(self, world: World) -> None:
        self.state = State()
        apply(self.state, market_commands(world, 0)[0])
        apply(self.state, funding_command(world, 0))
        self._stream = CommandStream(world, 1)
        self._number_by_id: dict[Bytes32, int] = {}

    def prepare(self, operations: Sequence[BookOperation]) -> Sequence[Any]:
        """Return the commands."""
        for each in operations:
            self._number_by_id[order_id_of(0, each.number)] = each.number
        return [self._stream.command(0, each) for each in operations]

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """Apply the commands."""
        return [apply(self.state, command) for command in prepared]

    def fills(self, results: Sequence[Any]) -> list[BookFill]:
        """Return the fills of every trade."""
        outcomes: Sequence[Outcome] = results
        return [
            BookFill(
                self._number_by_id[fill.maker_order_id],
                fill.size_units // LOT_UNITS,
                fill.price_ticks,
            )
            for outcome in outcomes
            for effect in outcome.effects
            if isinstance(effect, TradeMatched)
            for fill in effect.trade.fills
        ]


class OwnBook:
    """Our book and its matching alone, as peers have it."""

    def __init__(self) -> None:
        self._book = Book(TICKS_PER_ONE)
        self._order_by_id: dict[Bytes32, LiveOrder] = {}
        self._number_by_id: dict[Bytes32, int] = {}

    def prepare(self, operations: Sequence[BookOperation]) -> Sequence[Any]:
        """Return the operations with the ids and sides of their orders."""
        prepared = []
        for each in operations:
            order_id = order_id_of(0, each.number)
            self._number_by_id[order_id] = each.number
            prepared.append((each, order_id, Side.BUY if each.is_bid else Side.SELL))
        return prepared

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """Cancel, or match and rest the remainder."""
        results = []
        for operation, order_id, side in prepared:
            if operation.is_cancel:
                self._book.remove(self._order_by_id.pop(order_id))
            else:
                results.append(self._match(operation, order_id, side))
        return results

    def fills(self, results: Sequence[Any]) -> list[BookFill]:
        """Return the fills that were planned."""
        plans: Sequence[Sequence[PlannedFill]] = results
        return [
            BookFill(
                self._number_by_id[fill.order.order_id],
                fill.size_units // LOT_UNITS,
                fill.order.yes_price_ticks,
            )
            for plan in plans
            for fill in plan
        ]

    def _match(
        self, operation: BookOperation, order_id: Bytes32, side: Side
    ) -> Sequence[PlannedFill]:
        _, _, is_bid, price_ticks, lots = operation
        size_units = lots * LOT_UNITS
        fills: Sequence[PlannedFill] = ()
        filled = 0
        if self._book.is_met(price_ticks, taker_is_bid=is_bid):
            taker = Taker(TAKER, side, True, is_bid, price_ticks, size_units, None)  # noqa: FBT003 - fields of a row
            plan = plan_match(self._book, taker)
            fills, filled = plan.fills, plan.size_units
            self._take(fills)
        if filled < size_units:
            order = LiveOrder(
                order_id,
                ZERO_BYTES32,
                ZERO_ADDRESS,
                ZERO_ADDRESS,
                "",
                side,
                True,  # noqa: FBT003 - a field of a row
                is_bid,
                price_ticks,
                price_ticks,
                size_units,
                size_units - filled,
                OrderType.GTC,
                None,
                0,
                0,
            )
            self._book.add(order)
            self._order_by_id[order_id] = order
        return fills

    def _take(self, fills: Sequence[PlannedFill]) -> None:
        for order, units in fills:
            if units == order.remaining_units:
                self._book.remove(order)
                del self._order_by_id[order.order_id]
            else:
                self._book.reduce(order, units)


class LightMatchingEngine:
    """lightmatchingengine: a dictionary of lists."""

    def __init__(self) -> None:
        module = importlib.import_module("lightmatchingengine.lightmatchingengine")
        self._engine = module.LightMatchingEngine()
        self._sides = {True: module.Side.BUY, False: module.Side.SELL}
        self._number_by_id: dict[int, int] = {}

    def prepare(self, operations: Sequence[BookOperation]) -> Sequence[Any]:
        """Return the arguments; the engine numbers orders from one, in their sequence."""
        prepared = []
        for each in operations:
            self._number_by_id[each.number + 1] = each.number
            prepared.append((each, self._sides[each.is_bid]))
        return prepared

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """Cancel, or add."""
        engine = self._engine
        return [
            engine.cancel_order(each.number + 1, BOOK_NAME)
            if each.is_cancel
            else engine.add_order(BOOK_NAME, each.price_ticks, each.lots, side)
            for each, side in prepared
        ]

    def fills(self, results: Sequence[Any]) -> list[BookFill]:
        """Return the trades of makers; the engine lists the taker's trade before them."""
        return [
            BookFill(self._number_by_id[trade.order_id], trade.trade_qty, trade.trade_price)
            for each in results
            if isinstance(each, tuple)
            for trade in each[1]
            if trade.order_id != each[0].order_id
        ]


class PyOrderBook:
    """pyorderbook: heaps of levels, decimal prices, an UUID for each order."""

    def __init__(self) -> None:
        module = importlib.import_module("pyorderbook")
        self._book = module.Book()
        self._make = {True: module.bid, False: module.ask}
        self._order_by_number: dict[int, Any] = {}
        self._number_by_id: dict[Any, int] = {}

    def prepare(self, operations: Sequence[BookOperation]) -> Sequence[Any]:
        """Return the operations with the constructors of their orders."""
        return [(each, self._make[each.is_bid]) for each in operations]

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """Cancel, or make an order and match it."""
        results = []
        book, order_by_number = self._book, self._order_by_number
        for each, make in prepared:
            if each.is_cancel:
                book.cancel(order_by_number.pop(each.number))
            else:
                order = order_by_number[each.number] = make(BOOK_NAME, each.price_ticks, each.lots)
                results.append((each.number, book.match(order)))
        return results

    def fills(self, results: Sequence[Any]) -> list[BookFill]:
        """Return the trades of every blotter."""
        for number, blotter in results:
            self._number_by_id[blotter.order.id] = number
        return [
            BookFill(
                self._number_by_id[trade.standing_order_id],
                trade.fill_quantity,
                int(trade.fill_price),
            )
            for _, blotter in results
            for trade in blotter.trades
        ]


PEERS: Final[Mapping[str, Callable[[], Contender]]] = MappingProxyType(
    {"lightmatchingengine": LightMatchingEngine, "pyorderbook": PyOrderBook}
)
"""Peers with a licence, by the names of their packages."""


def installed_peers() -> dict[str, Callable[[], Contender]]:
    """Return the peers that are installed here."""
    return {name: make for name, make in PEERS.items() if importlib.util.find_spec(name)}
