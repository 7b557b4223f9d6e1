"""Messages of the two channels, made from the engine's effects.

A message is encoded once for all its receivers. The members that differ between connections, such as
the number in the connection's own sequence, are put in front by `Connection`. So the functions here
return the text of an object without its opening brace.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from foretell.domain.exchange.book import price_in_yes
from foretell.domain.exchange.decision import BookChange
from foretell.domain.exchange.effects import TickChanged
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.matching import Fill
from foretell.domain.exchange.trade import Trade
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.amounts import decimal_text, ratio_text, tick_text
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.queries.market_listings import Listing
from foretell.trading.books.books import EncodedBook, PublicBook, bests, price_texts, spread_text
from foretell.trading.wire.markets import EventRecord
from foretell.trading.wire.orders import OrderRecord, TradeRecord


class PriceChange(msgspec.Struct, frozen=True):
    """The size of a level of a token's book; 0 when the level is empty."""

    asset_id: str
    price: str
    size: str
    side: str
    hash: str
    best_bid: str
    best_ask: str


class PriceChangeMessage(msgspec.Struct, frozen=True, tag="price_change", tag_field="event_type"):
    """Levels of a market's book changed."""

    market: Bytes32
    timestamp: str
    price_changes: Sequence[PriceChange]


class LastTradeMessage(msgspec.Struct, frozen=True, tag="last_trade_price", tag_field="event_type"):
    """A token was traded."""

    asset_id: str
    market: Bytes32
    price: str
    size: str
    side: str
    fee_rate_bps: str
    timestamp: str


class BestPricesMessage(msgspec.Struct, frozen=True, tag="best_bid_ask", tag_field="event_type"):
    """The best prices of a token changed."""

    asset_id: str
    market: Bytes32
    best_bid: str
    best_ask: str
    spread: str
    timestamp: str


class TickSizeMessage(msgspec.Struct, frozen=True, tag="tick_size_change", tag_field="event_type"):
    """The tick of a token's price became finer."""

    asset_id: str
    market: Bytes32
    old_tick_size: str
    new_tick_size: str
    timestamp: str


class NewMarketMessage(msgspec.Struct, frozen=True, tag="new_market", tag_field="event_type"):
    """A market was registered."""

    id: str
    question: str
    market: Bytes32
    condition_id: Bytes32
    slug: str
    description: str
    assets_ids: Sequence[str]
    clob_token_ids: Sequence[str]
    outcomes: Sequence[str]
    tags: Sequence[str]
    active: bool
    order_price_min_tick_size: str
    taker_base_fee: int
    fees_enabled: bool
    timestamp: str
    event_message: EventRecord


class MarketResolvedMessage(
    msgspec.Struct, frozen=True, tag="market_resolved", tag_field="event_type"
):
    """A market's payouts were reported on the chain; one that pays both halves has no winner."""

    id: str
    question: str
    market: Bytes32
    condition_id: Bytes32
    slug: str
    description: str
    assets_ids: Sequence[str]
    outcomes: Sequence[str]
    winning_asset_id: str
    winning_outcome: str
    timestamp: str
    event_message: EventRecord


class OrderHead(
    msgspec.Struct, frozen=True, omit_defaults=True, tag="order", tag_field="event_type"
):
    """An order was placed, filled or canceled; its fields follow.

    `close_cause` is why its wallet was barred, if that closed it.
    """

    type: str
    timestamp: str
    order_owner: str
    close_cause: str | None = None


class TradeHead(msgspec.Struct, frozen=True, tag="trade", tag_field="event_type"):
    """A trade was matched, or its settlement advanced; its fields follow."""

    timestamp: str
    matchtime: str
    trade_owner: str


class TokenText(NamedTuple):
    """The tail of a message, and the token whose subscribers receive it."""

    token_id: AssetId
    text: str


def tail(message: object) -> str:
    """Return an object's JSON without its opening brace."""
    return msgspec.json.encode(message).decode()[1:]


def book_text(book: EncodedBook) -> str:
    """Return a token's book as a message's tail."""
    return f'"event_type":"book",{book.raw[1:].decode()}'


def price_change_text(market: PublicBook, changed: BookChange, at_ms: int) -> str:
    """Return the levels that changed, each in the prices of both tokens."""
    scale = market.ticks_per_one
    prices = price_texts(scale)
    changes = [
        PriceChange(
            asset_id=market.token(is_yes=is_yes),
            price=prices[price_in_yes(price_ticks, scale, is_yes=is_yes)],
            size=decimal_text(size_units),
            side="BUY" if is_bid == is_yes else "SELL",
            hash=market.book(is_yes=is_yes).hash,
            best_bid=best_bid,
            best_ask=best_ask,
        )
        for is_yes, (best_bid, best_ask) in _both_bests(market.top)
        for is_bid, price_ticks, size_units in changed.level_changes
    ]
    return tail(PriceChangeMessage(market.condition_id, str(at_ms), changes))


