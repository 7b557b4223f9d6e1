"""What a wallet has: open positions, closed ones, their worth, and how much it has traded."""

from fractions import Fraction
from typing import Final

from foretell.data.context import DataContext
from foretell.data.responses import PositionResponse, Traded, Value, Volume
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.portfolio.prices import current_price, percentage, value_units
from foretell.domain.values.hexadecimal import Bytes32, checksum_address
from foretell.edge.query import Query
from foretell.edge.rendering import amount, blob_url, decimal_string, iso_time, percent, rounded
from foretell.store.index.activities import load_trading_totals
from foretell.store.queries.portfolio import (
    Holding,
    HoldingFilter,
    HoldingOrder,
    HoldingPage,
    load_holdings,
    load_worths,
)

POSITIONS_PER_PAGE_MAX: Final = 500
POSITIONS_OFFSET_MAX: Final = 10_000
CLOSED_PER_PAGE_MAX: Final = 50
CLOSED_OFFSET_MAX: Final = 100_000
TITLE_CHARS_MAX: Final = 100
EVENT_IDS_MAX: Final = 100
SIZE_THRESHOLD_UNITS: Final = 1_000_000

DIRECTIONS: Final = ("ASC", "DESC")
POSITION_ORDERS: Final = (
    "CURRENT",
    "INITIAL",
    "TOKENS",
    "CASHPNL",
    "PERCENTPNL",
    "TITLE",
    "RESOLVING",
    "PRICE",
    "AVGPRICE",
)
CLOSED_ORDERS: Final = ("REALIZEDPNL", "TITLE", "PRICE", "AVGPRICE", "TIMESTAMP")
ORDER_BY_WORD: Final = {
    "CURRENT": HoldingOrder.VALUE,
    "INITIAL": HoldingOrder.COST,
    "TOKENS": HoldingOrder.SIZE,
    "CASHPNL": HoldingOrder.GAIN,
    "PERCENTPNL": HoldingOrder.GAIN_RATE,
    "TITLE": HoldingOrder.TITLE,
    "RESOLVING": HoldingOrder.END,
    "PRICE": HoldingOrder.PRICE,
    "AVGPRICE": HoldingOrder.AVERAGE_PRICE,
    "REALIZEDPNL": HoldingOrder.REALIZED_GAIN,
    "TIMESTAMP": HoldingOrder.CHANGE,
}


def market_choice(query: Query) -> tuple[list[Bytes32], list[int]]:
    """Return the conditions or the events that a query asks for, of which it names one kind."""
    condition_ids, event_ids = query.conditions("market"), query.ids("eventId")
    if condition_ids and event_ids:
        raise MalformedQuery("eventId", "absent where market is given")
    if len(event_ids) > EVENT_IDS_MAX:
        raise MalformedQuery("eventId", f"at most {EVENT_IDS_MAX} entries")
    return condition_ids, event_ids


async def list_positions(context: DataContext, query: Query) -> list[PositionResponse]:
    """Return a page of a wallet's open positions."""
    wallet = query.wallet("user")
    condition_ids, event_ids = market_choice(query)
    threshold_units = query.units("sizeThreshold")
    chosen = HoldingFilter(
        wallet=wallet,
        condition_ids=condition_ids,
        event_ids=event_ids,
        title=query.text("title", chars_max=TITLE_CHARS_MAX),
        size_units_min=SIZE_THRESHOLD_UNITS if threshold_units is None else threshold_units,
        only_redeemable=query.boolean("redeemable", default=False),
        only_mergeable=query.boolean("mergeable", default=False),
    )
    page = HoldingPage(
        limit=query.integer("limit", 100, 0, POSITIONS_PER_PAGE_MAX),
        offset=query.integer("offset", 0, 0, POSITIONS_OFFSET_MAX),
        order=ORDER_BY_WORD[query.choice("sortBy", "TOKENS", POSITION_ORDERS)],
        is_descending=query.choice("sortDirection", "DESC", DIRECTIONS) == "DESC",
    )
    query.check_known()
    return await _load(context, chosen, page)


