"""The market channel: books, prices and the lives of markets, for whoever subscribes to tokens."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.effects import (
    BookChanged,
    MarketOpened,
    MarketResolved,
    MarketRestored,
    TickChanged,
    TradeMatched,
)
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.tokens import is_token_id
from foretell.engine.protocol.requests import CommittedCommand
from foretell.trading.books.books import PublicBook, PublicBooks
from foretell.trading.books.market_names import MarketNames
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

TOKENS_PER_CONNECTION_MAX: Final = 500
ANNOUNCEMENTS_WAITING_MAX: Final = 10_000


class MarketSubscription(msgspec.Struct):
    """What a client sends on the market channel."""

    type: str | None = None
    operation: str | None = None
    assets_ids: list[str] = []
    asset_ids: list[str] = []
    markets: list[str] = []
    initial_dump: bool = True
    custom_feature_enabled: bool | None = None


class Announcement(NamedTuple):
    """A market that began or ended, to be told once its names are read.

    `is_awaited` says whether anybody wanted to hear of it at the time.
    """

    condition_id: Bytes32
    at_ms: int
    sequence: int
    is_resolved: bool
    is_awaited: bool


_DECODER: Final = msgspec.json.Decoder(MarketSubscription)
_TYPES: Final = frozenset({None, "market"})
_OPERATIONS: Final = frozenset({None, "subscribe", "unsubscribe"})


class MarketChannel:
    """Who subscribed to which token, and what is told to them."""

    def __init__(
        self, books: PublicBooks, market_names: MarketNames, stamp: Callable[[int], str]
    ) -> None:
        self._books = books
        self._market_names = market_names
        self._stamp = stamp
        self._connections_by_token: dict[str, dict[Connection, None]] = {}
        self._tokens_by_connection: dict[Connection, dict[str, None]] = {}
        self._custom: dict[Connection, None] = {}
        self._top_by_market: dict[Bytes32, BookTop] = {}
        self.announcements: deque[Announcement] = deque(maxlen=ANNOUNCEMENTS_WAITING_MAX)

    def join(self, connection: Connection) -> None:
        """Begin to know a connection."""
        self._tokens_by_connection[connection] = {}

    def leave(self, connection: Connection) -> None:
        """Tell a connection nothing more."""
        for token_id in self._tokens_by_connection.pop(connection):
            self._forget(token_id, connection)
        self._custom.pop(connection, None)

    async def handle(self, connection: Connection, text: str) -> None:
        """Take a message of a client."""
        try:
            wanted = _DECODER.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            connection.refuse()
            return
        kind = None if wanted.type is None else wanted.type.lower()
        tokens = self._tokens(wanted)
        if kind not in _TYPES or wanted.operation not in _OPERATIONS or tokens is None:
            connection.refuse()
        elif wanted.operation == "unsubscribe":
            self._unsubscribe(connection, tokens)
        else:
            self._subscribe(connection, tokens, wanted)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Tell the subscribers what a command did."""
        traded: set[Bytes32] = set()
        for effect in committed.effects:
            match effect:
                case TradeMatched():
                    traded.add(effect.trade.condition_id)
                    self._tell_trade(effect, committed.sequence)
                case BookChanged():
                    self._tell_book(
                        effect, committed.sequence, is_traded=effect.condition_id in traded
                    )
                case TickChanged():
                    self._tell_tick(effect, committed.sequence)
                case MarketRestored():
                    condition_id = effect.market.condition_id
                    top = self._books.market_by_id[condition_id].top
                    self._top_by_market[condition_id] = top._replace(last_price_ticks=None)
                case MarketOpened():
                    opened = effect.market
                    self._announce(
                        opened.condition_id, opened.at_ms, committed.sequence, is_resolved=False
                    )
                case MarketResolved():
                    self._announce(
                        effect.condition_id, effect.at_ms, committed.sequence, is_resolved=True
                    )
                case _:
                    pass

    async def announce(self, announcement: Announcement) -> None:
        """Learn the names of a market, and tell those who want to hear of every market."""
        condition_id, at_ms, sequence, is_resolved, is_awaited = announcement
        await self._market_names.load([condition_id], again=is_resolved and is_awaited)
        listing = self._market_names.find(condition_id)
        if not is_awaited or listing is None or (is_resolved and listing.payout is None):
            return
        text_of = market_resolved_text if is_resolved else new_market_text
        self._say(self._custom, sequence, text_of(listing, at_ms))

    def _tokens(self, wanted: MarketSubscription) -> list[str] | None:
        """Return the tokens that a message names, or None when one is none."""
        tokens = [*wanted.assets_ids, *wanted.asset_ids]
        if not all(map(is_token_id, tokens)):
            return None
        for condition_id in wanted.markets:
            market = self._books.market_by_id.get(Bytes32(condition_id.lower()))
            if market is not None:
                tokens += (market.opened.token_yes, market.opened.token_no)
        return list(dict.fromkeys(tokens))

    def _subscribe(
        self, connection: Connection, tokens: Sequence[str], wanted: MarketSubscription
    ) -> None:
        held = self._tokens_by_connection[connection]
        new = [token_id for token_id in tokens if token_id not in held]
        if len(held) + len(new) > TOKENS_PER_CONNECTION_MAX:
            connection.refuse()
            return
        connection.is_subscribed = True
        if wanted.custom_feature_enabled is True:
            self._custom[connection] = None
        elif wanted.custom_feature_enabled is False:
            self._custom.pop(connection, None)
        for token_id in new:
            held[token_id] = None
            self._connections_by_token.setdefault(token_id, {})[connection] = None
        if wanted.initial_dump:
            connection.say_all(self._stamp(self._books.sequence), self._book_texts(new))

    def _unsubscribe(self, connection: Connection, tokens: Iterable[str]) -> None:
        held = self._tokens_by_connection[connection]
        for token_id in tokens:
            if token_id in held:
                del held[token_id]
                self._forget(token_id, connection)

    def _forget(self, token_id: str, connection: Connection) -> None:
        connections = self._connections_by_token[token_id]
        del connections[connection]
        if not connections:
            del self._connections_by_token[token_id]

    def _book_texts(self, tokens: Iterable[str]) -> list[str]:
        texts = []
        for token_id in tokens:
            try:
                market, is_yes = self._books.find_open(token_id)
            except ForetellError:
                continue
            texts.append(book_text(market.book(is_yes=is_yes)))
        return texts

    def _tell_trade(self, matched: TradeMatched, sequence: int) -> None:
        trade = matched.trade
        market = self._books.market_by_id[trade.condition_id]
        connections = self._subscribers(market.token(is_yes=trade.is_yes))
        for fill in trade.fills if connections else ():
            self._say(connections, sequence, last_trade_text(market, trade, fill))

    def _tell_book(self, changed: BookChanged, sequence: int, *, is_traded: bool) -> None:
        top = BookTop(changed.ticks_per_one, changed.best_bid_ticks, changed.best_ask_ticks)
        is_top_new = self._top_by_market.get(changed.condition_id) != top
        self._top_by_market[changed.condition_id] = top
        if not self._connections_by_token:
            return
        market = self._books.market_by_id[changed.condition_id]
        by_token = {
            token_id: self._subscribers(token_id)
            for token_id in (market.opened.token_yes, market.opened.token_no)
        }
        everyone = {
            connection: None for connections in by_token.values() for connection in connections
        }
        if not everyone:
            return
        self._say(everyone, sequence, price_change_text(market, changed))
        if is_traded:
            self._tell_whole_books(market, sequence)
        if is_top_new:
            for token_id, text in best_prices_texts(market, changed.at_ms):
                custom = [one for one in by_token[token_id] if one in self._custom]
                self._say(custom, sequence, text)

    def _tell_tick(self, changed: TickChanged, sequence: int) -> None:
        top = self._top_by_market.get(changed.condition_id)
        if top is not None:
            self._top_by_market[changed.condition_id] = top.refined(changed.ticks_per_one)
        market = self._books.market_by_id[changed.condition_id]
        for token_id, text in tick_size_texts(market, changed):
            self._say(self._subscribers(token_id), sequence, text)

    def _tell_whole_books(self, market: PublicBook, sequence: int) -> None:
        for is_yes in (True, False):
            connections = self._subscribers(market.token(is_yes=is_yes))
            if connections:
                self._say(connections, sequence, book_text(market.book(is_yes=is_yes)))

    def _subscribers(self, token_id: str) -> dict[Connection, None]:
        return self._connections_by_token.get(token_id, {})

    def _say(self, connections: Iterable[Connection], sequence: int, text: str) -> None:
        stamp = self._stamp(sequence)
        for connection in list(connections):
            connection.say(stamp, text)

    def _announce(
        self, condition_id: Bytes32, at_ms: int, sequence: int, *, is_resolved: bool
    ) -> None:
        is_awaited = bool(self._custom)
        self.announcements.append(
            Announcement(condition_id, at_ms, sequence, is_resolved, is_awaited)
        )
