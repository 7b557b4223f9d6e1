"""Markets: pages of them, single ones, and the last trades of one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.order import InvalidMarketId, MarketNotFound
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import parse_bytes32
from foretell.edge.codec import encode_json
from foretell.edge.read_answers import TaggedContent, TaggedParts
from foretell.edge.rendering import blob_url
from foretell.store.queries.market_listings import (
    Listing,
    load_market_id_at,
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
from foretell.trading.wire.pages import PAGE_HEAD, page_tail

MARKETS_PER_PAGE: Final = 1000
TAPE_TRADES: Final = 100

RecordOf = Callable[[Listing, BookTop | None], object]
"""Makes the record of a listing and of the best prices in its book, if it has one."""


async def market_page(
    context: TradingContext, offset: int, record_of: RecordOf, *, is_sampling: bool
) -> TaggedContent:
    """Return a page of markets, the oldest first; a sampling has only those that take orders."""
    render = partial(_rendered_page, context, offset, record_of, is_sampling=is_sampling)
    return await context.market_pages.get((record_of, is_sampling, offset), render)


async def _rendered_page(
    context: TradingContext, offset: int, record_of: RecordOf, *, is_sampling: bool
) -> TaggedContent:
    """Return a page whose parts are of one instant of the tables, while the loop serves others between them."""
    page, count = TaggedParts(PAGE_HEAD), 0
    shared = context.loop_share.begin()
    async with context.database.public_reading() as tx:
        next_id = await load_market_id_at(tx, offset, is_unresolved_only=is_sampling)
        while next_id is not None and count < MARKETS_PER_PAGE:
            size = min(context.market_pages.limits.markets_per_part, MARKETS_PER_PAGE - count)
            listings = await load_market_listings(
                tx, next_id, size + 1, is_unresolved_only=is_sampling
            )
            shown = listings[:size]
            encode = partial(_encoded, context, shown, record_of)
            encoded = await shared.run(encode)
            page.add(b"," + encoded if count else encoded)
            count += len(shown)
            next_id = listings[size].market_id if len(listings) > size else None
    page.add(page_tail(offset, MARKETS_PER_PAGE, count, is_last=next_id is None))
    return page.end()


def _encoded(context: TradingContext, listings: Sequence[Listing], record_of: RecordOf) -> bytes:
    """Return the records of listings as they stand between the brackets of a list."""
    current = (_with_current(context, listing) for listing in listings)
    return encode_json([record_of(each, _top(context, each)) for each in current])[1:-1]


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
