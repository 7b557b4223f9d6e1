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
from foretell.domain.exchange.book import Book
from foretell.domain.exchange.effects import TradeMatched
from foretell.domain.exchange.ledger import LiveOrder, WalletAccounts
from foretell.domain.exchange.state import State
from foretell.domain.values.hexadecimal import Bytes32, address_of

BOOK_NAME: Final = "book"
MAKER: Final = WalletAccounts(address_of(b"\x01" * 20))
TAKER: Final = WalletAccounts(address_of(b"\x02" * 20))


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
    """Our book and its matching alone, as peers have it.

    Its orders are those of the engine, with what a book needs and the number of the operation as
    their nonce. With a class of their own, the interpreter could not specialize the code of the book
    for one class, and both contenders would be slower than either is alone.
    """

    def __init__(self) -> None:
        self._book: Book[LiveOrder] = Book(TICKS_PER_ONE)
        self._order_by_number: dict[int, LiveOrder] = {}

    def prepare(self, operations: Sequence[BookOperation]) -> Sequence[Any]:
        """Return the operations with their owners and sides, and the ranks of their prices."""
        return [
            (
                each,
                TAKER if each.is_taker else MAKER,
                self._book.side(is_bid=each.is_bid),
                each.price_ticks if each.is_bid else TICKS_PER_ONE - each.price_ticks,
            )
            for each in operations
        ]

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """Cancel, or match and rest the remainder."""
        results, order_by_number = [], self._order_by_number
        for (number, is_cancel, _, _, lots), wallet, side, rank in prepared:
            if is_cancel:
                order = order_by_number.pop(number)
                order.level.side.remove(order)
                continue
            left_units = lots * LOT_UNITS
            if rank + side.opposite.best_rank >= TICKS_PER_ONE:
                match = side.opposite.take(TICKS_PER_ONE - rank, wallet, left_units)
                left_units = match.left_units
                results.append(match.fills)
                for maker, _ in match.fills:
                    if maker.remaining_units == 0:
                        del order_by_number[maker.nonce]
            if left_units:
                order = order_by_number[number] = LiveOrder()
                order.nonce = number
                order.wallet = wallet
                order.remaining_units = left_units
                order.level = side.level(rank)
                side.add(order)
        return results

    def fills(self, results: Sequence[Any]) -> list[BookFill]:
        """Return the fills of all matches."""
        return [
            BookFill(order.nonce, units // LOT_UNITS, order.level.yes_price_ticks)
            for fills in results
            for order, units in fills
        ]


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
