"""Public books: the durable levels, last prices and rules of the markets.

The engine's own books may hold orders that are not on disk yet. These are built from the commands
that the engine publishes once they are durable, so no reader sees an order that a crash could undo.
A requested book is encoded once and kept as bytes until it changes.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec

from foretell.domain.errors.exchange import UnknownMarket
from foretell.domain.exchange.book import price_in_yes
from foretell.domain.exchange.commands import OpenMarket
from foretell.domain.exchange.decision import BookChange, Canceled, Done, Placed
from foretell.domain.exchange.effects import (
    BookChanged,
    Effect,
    MarketOpened,
    MarketResolved,
    MarketRestored,
    TickChanged,
)
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import Trade, last_trade_of
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.amounts import decimal_text, price_text, ratio_text, tick_text
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.engine.protocol.requests import CommittedCommand

TICK_SCALES_KEPT_MAX: Final = 16

_HASH_KEY: Final = b'"hash":""'


class LevelRecord(msgspec.Struct, frozen=True):
    """A price level as clients read it."""

    price: str
    size: str


class BookRecord(msgspec.Struct, frozen=True):
    """A token's book as clients read it; its hash depends on the order of the fields."""

    market: Bytes32
    asset_id: AssetId
    timestamp: str
    hash: str
    bids: list[LevelRecord]
    asks: list[LevelRecord]
    min_order_size: str
    tick_size: str
    neg_risk: bool
    last_trade_price: str


class EncodedBook(NamedTuple):
    """A book's JSON, and the hash that it contains."""

    raw: bytes
    hash: str


@lru_cache(maxsize=TICK_SCALES_KEPT_MAX)
def price_texts(ticks_per_one: int) -> tuple[str, ...]:
    """Return every price of a tick size as a decimal number, by its ticks."""
    return tuple(price_text(ticks, ticks_per_one) for ticks in range(ticks_per_one + 1))


class PublicBook:
    """One market as readers see it: `opened` as it began, `rules` as they are now."""

    __slots__ = (
        "_asks",
        "_bids",
        "_encoded",
        "_last_side_of_yes",
        "changed_at_ms",
        "is_neg_risk",
        "is_open",
        "opened",
        "rules",
        "sequence",
        "top",
    )

    def __init__(self, opened: OpenMarket, *, is_neg_risk: bool, sequence: int) -> None:
        self.opened = opened
        self.rules = opened.rules
        self.is_neg_risk = is_neg_risk
        self.is_open = True
        self.sequence = sequence
        self.changed_at_ms = opened.at_ms
        self.top = BookTop(opened.rules.ticks_per_one)
        self._bids: dict[int, int] = {}
        self._asks: dict[int, int] = {}
        self._last_side_of_yes = Side.BUY
        self._encoded: dict[bool, EncodedBook] = {}

    @property
    def condition_id(self) -> Bytes32:
        """The condition that is traded."""
        return self.opened.condition_id

    @property
    def ticks_per_one(self) -> int:
        """The number of ticks in one unit of collateral."""
        return self.top.ticks_per_one

    def token(self, *, is_yes: bool) -> AssetId:
        """Return the token of one outcome."""
        return self.opened.token(is_yes=is_yes)

    def last_side(self, *, is_yes: bool) -> Side:
        """Return the last taker's side in a token: buying one outcome is selling the other."""
        return self._last_side_of_yes if is_yes else Side(1 - self._last_side_of_yes)

    def book(self, *, is_yes: bool) -> EncodedBook:
        """Return a token's book; the best price is the last of each side."""
        encoded = self._encoded.get(is_yes)
        if encoded is None:
            encoded = self._encoded[is_yes] = _encode(self._record(is_yes=is_yes))
        return encoded

    def restore(self, restored: MarketRestored) -> None:
        """Apply the state of a market from before this process began."""
        self.rules = restored.rules
        for change in restored.levels:
            levels = self._bids if change.is_bid else self._asks
            levels[change.level.price_ticks] = change.level.size_units
        self.top = BookTop(
            restored.rules.ticks_per_one,
            restored.best_bid_ticks,
            restored.best_ask_ticks,
            restored.last_price_ticks,
        )
        if restored.last_side is not None:
            self._last_side_of_yes = restored.last_side
        self.is_open = restored.is_open
        self.changed_at_ms = restored.changed_at_ms

    def change(self, changed: BookChange, at_ms: int, sequence: int) -> None:
        """Apply the levels that a command changed."""
        for is_bid, price_ticks, size_units in changed.level_changes:
            levels = self._bids if is_bid else self._asks
            if size_units:
                levels[price_ticks] = size_units
            else:
                levels.pop(price_ticks, None)
        ticks_per_one, _, _, last_price_ticks = self.top
        self.top = BookTop(
            ticks_per_one, changed.best_bid_ticks, changed.best_ask_ticks, last_price_ticks
        )
        self._mark_changed(at_ms, sequence)

    def trade(self, trade: Trade, sequence: int) -> None:
        """Apply the last price and side of a trade."""
        last = last_trade_of(trade)
        self.top = self.top._replace(last_price_ticks=last.price_ticks)
        self._last_side_of_yes = last.side
        self._mark_changed(trade.matched_at_ms, sequence)

    def change_tick(self, changed: TickChanged, sequence: int) -> None:
        """Express all prices in finer ticks; none of them changes."""
        factor = changed.factor
        self.rules = msgspec.structs.replace(self.rules, ticks_per_one=changed.ticks_per_one)
        self.top = self.top.refined(changed.ticks_per_one)
        self._bids = {ticks * factor: size_units for ticks, size_units in self._bids.items()}
        self._asks = {ticks * factor: size_units for ticks, size_units in self._asks.items()}
        self._mark_changed(changed.at_ms, sequence)

    def resolve(self, at_ms: int, sequence: int) -> None:
        """Close the market."""
        self.is_open = False
        self._mark_changed(at_ms, sequence)

    def _mark_changed(self, at_ms: int, sequence: int) -> None:
        self.changed_at_ms = at_ms
        self.sequence = sequence
        self._encoded.clear()

    def _record(self, *, is_yes: bool) -> BookRecord:
        last = self.top.seen_from(is_yes=is_yes).last_price_ticks
        prices = price_texts(self.ticks_per_one)
        bids, asks = (self._bids, self._asks) if is_yes else (self._asks, self._bids)
        return BookRecord(
            market=self.condition_id,
            asset_id=self.token(is_yes=is_yes),
            timestamp=str(self.changed_at_ms),
            hash="",
            bids=self._levels(bids, is_yes=is_yes, is_falling=not is_yes),
            asks=self._levels(asks, is_yes=is_yes, is_falling=is_yes),
            min_order_size=decimal_text(self.rules.size_units_min),
            tick_size=tick_text(self.ticks_per_one),
            neg_risk=self.is_neg_risk,
            last_trade_price="" if last is None else prices[last],
        )

    def _levels(
        self, levels: Mapping[int, int], *, is_yes: bool, is_falling: bool
    ) -> list[LevelRecord]:
        """Return levels, which are kept in prices of Yes, in the token's own prices."""
        prices = price_texts(self.ticks_per_one)
        return [
            LevelRecord(
                prices[price_in_yes(ticks, self.ticks_per_one, is_yes=is_yes)],
                decimal_text(levels[ticks]),
            )
            for ticks in sorted(levels, reverse=is_falling)
        ]


