"""The books after subscriptions, sent in turns that all connections of a process share.

The messages of a token begin at a connection in the turn that sends its book: what came before is in the book, so
that no change precedes it and none is lost. Both tokens of a market that wait are sent in one turn, because
a change of the market names both.

A turn has few books, and the next one comes after a pause. Clients take turns by markets, and so do the
connections of a client. A connection whose client has not taken all that was sent is left out until it has.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from foretell.domain.errors.exchange import UnknownMarket
from foretell.runtime.pauses import Pauses
from foretell.trading.books.books import PublicBooks
from foretell.trading.streams.connection import Connection
from foretell.trading.streams.messages import book_text
from foretell.trading.streams.open_streams import OpenStreams

Begin = Callable[[Connection, str], None]
"""Begins to send the messages of a token to a connection."""


class DumpLimits(NamedTuple):
    """Bounds of one turn over all connections, and of the share of time that turns take."""

    markets_per_turn: int = 16
    """Of at most two books each; a connection that is left out counts as one."""
    bytes_per_turn: int = 64 * 1024
    """A market whose books are larger has a turn of its own."""
    pause_factor: float = 3.0
    """The pause after a turn, in lengths of that turn."""


DUMP_LIMITS: Final = DumpLimits()


class _MarketDump(NamedTuple):
    """The tokens of a market that wait, and their books: none if the market does not trade."""

    tokens: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.texts))


class BookDumps:
    """The tokens whose books are to be sent, by connection, and the order of the connections."""

    def __init__(
        self,
        books: PublicBooks,
        streams: OpenStreams,
        begin: Begin,
        pauses: Pauses | None = None,
    ) -> None:
        """Other kinds of work may share the pauses."""
        self.limits = DUMP_LIMITS
        self._books = books
        self._streams = streams
        self._begin = begin
        self._tokens_by_connection: dict[Connection, dict[str, None]] = {}
        self._ready: OrderedDict[str | Connection, OrderedDict[Connection, None]] = OrderedDict()
        """Connections that take books, by the address of the client; without one each is a client."""
        self._pauses = pauses or Pauses()
        self._is_due = False

    def __len__(self) -> int:
        return sum(map(len, self._tokens_by_connection.values()))

    def add(self, connection: Connection, tokens: Iterable[str]) -> None:
        """Have the books of tokens sent, and the messages of each after its book."""
        new = dict.fromkeys(tokens)
        if new:
            self._tokens_by_connection.setdefault(connection, {}).update(new)
            self._queue(connection)

    def drop(self, connection: Connection, token_id: str) -> bool:
        """Send no book of a token, and return whether one was to be sent."""
        tokens = self._tokens_by_connection.get(connection, {})
        if token_id not in tokens:
            return False
        del tokens[token_id]
        if not tokens:
            self.leave(connection)
        return True

    def leave(self, connection: Connection) -> Mapping[str, None]:
        """Send no books to a connection, and return the tokens whose books were to be sent."""
        connection.when_caught_up = None
        self._leave_out(connection)
        return self._tokens_by_connection.pop(connection, {})

    def _queue(self, connection: Connection) -> None:
        """Put a connection behind the others of its client, and its client behind the others."""
        self._ready.setdefault(connection.client or connection, OrderedDict())[connection] = None
        self._schedule()

    def _leave_out(self, connection: Connection) -> None:
        client = connection.client or connection
        connections = self._ready.get(client)
        if connections is not None:
            connections.pop(connection, None)
            if not connections:
                del self._ready[client]

    def _schedule(self) -> None:
        if self._ready and not self._is_due:
            self._is_due = True
            self._pauses.call_after(self._turn, self)

    def _turn(self) -> None:
        """Send some books, and pause in proportion to the time that they took."""
        started_s = self._pauses.now_s()
        try:
            stamp = self._streams.stamp(self._books.sequence)
            for connection, texts in self._take().items():
                connection.send_together(stamp, texts)
        finally:
            took_s = self._pauses.now_s() - started_s
            self._pauses.add(self.limits.pause_factor * took_s, took_s, self)
            self._is_due = False
            self._schedule()

    def _take(self) -> Mapping[Connection, list[str]]:
        """Return the books of one turn by connection, having begun the messages of their tokens."""
        texts_by_connection: dict[Connection, list[str]] = {}
        size_bytes = 0
        for _ in range(self.limits.markets_per_turn):
            if not self._ready:
                break
            connection = next(iter(next(iter(self._ready.values()))))
            if not connection.is_caught_up:
                self._leave_out(connection)
                connection.when_caught_up = partial(self._queue, connection)
                continue
            dump = self._next_market(connection)
            if size_bytes and size_bytes + dump.size_bytes > self.limits.bytes_per_turn:
                break
            size_bytes += dump.size_bytes
            texts_by_connection.setdefault(connection, []).extend(dump.texts)
            self._take_market(connection, dump.tokens)
        return texts_by_connection

    def _next_market(self, connection: Connection) -> _MarketDump:
        """Return what the connection gets next; it stays in place."""
        waiting = self._tokens_by_connection[connection]
        token_id = next(iter(waiting))
        try:
            market, is_yes = self._books.find_open(token_id)
        except UnknownMarket:
            return _MarketDump((token_id,), ())
        texts = [book_text(market.book(is_yes=is_yes))]
        complement = market.token(is_yes=not is_yes)
        if complement not in waiting:
            return _MarketDump((token_id,), tuple(texts))
        texts.append(book_text(market.book(is_yes=not is_yes)))
        return _MarketDump((token_id, complement), tuple(texts))

    def _take_market(self, connection: Connection, tokens: Iterable[str]) -> None:
        """Begin the messages of tokens, and put the connection and its client behind the others."""
        waiting = self._tokens_by_connection[connection]
        for token_id in tokens:
            del waiting[token_id]
            self._begin(connection, token_id)
        client = connection.client or connection
        if waiting:
            self._ready[client].move_to_end(connection)
            self._ready.move_to_end(client)
        else:
            del self._tokens_by_connection[connection]
            self._leave_out(connection)
            if client in self._ready:
                self._ready.move_to_end(client)
