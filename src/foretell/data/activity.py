"""Activity on the chain: the trades of all wallets, and all activities of one wallet.

A page may hold thousands of rows. They are read and rendered in parts, so that the process serves
other requests in between.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from foretell.data import responses
from foretell.data.context import DataContext
from foretell.data.parameters import (
    ANY_USER,
    DESCENDING,
    END,
    EVENT,
    LIMIT,
    MARKET,
    OFFSET,
    SIDE,
    SORT_DIRECTION,
    START,
    USER,
    read_markets,
)
from foretell.data.profiles import show_profiles
from foretell.domain.errors.http import MalformedQuery, MissingParameter
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address, Bytes32, checksum_address
from foretell.edge.parameters import boolean, choice, entries, integer, optional_choice, units
from foretell.edge.query import Query
from foretell.edge.rendering import amount, blob_url, rounded_ratio
from foretell.store.database import Transaction
from foretell.store.index.activities import (
    ActivityFilter,
    ActivityKind,
    ActivityOrder,
    ActivityPage,
    ActivityRow,
)
from foretell.store.index.activity_pages import load_activities
from foretell.store.queries.captions import (
    MarketCaption,
    load_conditions_of_events,
    load_market_captions,
)

ROWS_PER_PART: Final = 500
TOKENS: Final = "TOKENS"

ORDERS: Final[Mapping[str, ActivityOrder]] = MappingProxyType(
    {
        "TIMESTAMP": ActivityOrder.TIME,
        "TOKENS": ActivityOrder.SIZE,
        "CASH": ActivityOrder.COST,
    }
)
SERVED_TYPES: Final = tuple(kind.value for kind in ActivityKind)
OTHER_TYPES: Final = (
    "REWARD",
    "MAKER_REBATE",
    "DEPOSIT",
    "WITHDRAWAL",
    "YIELD",
)
"""Types that clients ask for and that no row has."""

TRADES_LIMIT: Final = integer("limit", 100, 0, 10_000, "rows of the page")
TAKER_ONLY: Final = boolean("takerOnly", "one row for each match, the taker's", default=True)
FILTER_TYPE: Final = optional_choice("filterType", "what filterAmount counts", ("CASH", TOKENS))
FILTER_AMOUNT: Final = units("filterAmount", "least amount, with filterType")
TYPE: Final = entries("type", f"some of {', '.join(SERVED_TYPES + OTHER_TYPES)}")
SORT: Final = choice("sortBy", "what rows are sorted by", tuple(ORDERS), "TIMESTAMP")

TRADE_PARAMETERS: Final = (
    TRADES_LIMIT,
    OFFSET,
    TAKER_ONLY,
    FILTER_TYPE,
    FILTER_AMOUNT,
    MARKET,
    EVENT,
    ANY_USER,
    SIDE,
    START,
    END,
)
ACTIVITY_PARAMETERS: Final = (
    USER,
    LIMIT,
    OFFSET,
    MARKET,
    EVENT,
    TYPE,
    START,
    END,
    SORT,
    SORT_DIRECTION,
    SIDE,
)

Listings = Mapping[Bytes32, tuple[AssetId, MarketCaption | None]]


async def list_trades(context: DataContext, query: Query) -> list[responses.TradeResponse]:
    """Return a page of trades, the newest first."""
    condition_ids, event_ids = read_markets(query)
    size_units_min, cost_units_min = _read_least_amounts(query)
    chosen = ActivityFilter(
        wallet=query.read(ANY_USER),
        kinds=(ActivityKind.TRADE,),
        side=_read_side(query),
        start_s=query.read(START),
        end_s=query.read(END),
        takers_only=query.read(TAKER_ONLY),
        size_units_min=size_units_min,
        cost_units_min=cost_units_min,
    )
    page = ActivityPage(query.read(TRADES_LIMIT), query.read(OFFSET))
    query.check_known()
    trades: list[responses.TradeResponse] = []
    async with context.database.public_reading() as tx:
        chosen = chosen._replace(condition_ids=await _conditions(tx, condition_ids, event_ids))
        for part in _parts(page):
            acts = await load_activities(tx, chosen, part)
            listings = await load_market_captions(tx, {act.condition_id for act in acts})
            rendered = _Renderer(acts, listings, context.blob_base_url).trades(acts)
            trades += await show_profiles(tx, rendered)
            if len(acts) < part.limit:
                break
    return trades


async def list_activities(context: DataContext, query: Query) -> list[responses.ActivityResponse]:
    """Return a page of a wallet's activities."""
    wallet = query.read(USER)
    condition_ids, event_ids = read_markets(query)
    side = _read_side(query)
    chosen = ActivityFilter(
        wallet=wallet,
        kinds=_read_kinds(query),
        side=side,
        start_s=query.read(START),
        end_s=query.read(END),
    )
    page = ActivityPage(
        query.read(LIMIT),
        query.read(OFFSET),
        ORDERS[query.read(SORT)],
        query.read(SORT_DIRECTION) == DESCENDING,
    )
    query.check_known()
    async with context.database.public_reading() as tx:
        chosen = chosen._replace(condition_ids=await _conditions(tx, condition_ids, event_ids))
        acts = await load_activities(tx, chosen, page)
        listings = await load_market_captions(tx, {act.condition_id for act in acts})
        rendered = _Renderer(acts, listings, context.blob_base_url).activities(acts)
        return await show_profiles(tx, rendered)


