"""What was done on the chain: trades of everybody, and everything that one wallet did.

A page may hold thousands of rows. They are read and become records in parts, so that whatever else
runs in the process is let in between.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from foretell.data import responses
from foretell.data.context import DataContext
from foretell.data.portfolio import DIRECTIONS, market_choice
from foretell.domain.errors.http import MalformedQuery, MissingParameter
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address, Bytes32, checksum_address
from foretell.edge.query import ID_MAX, Query
from foretell.edge.rendering import amount, blob_url, rounded
from foretell.store.database import Transaction
from foretell.store.index.activities import (
    ActivityFilter,
    ActivityKind,
    ActivityOrder,
    ActivityPage,
    ActivityRow,
    load_activities,
)
from foretell.store.queries.portfolio import (
    MarketCaption,
    load_conditions_of_events,
    load_market_captions,
)

TRADES_PER_PAGE_MAX: Final = 10_000
ACTIVITIES_PER_PAGE_MAX: Final = 500
OFFSET_MAX: Final = 10_000
ROWS_PER_PART: Final = 500

SIDES: Final = ("BUY", "SELL")
AMOUNT_KINDS: Final = ("CASH", "TOKENS")
ORDER_BY_WORD: Final = {
    "TIMESTAMP": ActivityOrder.TIME,
    "TOKENS": ActivityOrder.SIZE,
    "CASH": ActivityOrder.COST,
}
ACTIVITY_ORDERS: Final = tuple(ORDER_BY_WORD)
SERVED_TYPES: Final = tuple(kind.value for kind in ActivityKind)
OTHER_TYPES: Final = (
    "REWARD",
    "MAKER_REBATE",
    "DEPOSIT",
    "WITHDRAWAL",
    "YIELD",
)
"""Types that clients ask for and nothing here does."""

Listings = Mapping[Bytes32, tuple[AssetId, MarketCaption | None]]


async def list_trades(context: DataContext, query: Query) -> list[responses.TradeResponse]:
    """Return a page of trades, the newest first."""
    condition_ids, event_ids = market_choice(query)
    size_units_min, cost_units_min = _least_amounts(query)
    chosen = ActivityFilter(
        wallet=query.optional_wallet("user"),
        kinds=(ActivityKind.TRADE,),
        side=_side(query),
        start_s=query.optional_integer("start", 0, ID_MAX),
        end_s=query.optional_integer("end", 0, ID_MAX),
        takers_only=query.boolean("takerOnly", default=True),
        size_units_min=size_units_min,
        cost_units_min=cost_units_min,
    )
    page = ActivityPage(
        query.integer("limit", 100, 0, TRADES_PER_PAGE_MAX),
        query.integer("offset", 0, 0, OFFSET_MAX),
    )
    query.check_known()
    trades: list[responses.TradeResponse] = []
    async with context.database.reading() as tx:
        chosen = chosen._replace(condition_ids=await _conditions(tx, condition_ids, event_ids))
        for part in _parts(page):
            acts = await load_activities(tx, chosen, part)
            listings = await load_market_captions(tx, {act.condition_id for act in acts})
            trades += _Shown(acts, listings, context.blob_base_url).trades(acts)
            if len(acts) < part.limit:
                break
    return trades


async def list_activities(context: DataContext, query: Query) -> list[responses.ActivityResponse]:
    """Return a page of what a wallet did."""
    wallet = query.wallet("user")
    condition_ids, event_ids = market_choice(query)
    side = _side(query)
    chosen = ActivityFilter(
        wallet=wallet,
        kinds=_kinds(query),
        side=side,
        start_s=query.optional_integer("start", 0, ID_MAX),
        end_s=query.optional_integer("end", 0, ID_MAX),
    )
    page = ActivityPage(
        query.integer("limit", 100, 0, ACTIVITIES_PER_PAGE_MAX),
        query.integer("offset", 0, 0, OFFSET_MAX),
        ORDER_BY_WORD[query.choice("sortBy", "TIMESTAMP", ACTIVITY_ORDERS)],
        query.choice("sortDirection", "DESC", DIRECTIONS) == "DESC",
    )
    query.check_known()
    async with context.database.reading() as tx:
        chosen = chosen._replace(condition_ids=await _conditions(tx, condition_ids, event_ids))
        acts = await load_activities(tx, chosen, page)
        listings = await load_market_captions(tx, {act.condition_id for act in acts})
    return _Shown(acts, listings, context.blob_base_url).activities(acts)


async def _conditions(
    tx: Transaction, condition_ids: Sequence[Bytes32], event_ids: Sequence[int]
) -> Sequence[Bytes32] | None:
    """Return the conditions that are meant, or None for all of them."""
    if event_ids:
        return await load_conditions_of_events(tx, event_ids)
    return condition_ids or None


def _side(query: Query) -> Side | None:
    chosen = query.choice("side", "", SIDES)
    return Side[chosen] if chosen else None


def _least_amounts(query: Query) -> tuple[int | None, int | None]:
    """Return the least size and the least cost of a trade, of which a query names one at most."""
    kind, least_units = query.choice("filterType", "", AMOUNT_KINDS), query.units("filterAmount")
    if kind and least_units is None:
        raise MissingParameter("filterAmount")
    if not kind and least_units is not None:
        raise MissingParameter("filterType")
    return (least_units, None) if kind == "TOKENS" else (None, least_units)


def _kinds(query: Query) -> set[ActivityKind] | None:
    """Return the kinds of activity that are meant, or None for all of them."""
    named = [entry.upper() for entry in query.entries("type")]
    for name in named:
        if name not in SERVED_TYPES and name not in OTHER_TYPES:
            raise MalformedQuery("type", f"a list of {', '.join(SERVED_TYPES + OTHER_TYPES)}")
    return {ActivityKind(name) for name in named if name in SERVED_TYPES} if named else None


def _parts(page: ActivityPage) -> list[ActivityPage]:
    """Return the page cut into smaller ones."""
    return [
        page._replace(limit=min(ROWS_PER_PART, page.limit - start), offset=page.offset + start)
        for start in range(0, page.limit, ROWS_PER_PART)
    ]


class _Shown:
    """Makes records of acts; wallets and markets that come again are spelled out once."""

    def __init__(self, acts: Sequence[ActivityRow], listings: Listings, blob_base_url: str) -> None:
        self._wallets: dict[Address, str] = {
            wallet: checksum_address(wallet) for wallet in {act.wallet for act in acts}
        }
        self._listings = listings
        self._blob_base_url = blob_base_url

    def trades(self, acts: Sequence[ActivityRow]) -> list[responses.TradeResponse]:
        """Return the records of trades."""
        return [self._trade(act) for act in acts]

    def activities(self, acts: Sequence[ActivityRow]) -> list[responses.ActivityResponse]:
        """Return the records of whatever was done."""
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
            price=rounded(_price(act)),
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
            price=rounded(_price(act)) if is_trade else None,
            asset=act.token_id,
            side=None if act.side is None else act.side.name,
            outcome_index=index,
            **market,
        )

    def _market(self, act: ActivityRow) -> tuple[int | None, dict[str, str]]:
        """Return which outcome it is, where there is one, and what the market is listed as."""
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


def _price(act: ActivityRow) -> Fraction:
    return Fraction(act.cost_units, act.size_units) if act.size_units else Fraction(0)
