"""The portfolio of a wallet: open and closed positions, their value, and the volume traded."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from foretell.data.context import DataContext
from foretell.data.parameters import (
    DESCENDING,
    EVENT,
    LIMIT,
    MARKET,
    OFFSET,
    SKIPPED,
    SORT_DIRECTION,
    USER,
    read_markets,
)
from foretell.data.responses import PositionResponse, Traded, Value, Volume
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.portfolio.positions import Position
from foretell.domain.portfolio.prices import current_price, value_units
from foretell.domain.values.folding import folded
from foretell.domain.values.hexadecimal import checksum_address
from foretell.domain.values.instants import iso_time
from foretell.edge.parameters import boolean, choice, integer, text, units_or
from foretell.edge.query import Query
from foretell.edge.rendering import (
    amount,
    blob_url,
    decimal_string,
    percentage,
    rounded,
    rounded_ratio,
)
from foretell.store.index.trading_totals import load_trading_totals
from foretell.store.queries.exact_sums import load_wallet_volume
from foretell.store.queries.portfolio import (
    Holding,
    HoldingFilter,
    HoldingOrder,
    HoldingPage,
    load_holdings,
    load_holdings_sums,
    load_titled_conditions,
)

TITLE_CHARS_MAX: Final = 100
TITLED_MAX: Final = 10_000
"""Markets of one wallet that a part of a title may find: databases limit the values of a statement."""

POSITION_ORDERS: Final[Mapping[str, HoldingOrder]] = MappingProxyType(
    {
        "CURRENT": HoldingOrder.VALUE,
        "INITIAL": HoldingOrder.COST,
        "TOKENS": HoldingOrder.SIZE,
        "CASHPNL": HoldingOrder.GAIN,
        "PERCENTPNL": HoldingOrder.GAIN_RATE,
        "TITLE": HoldingOrder.TITLE,
        "RESOLVING": HoldingOrder.END,
        "PRICE": HoldingOrder.PRICE,
        "AVGPRICE": HoldingOrder.AVERAGE_PRICE,
    }
)
CLOSED_ORDERS: Final[Mapping[str, HoldingOrder]] = MappingProxyType(
    {
        "REALIZEDPNL": HoldingOrder.REALIZED_GAIN,
        "TITLE": HoldingOrder.TITLE,
        "PRICE": HoldingOrder.PRICE,
        "AVGPRICE": HoldingOrder.AVERAGE_PRICE,
        "TIMESTAMP": HoldingOrder.CHANGE,
    }
)

TITLE: Final = text(
    "title",
    f"part of the market's title, at most {TITLE_CHARS_MAX} characters",
    chars_max=TITLE_CHARS_MAX,
)
SIZE_THRESHOLD: Final = units_or("sizeThreshold", "least size", default=1)
REDEEMABLE: Final = boolean("redeemable", "only those of resolved markets", default=False)
MERGEABLE: Final = boolean("mergeable", "only those whose opposite is held too", default=False)
SORT: Final = choice("sortBy", "what rows are sorted by", tuple(POSITION_ORDERS), "TOKENS")
CLOSED_LIMIT: Final = integer("limit", 10, 0, 50, "rows of the page")
CLOSED_OFFSET: Final = integer("offset", 0, 0, 100_000, SKIPPED)
CLOSED_SORT: Final = choice(
    "sortBy", "what rows are sorted by", tuple(CLOSED_ORDERS), "REALIZEDPNL"
)

POSITION_PARAMETERS: Final = (
    USER,
    MARKET,
    EVENT,
    SIZE_THRESHOLD,
    REDEEMABLE,
    MERGEABLE,
    LIMIT,
    OFFSET,
    SORT,
    SORT_DIRECTION,
    TITLE,
)
CLOSED_PARAMETERS: Final = (
    USER,
    MARKET,
    EVENT,
    TITLE,
    CLOSED_LIMIT,
    CLOSED_OFFSET,
    CLOSED_SORT,
    SORT_DIRECTION,
)


async def list_positions(context: DataContext, query: Query) -> list[PositionResponse]:
    """Return a page of a wallet's open positions."""
    wallet = query.read(USER)
    condition_ids, event_ids = read_markets(query)
    size_units_min = query.read(SIZE_THRESHOLD)
    chosen = HoldingFilter(
        wallet=wallet,
        condition_ids=condition_ids,
        event_ids=event_ids,
        size_units_min=size_units_min,
        only_redeemable=query.read(REDEEMABLE),
        only_mergeable=query.read(MERGEABLE),
    )
    page = HoldingPage(
        limit=query.read(LIMIT),
        offset=query.read(OFFSET),
        order=POSITION_ORDERS[query.read(SORT)],
        is_descending=query.read(SORT_DIRECTION) == DESCENDING,
    )
    title = query.read(TITLE)
    query.check_known()
    return await _load(context, chosen, page, title)