def _encode(record: BookRecord) -> EncodedBook:
    """Return the book with its hash: SHA-1 of its JSON with an empty hash."""
    raw = msgspec.json.encode(record)
    digest = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
    return EncodedBook(raw.replace(_HASH_KEY, f'"hash":"{digest}"'.encode(), 1), digest)


class TokenRef(NamedTuple):
    """A token: its market and its outcome."""

    market: PublicBook
    is_yes: bool


class PublicBooks:
    """The books of all markets that were ever opened."""

    def __init__(self, standard_exchange: Address) -> None:
        self._standard_exchange = standard_exchange
        self._token_by_id: dict[str, TokenRef] = {}
        self.market_by_id: dict[Bytes32, PublicBook] = {}
        self.sequence = 0

    def on_committed(self, committed: CommittedCommand) -> None:
        """Apply a command."""
        self.sequence = sequence = committed.sequence
        match committed.decision:
            case Placed() as placed:
                for trade in placed.trades:
                    self.market_by_id[trade.condition_id].trade(trade, sequence)
                if placed.changed is not None:
                    self._change(placed.changed, committed.at_ms, sequence)
            case Canceled() as canceled:
                for changed in canceled.changed:
                    self._change(changed, committed.at_ms, sequence)
            case Done() as done:
                for effect in done.effects:
                    self._apply(effect, sequence)

    def find(self, token_id: str) -> TokenRef:
        """Return a token of a market that was ever opened, or refuse."""
        token = self._token_by_id.get(token_id)
        if token is None:
            raise UnknownMarket(f"token {token_id[:80]}")
        return token

    def find_open(self, token_id: str) -> TokenRef:
        """Return a token that trades now, or refuse."""
        token = self.find(token_id)
        if not token.market.is_open:
            raise UnknownMarket(f"token {token_id}", has_ended=True)
        return token

    def _change(self, changed: BookChange, at_ms: int, sequence: int) -> None:
        self.market_by_id[changed.condition_id].change(changed, at_ms, sequence)

    def _apply(self, effect: Effect, sequence: int) -> None:
        """Apply an effect of a command that is not about one order."""
        match effect:
            case BookChanged():
                self._change(effect, effect.at_ms, sequence)
            case MarketOpened():
                self._open(effect.market, sequence)
            case MarketRestored():
                self._open(effect.market, sequence).restore(effect)
            case TickChanged():
                self.market_by_id[effect.condition_id].change_tick(effect, sequence)
            case MarketResolved():
                self.market_by_id[effect.condition_id].resolve(effect.at_ms, sequence)
            case _:
                pass

    def _open(self, opened: OpenMarket, sequence: int) -> PublicBook:
        is_neg_risk = opened.exchange != self._standard_exchange
        market = PublicBook(opened, is_neg_risk=is_neg_risk, sequence=sequence)
        self.market_by_id[opened.condition_id] = market
        self._token_by_id[opened.token_yes] = TokenRef(market, is_yes=True)
        self._token_by_id[opened.token_no] = TokenRef(market, is_yes=False)
        return market


PriceSide = Literal["taker", "book"]
"""Meaning of `side` in GET /price: the side of the taker, or the side of the book."""


def spread_text(top: BookTop) -> str:
    """Return the distance between the best prices; no bid counts as 0, no ask as 1."""
    bid, ask = bests(top)
    return ratio_text(ask - bid, top.ticks_per_one)


def bests(top: BookTop) -> tuple[int, int]:
    """Return the best prices in ticks; no bid counts as 0, no ask as 1."""
    bid = 0 if top.best_bid_ticks is None else top.best_bid_ticks
    ask = top.ticks_per_one if top.best_ask_ticks is None else top.best_ask_ticks
    return bid, ask
