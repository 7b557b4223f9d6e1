"""The market channel: books, prices, and the opening and resolution of markets."""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.streams import MalformedMessage, TooManySubscriptions
from foretell.domain.exchange.decision import BookChange, Canceled, Done, Placed
from foretell.domain.exchange.effects import (
    BookChanged,
    Effect,
    MarketOpened,
    MarketResolved,
    MarketRestored,
    TickChanged,
)
from foretell.domain.exchange.trade import Trade
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.tokens import is_token_id
from foretell.engine.protocol.requests import CommittedCommand
from foretell.runtime.pauses import Pauses
from foretell.trading.books.books import PublicBook, PublicBooks
from foretell.trading.books.market_names import MarketNames
from foretell.trading.streams.book_dumps import BookDumps
from foretell.trading.streams.connection import Connection
from foretell.trading.streams.messages import (
    best_prices_texts,
    book_text,
    last_trade_text,
    market_resolved_text,
    new_market_text,
    price_change_text,
    tick_size_texts,
)
from foretell.trading.streams.open_streams import OpenStreams
from foretell.trading.streams.requests import (
    PING_OPERATION,
    MarketChannelRequest,
    check_request,
    decode_message,
)

TOKENS_PER_CONNECTION_MAX: Final = 500
ANNOUNCEMENTS_WAITING_MAX: Final = 10_000


class Announcement(NamedTuple):
    """A market that opened or resolved, to be published once its names are read.

    `is_awaited` is set if a connection had asked for announcements at that time.
    """

    condition_id: Bytes32
    at_ms: int
    sequence: int
    is_resolved: bool
    is_awaited: bool


CHANNEL: Final = "market"
_DECODER: Final = msgspec.json.Decoder(MarketChannelRequest)