async def list_closed_positions(context: DataContext, query: Query) -> list[PositionResponse]:
    """Return a page of the positions that a wallet has no more."""
    wallet = query.wallet("user")
    condition_ids, event_ids = market_choice(query)
    chosen = HoldingFilter(
        wallet=wallet,
        is_closed=True,
        condition_ids=condition_ids,
        event_ids=event_ids,
        title=query.text("title", chars_max=TITLE_CHARS_MAX),
    )
    page = HoldingPage(
        limit=query.integer("limit", 10, 0, CLOSED_PER_PAGE_MAX),
        offset=query.integer("offset", 0, 0, CLOSED_OFFSET_MAX),
        order=ORDER_BY_WORD[query.choice("sortBy", "REALIZEDPNL", CLOSED_ORDERS)],
        is_descending=query.choice("sortDirection", "DESC", DIRECTIONS) == "DESC",
    )
    query.check_known()
    return await _load(context, chosen, page)


async def list_values(context: DataContext, query: Query) -> list[Value]:
    """Return what a wallet's open positions are worth, as the one entry of a list."""
    wallet, condition_ids = query.wallet("user"), query.conditions("market")
    query.check_known()
    async with context.database.reading() as tx:
        worths = await load_worths(tx, wallet, condition_ids)
    total = sum(
        (
            worth.size_units * current_price(worth.top, worth.payout, is_yes=worth.is_yes)
            for worth in worths
        ),
        start=Fraction(0),
    )
    return [Value(user=checksum_address(wallet), value=amount(round(total)))]


async def count_traded(context: DataContext, query: Query) -> Traded:
    """Return in how many markets a wallet has traded."""
    wallet = query.wallet("user")
    query.check_known()
    async with context.database.reading() as tx:
        totals = await load_trading_totals(tx, wallet)
    return Traded(user=checksum_address(wallet), traded=totals.conditions)


async def sum_volume(context: DataContext, query: Query) -> Volume:
    """Return how much a wallet has traded, as maker and as taker."""
    wallet = query.wallet("user")
    query.check_known()
    async with context.database.reading() as tx:
        totals = await load_trading_totals(tx, wallet)
    return Volume(user=checksum_address(wallet), volume=decimal_string(amount(totals.volume_units)))


async def _load(
    context: DataContext, chosen: HoldingFilter, page: HoldingPage
) -> list[PositionResponse]:
    async with context.database.reading() as tx:
        holdings = await load_holdings(tx, chosen, page)
    wallet = checksum_address(chosen.wallet)
    return [_position(holding, wallet, context.blob_base_url) for holding in holdings]


def _position(holding: Holding, wallet: str, blob_base_url: str) -> PositionResponse:
    held, listing = holding.position, holding.listing
    price = current_price(holding.top, holding.payout, is_yes=holding.is_yes)
    current_units = value_units(held.size_units, price)
    return PositionResponse(
        proxy_wallet=wallet,
        asset=holding.token_id,
        condition_id=holding.condition_id,
        size=amount(held.size_units),
        avg_price=rounded(_average_price(holding)),
        initial_value=amount(held.cost_units),
        current_value=amount(current_units),
        cash_pnl=amount(current_units - held.cost_units),
        percent_pnl=percent(percentage(current_units - held.cost_units, held.cost_units)),
        total_bought=amount(held.bought_units),
        total_bought_usdc=amount(held.spent_units),
        realized_pnl=amount(held.realized_units),
        percent_realized_pnl=percent(percentage(held.realized_units, held.spent_units)),
        cur_price=rounded(price),
        redeemable=holding.payout is not None and held.size_units > 0,
        mergeable=holding.is_mergeable,
        title=listing.title if listing else "",
        slug=listing.slug if listing else "",
        icon=blob_url(blob_base_url, listing.icon) if listing else "",
        event_slug=listing.event_slug if listing else "",
        event_id=str(listing.event_id) if listing else "",
        outcome=listing.outcome(is_yes=holding.is_yes) if listing else "",
        outcome_index=0 if holding.is_yes else 1,
        opposite_outcome=listing.outcome(is_yes=not holding.is_yes) if listing else "",
        opposite_asset=holding.opposite_token_id,
        end_date=iso_time(listing.ends_at_ms) if listing else "",
        negative_risk=listing.is_neg_risk if listing else False,
        timestamp=holding.changed_at_s,
    )


def _average_price(holding: Holding) -> Fraction:
    """Return what a token cost on the average: of those held now, or of all that were bought."""
    held = holding.position
    if held.size_units:
        return Fraction(held.cost_units, held.size_units)
    return Fraction(held.spent_units, held.bought_units) if held.bought_units else Fraction(0)