async def list_closed_positions(context: DataContext, query: Query) -> list[PositionResponse]:
    """Return a page of a wallet's closed positions."""
    wallet = query.read(USER)
    condition_ids, event_ids = read_markets(query)
    chosen = HoldingFilter(
        wallet=wallet,
        is_closed=True,
        condition_ids=condition_ids,
        event_ids=event_ids,
    )
    page = HoldingPage(
        limit=query.read(CLOSED_LIMIT),
        offset=query.read(CLOSED_OFFSET),
        order=CLOSED_ORDERS[query.read(CLOSED_SORT)],
        is_descending=query.read(SORT_DIRECTION) == DESCENDING,
    )
    title = query.read(TITLE)
    query.check_known()
    return await _load(context, chosen, page, title)


async def list_values(context: DataContext, query: Query) -> list[Value]:
    """Return the value of a wallet's open positions, as the one entry of a list."""
    wallet, condition_ids = query.read(USER), query.read(MARKET)
    query.check_known()
    async with context.database.public_reading() as tx:
        worths = await load_holdings_sums(tx, wallet, condition_ids)
    total = sum(
        (
            worth.size_units * current_price(worth.top, worth.payout, is_yes=worth.is_yes)
            for worth in worths
        ),
        start=Fraction(0),
    )
    return [Value(user=checksum_address(wallet), value=amount(round(total)))]


async def count_traded(context: DataContext, query: Query) -> Traded:
    """Return the number of markets in which a wallet has traded."""
    wallet = query.read(USER)
    query.check_known()
    async with context.database.public_reading() as tx:
        totals = await load_trading_totals(tx, [wallet])
    return Traded(user=checksum_address(wallet), traded=sum(known.markets for known in totals))


async def sum_volume(context: DataContext, query: Query) -> Volume:
    """Return the collateral that a wallet has traded, as maker and as taker."""
    wallet = query.read(USER)
    query.check_known()
    async with context.database.public_reading() as tx:
        units = await load_wallet_volume(tx, wallet)
    return Volume(user=checksum_address(wallet), volume=decimal_string(amount(units)))


async def _load(
    context: DataContext, chosen: HoldingFilter, page: HoldingPage, title: str | None
) -> list[PositionResponse]:
    async with context.database.public_reading() as tx:
        if title is not None:
            found = await load_titled_conditions(tx, chosen, folded(title))
            if len(found) > TITLED_MAX:
                raise MalformedQuery("title", f"a part of at most {TITLED_MAX} titles")
            if not found:
                return []
            chosen = replace(chosen, condition_ids=found, event_ids=())
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
        avg_price=_average_price(held),
        initial_value=amount(held.cost_units),
        current_value=amount(current_units),
        cash_pnl=amount(current_units - held.cost_units),
        percent_pnl=percentage(current_units - held.cost_units, held.cost_units),
        total_bought=amount(held.bought_units),
        total_bought_usdc=amount(held.spent_units),
        realized_pnl=amount(held.realized_units),
        percent_realized_pnl=percentage(held.realized_units, held.spent_units),
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


def _average_price(held: Position) -> Decimal:
    """Return the average cost of a token: of those held now, or of all bought if none is held."""
    if held.size_units:
        return rounded_ratio(held.cost_units, held.size_units)
    return rounded_ratio(held.spent_units, held.bought_units) if held.bought_units else Decimal(0)