class MarketChannel:
    """The subscriptions to tokens, and the messages for them."""

    def __init__(
        self,
        books: PublicBooks,
        market_names: MarketNames,
        streams: OpenStreams,
        pauses: Pauses | None = None,
    ) -> None:
        """Other kinds of work may share the pauses after books."""
        self._books = books
        self._market_names = market_names
        self._streams = streams
        self._connections_by_token: dict[str, dict[Connection, None]] = {}
        """Without the connections that have yet to get the book of the token."""
        self._tokens_by_connection: dict[Connection, dict[str, None]] = {}
        self.dumps = BookDumps(books, streams, self._begin, pauses)
        self._extended: dict[Connection, None] = {}
        """Connections that asked for best prices and announcements too."""
        self.top_by_market: dict[Bytes32, BookTop] = {}
        self.announcements: deque[Announcement] = deque(maxlen=ANNOUNCEMENTS_WAITING_MAX)

    def join(self, connection: Connection) -> None:
        """Add a connection."""
        self._tokens_by_connection[connection] = {}

    def leave(self, connection: Connection) -> None:
        """Remove a connection and its subscriptions."""
        for token_id in self._tokens_by_connection.pop(connection):
            self._forget(token_id, connection)
        self._extended.pop(connection, None)

    @property
    def is_idle(self) -> bool:
        """Whether no connection and no subscription is kept."""
        kept = self._tokens_by_connection, self._connections_by_token, self._extended, self.dumps
        return not any(kept)

    async def handle(self, connection: Connection, text: str) -> None:
        """Handle a message of a client, or say what is wrong with it."""
        try:
            self._handle(connection, decode_message(text, _DECODER))
        except ForetellError as refusal:
            connection.refuse(refusal)

    def _handle(self, connection: Connection, request: MarketChannelRequest) -> None:
        check_request(CHANNEL, request.type, request.operation)
        if request.operation == PING_OPERATION:
            connection.beat(self._streams.now_ms())
            return
        tokens = self._tokens(request)
        if request.stream_id is not None:
            former = self._streams.resume(
                connection,
                request.stream_id,
                request.sequence,
                is_first=not connection.is_subscribed,
            )
            if former is not None:
                self._take_over(former, connection)
        if request.operation == "unsubscribe":
            self._unsubscribe(connection, tokens)
        else:
            self._subscribe(connection, tokens, request)

    def _take_over(self, former: Connection, connection: Connection) -> None:
        """Have a connection, which has no subscription, receive what another one received."""
        tokens = self._tokens_by_connection.pop(former)
        self._tokens_by_connection[connection] = tokens
        waiting = self.dumps.leave(former)
        for token_id in tokens:
            if token_id not in waiting:
                connections = self._connections_by_token[token_id]
                del connections[former]
                connections[connection] = None
        self.dumps.add(connection, waiting)
        if former in self._extended:
            del self._extended[former]
            self._extended[connection] = None

    def on_committed(self, committed: CommittedCommand) -> None:
        """Publish a command to the subscribers."""
        sequence = committed.sequence
        match committed.decision:
            case Placed() as placed:
                for trade in placed.trades:
                    self._publish_trade(trade, sequence)
                if placed.changed is not None:
                    is_traded = bool(placed.trades)
                    self._publish_book(
                        placed.changed, committed.at_ms, sequence, is_traded=is_traded
                    )
            case Canceled() as canceled:
                for changed in canceled.changed:
                    self._publish_book(changed, committed.at_ms, sequence)
            case Done() as done:
                for effect in done.effects:
                    self._publish_effect(effect, sequence)

    async def announce(self, announcement: Announcement) -> None:
        """Read the names of a market, and publish it to those that asked for announcements."""
        condition_id, at_ms, sequence, is_resolved, is_awaited = announcement
        await self._market_names.load([condition_id], again=is_resolved and is_awaited)
        listing = self._market_names.find(condition_id)
        if not is_awaited or listing is None or (is_resolved and listing.payout is None):
            return
        text_of = market_resolved_text if is_resolved else new_market_text
        self._send(self._extended, sequence, text_of(listing, at_ms))

    def _tokens(self, request: MarketChannelRequest) -> list[str]:
        """Return the tokens that a message names, or refuse one that is malformed."""
        tokens = [*request.assets_ids, *request.asset_ids]
        for place, token_id in enumerate(tokens):
            if not is_token_id(token_id):
                raise MalformedMessage(f"asset {place} must be a decimal integer of 256 bits")
        for condition_id in request.markets:
            market = self._books.market_by_id.get(Bytes32(condition_id.lower()))
            if market is not None:
                tokens += (market.opened.token_yes, market.opened.token_no)
        return list(dict.fromkeys(tokens))

    def _subscribe(
        self, connection: Connection, tokens: Sequence[str], request: MarketChannelRequest
    ) -> None:
        held = self._tokens_by_connection[connection]
        new = [token_id for token_id in tokens if token_id not in held]
        if len(held) + len(new) > TOKENS_PER_CONNECTION_MAX:
            raise TooManySubscriptions("tokens", len(held) + len(new), TOKENS_PER_CONNECTION_MAX)
        connection.is_subscribed = True
        if request.heartbeat is not None:
            connection.has_heartbeat = request.heartbeat
        if request.custom_feature_enabled is True:
            self._extended[connection] = None
        elif request.custom_feature_enabled is False:
            self._extended.pop(connection, None)
        held.update(dict.fromkeys(new))
        if request.initial_dump:
            self.dumps.add(connection, new)
            return
        for token_id in new:
            self._begin(connection, token_id)

    def _begin(self, connection: Connection, token_id: str) -> None:
        """Begin to send the messages of a token."""
        self._connections_by_token.setdefault(token_id, {})[connection] = None

    def _unsubscribe(self, connection: Connection, tokens: Iterable[str]) -> None:
        held = self._tokens_by_connection[connection]
        for token_id in tokens:
            if token_id in held:
                del held[token_id]
                self._forget(token_id, connection)

    def _forget(self, token_id: str, connection: Connection) -> None:
        if self.dumps.drop(connection, token_id):
            return  # its messages have not begun
        connections = self._connections_by_token[token_id]
        del connections[connection]
        if not connections:
            del self._connections_by_token[token_id]

    def _publish_effect(self, effect: Effect, sequence: int) -> None:
        """Publish an effect of a command that is not about one order."""
        match effect:
            case BookChanged():
                self._publish_book(effect, effect.at_ms, sequence)
            case TickChanged():
                self._publish_tick(effect, sequence)
            case MarketRestored():
                condition_id = effect.market.condition_id
                top = self._books.market_by_id[condition_id].top
                self.top_by_market[condition_id] = top._replace(last_price_ticks=None)
            case MarketOpened(market=opened):
                self._announce(opened.condition_id, opened.at_ms, sequence, is_resolved=False)
            case MarketResolved():
                self._announce(effect.condition_id, effect.at_ms, sequence, is_resolved=True)
            case _:
                pass

    def _publish_trade(self, trade: Trade, sequence: int) -> None:
        market = self._books.market_by_id[trade.condition_id]
        connections = self._subscribers(market.token(is_yes=trade.is_yes))
        for fill in trade.fills if connections else ():
            self._send(connections, sequence, last_trade_text(market, trade, fill))

    def _publish_book(
        self, changed: BookChange, at_ms: int, sequence: int, *, is_traded: bool = False
    ) -> None:
        top = BookTop(changed.ticks_per_one, changed.best_bid_ticks, changed.best_ask_ticks)
        is_top_new = self.top_by_market.get(changed.condition_id) != top
        self.top_by_market[changed.condition_id] = top
        if not self._connections_by_token:
            return
        market = self._books.market_by_id[changed.condition_id]
        by_token = {
            token_id: self._subscribers(token_id)
            for token_id in (market.opened.token_yes, market.opened.token_no)
        }
        subscribers = {
            connection: None for connections in by_token.values() for connection in connections
        }
        if not subscribers:
            return
        self._send(subscribers, sequence, price_change_text(market, changed, at_ms))
        if is_traded:
            self._publish_whole_books(market, sequence)
        if is_top_new:
            for token_id, text in best_prices_texts(market, at_ms):
                extended = [one for one in by_token[token_id] if one in self._extended]
                self._send(extended, sequence, text)

    def _publish_tick(self, changed: TickChanged, sequence: int) -> None:
        top = self.top_by_market.get(changed.condition_id)
        if top is not None:
            self.top_by_market[changed.condition_id] = top.refined(changed.ticks_per_one)
        market = self._books.market_by_id[changed.condition_id]
        for token_id, text in tick_size_texts(market, changed):
            self._send(self._subscribers(token_id), sequence, text)

    def _publish_whole_books(self, market: PublicBook, sequence: int) -> None:
        for is_yes in (True, False):
            connections = self._subscribers(market.token(is_yes=is_yes))
            if connections:
                self._send(connections, sequence, book_text(market.book(is_yes=is_yes)))

    def _subscribers(self, token_id: str) -> dict[Connection, None]:
        return self._connections_by_token.get(token_id, {})

    def _send(self, connections: Collection[Connection], sequence: int, text: str) -> None:
        if connections:
            message = self._streams.message(sequence, text)
            for connection in list(connections):
                connection.send(message)

    def _announce(
        self, condition_id: Bytes32, at_ms: int, sequence: int, *, is_resolved: bool
    ) -> None:
        is_awaited = bool(self._extended)
        self.announcements.append(
            Announcement(condition_id, at_ms, sequence, is_resolved, is_awaited)
        )