def last_trade_text(market: PublicBook, trade: Trade, fill: Fill) -> str:
    """Return one fill as a last trade of the taker's token."""
    scale = market.ticks_per_one
    price_of_yes = price_in_yes(fill.price_ticks, scale, is_yes=fill.is_yes)
    return tail(
        LastTradeMessage(
            asset_id=market.token(is_yes=trade.is_yes),
            market=market.condition_id,
            price=price_texts(scale)[price_in_yes(price_of_yes, scale, is_yes=trade.is_yes)],
            size=decimal_text(fill.size_units),
            side=trade.side.name,
            fee_rate_bps=str(market.rules.fee_rate_bps),
            timestamp=str(trade.matched_at_ms),
        )
    )


def best_prices_texts(market: PublicBook, at_ms: int) -> Iterator[TokenText]:
    """Yield the best prices of both tokens."""
    for is_yes, (best_bid, best_ask) in _both_bests(market.top):
        token_id = market.token(is_yes=is_yes)
        message = BestPricesMessage(
            asset_id=token_id,
            market=market.condition_id,
            best_bid=best_bid,
            best_ask=best_ask,
            spread=spread_text(market.top),
            timestamp=str(at_ms),
        )
        yield TokenText(token_id, tail(message))


def tick_size_texts(market: PublicBook, changed: TickChanged) -> Iterator[TokenText]:
    """Yield the change of the tick, once for each token."""
    for is_yes in (True, False):
        token_id = market.token(is_yes=is_yes)
        message = TickSizeMessage(
            asset_id=token_id,
            market=market.condition_id,
            old_tick_size=tick_text(changed.old_ticks_per_one),
            new_tick_size=tick_text(changed.ticks_per_one),
            timestamp=str(changed.at_ms),
        )
        yield TokenText(token_id, tail(message))


def _both_bests(top: BookTop) -> list[tuple[bool, tuple[str, str]]]:
    prices = price_texts(top.ticks_per_one)
    both = []
    for is_yes in (True, False):
        bid, ask = bests(top.seen_from(is_yes=is_yes))
        both.append((is_yes, (prices[bid], prices[ask])))
    return both


def new_market_text(listing: Listing, at_ms: int) -> str:
    """Return the announcement of a market that may trade now."""
    return tail(
        NewMarketMessage(
            id=str(listing.market_id),
            question=listing.question,
            market=listing.condition_id,
            condition_id=listing.condition_id,
            slug=listing.slug,
            description=listing.rules,
            assets_ids=(listing.token_yes, listing.token_no),
            clob_token_ids=(listing.token_yes, listing.token_no),
            outcomes=(listing.outcome_yes, listing.outcome_no),
            tags=listing.tags,
            active=True,
            order_price_min_tick_size=ratio_text(1, listing.ticks_per_one),
            taker_base_fee=listing.fee_rate_bps,
            fees_enabled=listing.fee_rate_bps > 0,
            timestamp=str(at_ms),
            event_message=_event_record(listing),
        )
    )


def market_resolved_text(listing: Listing, at_ms: int) -> str:
    """Return the announcement of a market's winner; the market must have its payout."""
    assert listing.payout is not None
    yes, no = listing.payout.yes, listing.payout.no
    token_id, outcome = "", ""
    if yes != no:
        token_id = listing.token(is_yes=yes > no)
        outcome = listing.outcome(is_yes=yes > no)
    return tail(
        MarketResolvedMessage(
            id=str(listing.market_id),
            question=listing.question,
            market=listing.condition_id,
            condition_id=listing.condition_id,
            slug=listing.slug,
            description=listing.rules,
            assets_ids=(listing.token_yes, listing.token_no),
            outcomes=(listing.outcome_yes, listing.outcome_no),
            winning_asset_id=token_id,
            winning_outcome=outcome,
            timestamp=str(at_ms),
            event_message=_event_record(listing),
        )
    )


def _event_record(listing: Listing) -> EventRecord:
    return EventRecord(
        id=str(listing.event_id),
        ticker=listing.event_slug,
        slug=listing.event_slug,
        title=listing.event_title,
        description=listing.rules,
    )


def order_text(record: OrderRecord, kind: str, at_ms: int, cause: str | None = None) -> str:
    """Return what happened to an order: PLACEMENT, UPDATE or CANCELLATION."""
    head = OrderHead(kind, str(at_ms // 1000), record.owner, cause)
    return f"{tail(head)[:-1]},{tail(record)}"


def trade_text(record: TradeRecord, at_ms: int) -> str:
    """Return the present state of a trade."""
    head = TradeHead(str(at_ms // 1000), record.match_time, record.owner)
    return f"{tail(head)[:-1]},{tail(record)}"
