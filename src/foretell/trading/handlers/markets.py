"""Markets: pages of them, single ones, and the last trades of one."""

from collections.abc import Callable
from typing import Final, TypeVar

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.order import InvalidMarketId, MarketNotFound
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import parse_bytes32
from foretell.edge.rendering import blob_url
from foretell.store.queries.market_listings import (
    Listing,
    load_market_listings,
    load_market_listings_by_id,
)
from foretell.store.trading.trades import load_market_trades
from foretell.trading.context import TradingContext
from foretell.trading.wire.markets import (
    CompactMarketRecord,
    MarketRecord,
    TapeRecord,
    TokenMarketRecord,
    compact_record,
    market_record,
    tape_record,
    token_market_record,
)
from foretell.trading.wire.pages import Page, page

MARKETS_PER_PAGE: Final = 1000
TAPE_TRADES: Final = 100

Record = TypeVar("Record")
RecordOf = Callable[[Listing, BookTop | None], Record]
"""Makes the record of a listing and of the best prices in its book, if it has one."""


async def market_page(
    context: TradingContext,
    offset: int,
    record_of: RecordOf[Record],
    *,
    is_sampling: bool,
) -> Page[Record]:
    """Return a page of markets, the oldest first; a sampling has only those that take orders."""
    async with context.database.public_reading() as tx:
        listings = await load_market_listings(
            tx, offset, MARKETS_PER_PAGE + 1, is_unresolved_only=is_sampling
        )
    current = [_with_current(context, listing) for listing in listings]
    records = [record_of(listing, _top(context, listing)) for listing in current]
    return page(records, offset, MARKETS_PER_PAGE)


async def market(context: TradingContext, condition_id: str) -> MarketRecord:
    """Return one market, or refuse."""
    listing = await _listing(context, condition_id)
    return market_record(listing, _top(context, listing))


async def compact_market(context: TradingContext, condition_id: str) -> CompactMarketRecord:
    """Return the parameters that a client needs to trade one market, or refuse."""
    return compact_record(await _listing(context, condition_id))


async def market_tape(context: TradingContext, condition_id: str) -> list[TapeRecord]:
    """Return the last trades of one market, the newest first, or refuse."""
    listing = await _listing(context, condition_id)
    await context.shards.wait_for_tables()
    async with context.database.public_reading() as tx:
        rows = await load_market_trades(tx, listing.condition_id, TAPE_TRADES)
    return [tape_record(row, listing) for row in rows]


async def market_of_token(context: TradingContext, token_id: str) -> TokenMarketRecord:
    """Return the market that a token belongs to, or refuse."""
    found = context.books.find(token_id)
    return token_market_record(await _listing(context, found.market.condition_id))


async def _listing(context: TradingContext, condition_id: str) -> Listing:
    try:
        wanted = parse_bytes32(condition_id)
    except MalformedHex as error:
        raise InvalidMarketId from error
    async with context.database.public_reading() as tx:
        listing = (await load_market_listings_by_id(tx, [wanted])).get(wanted)
    if listing is None:
        raise MarketNotFound(wanted)
    return _with_current(context, listing)


def _with_current(context: TradingContext, listing: Listing) -> Listing:
    """Return the listing with the URLs of its images, its current tick and its delay."""
    base_url, top = context.blob_base_url, _top(context, listing)
    return listing._replace(
        icon=blob_url(base_url, listing.icon),
        event_image=blob_url(base_url, listing.event_image),
        ticks_per_one=listing.ticks_per_one if top is None else top.ticks_per_one,
        seconds_delay=context.sports_delay_s if listing.is_sports else 0,
    )


def _top(context: TradingContext, listing: Listing) -> BookTop | None:
    known = context.books.market_by_id.get(listing.condition_id)
    return None if known is None else known.top