async def _conditions(
    tx: Transaction, condition_ids: Sequence[Bytes32], event_ids: Sequence[int]
) -> Sequence[Bytes32] | None:
    """Return the conditions to filter by, or None for all of them."""
    if event_ids:
        return await load_conditions_of_events(tx, event_ids)
    return condition_ids or None


def _read_side(query: Query) -> Side | None:
    chosen = query.read(SIDE)
    return None if chosen is None else Side[chosen]


def _read_least_amounts(query: Query) -> tuple[int | None, int | None]:
    """Return the least size and the least cost of a trade; a query names at most one of them."""
    kind, least_units = query.read(FILTER_TYPE), query.read(FILTER_AMOUNT)
    if kind is not None and least_units is None:
        raise MissingParameter("filterAmount")
    if kind is None and least_units is not None:
        raise MissingParameter("filterType")
    return (least_units, None) if kind == TOKENS else (None, least_units)


def _read_kinds(query: Query) -> set[ActivityKind] | None:
    """Return the kinds of activity to filter by, or None for all of them."""
    named = [entry.upper() for entry in query.read(TYPE)]
    for name in named:
        if name not in SERVED_TYPES and name not in OTHER_TYPES:
            raise MalformedQuery("type", f"a list of {', '.join(SERVED_TYPES + OTHER_TYPES)}")
    return {ActivityKind(name) for name in named if name in SERVED_TYPES} if named else None


def _parts(page: ActivityPage) -> list[ActivityPage]:
    """Return the page, divided into smaller ones."""
    return [
        page._replace(limit=min(ROWS_PER_PART, page.limit - start), offset=page.offset + start)
        for start in range(0, page.limit, ROWS_PER_PART)
    ]


class _Renderer:
    """Renders rows as responses; a wallet's checksum is computed once for all its rows."""

    def __init__(self, acts: Sequence[ActivityRow], listings: Listings, blob_base_url: str) -> None:
        self._wallets: dict[Address, str] = {
            wallet: checksum_address(wallet) for wallet in {act.wallet for act in acts}
        }
        self._listings = listings
        self._blob_base_url = blob_base_url

    def trades(self, acts: Sequence[ActivityRow]) -> list[responses.TradeResponse]:
        """Return the answers for trades."""
        return [self._trade(act) for act in acts]

    def activities(self, acts: Sequence[ActivityRow]) -> list[responses.ActivityResponse]:
        """Return the answers for activities of any kind."""
        return [self._activity(act) for act in acts]

    def _trade(self, act: ActivityRow) -> responses.TradeResponse:
        assert act.side is not None
        assert act.token_id is not None
        index, market = self._market(act)
        return responses.TradeResponse(
            proxy_wallet=self._wallets[act.wallet],
            side=act.side.name,
            asset=act.token_id,
            condition_id=act.condition_id,
            size=amount(act.size_units),
            price=_price(act),
            usdc_size=amount(act.cost_units),
            timestamp=act.timestamp_s,
            transaction_hash=act.tx_hash,
            outcome_index=index or 0,
            **market,
        )

    def _activity(self, act: ActivityRow) -> responses.ActivityResponse:
        index, market = self._market(act)
        is_trade = act.kind is ActivityKind.TRADE
        return responses.ActivityResponse(
            proxy_wallet=self._wallets[act.wallet],
            timestamp=act.timestamp_s,
            condition_id=act.condition_id,
            type=act.kind.value,
            size=amount(act.size_units),
            usdc_size=amount(act.cost_units),
            transaction_hash=act.tx_hash,
            price=_price(act) if is_trade else None,
            asset=act.token_id,
            side=None if act.side is None else act.side.name,
            outcome_index=index,
            **market,
        )

    def _market(self, act: ActivityRow) -> tuple[int | None, dict[str, str]]:
        """Return the index of the outcome, if the activity has one, and the market's caption."""
        token_yes, listing = self._listings[act.condition_id]
        is_yes, has_outcome = act.token_id == token_yes, act.token_id is not None
        index = (0 if is_yes else 1) if has_outcome else None
        if listing is None:
            return index, dict.fromkeys(("title", "slug", "icon", "event_slug", "outcome"), "")
        return index, {
            "title": listing.title,
            "slug": listing.slug,
            "icon": blob_url(self._blob_base_url, listing.icon),
            "event_slug": listing.event_slug,
            "outcome": listing.outcome(is_yes=is_yes) if has_outcome else "",
        }


def _price(act: ActivityRow) -> Decimal:
    return rounded_ratio(act.cost_units, act.size_units) if act.size_units else Decimal(0)
