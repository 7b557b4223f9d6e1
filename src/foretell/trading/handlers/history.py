"""What an account did: its live orders, any order it ever placed, and its trades.

The tables are some milliseconds behind the engine. Who reads here waits until they hold what was
durable when the request came, so that a trade is found as soon as its order was answered.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from foretell.domain.errors.families import InvalidInput, MalformedHex
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.errors.order import InvalidOrderFilter, InvalidTradeFilter, OrderNotFound
from foretell.domain.portfolio.price_history import SECONDS_MAX
from foretell.domain.values.hexadecimal import Address, Bytes32, parse_address, parse_bytes32
from foretell.domain.values.tokens import is_token_id
from foretell.edge.query import Query
from foretell.store.trading.orders import OrderFilter, OrderRow, load_live_orders, load_order
from foretell.store.trading.trades import TradeFilter, load_trade_ids, load_wallet_trades
from foretell.trading.context import TradingContext
from foretell.trading.wire.orders import (
    OrderRecord,
    TradeRecord,
    order_record,
    trade_record,
    view_of_row,
)
from foretell.trading.wire.pages import Page, page, parse_cursor

ENTRIES_PER_PAGE: Final = 100


async def live_orders(context: TradingContext, address: Address, query: Query) -> Page[OrderRecord]:
    """Return a page of the orders of an address that are in the books, the newest first."""
    offset = parse_cursor(query.text("next_cursor"))
    wanted = OrderFilter(
        order_id=_word(query, "id", InvalidOrderFilter),
        condition_id=_word(query, "market", InvalidOrderFilter),
        token_id=_token(query, InvalidOrderFilter),
    )
    await context.shards.wait_for_tables()
    async with context.database.reading() as tx:
        rows = await load_live_orders(tx, address, wanted, offset, ENTRIES_PER_PAGE + 1)
        trade_ids = await load_trade_ids(tx, [row.order_id for row in rows])
    await context.market_names.load(row.condition_id for row in rows)
    return page([_order(context, row, trade_ids) for row in rows], offset, ENTRIES_PER_PAGE)


async def order(context: TradingContext, address: Address, order_id: str) -> OrderRecord:
    """Return any order that an address ever placed, or refuse."""
    await context.shards.wait_for_tables()
    async with context.database.reading() as tx:
        row = await load_order(tx, order_id.lower())
        if row is None or row.signed.signer != address:
            raise OrderNotFound(order_id)
        trade_ids = await load_trade_ids(tx, [row.order_id])
    await context.market_names.load([row.condition_id])
    return _order(context, row, trade_ids)


async def trades(context: TradingContext, address: Address, query: Query) -> Page[TradeRecord]:
    """Return a page of the trades that an address took part in, the newest first."""
    offset = parse_cursor(query.text("next_cursor"))
    wanted = _trade_filter(query)
    wallets = _wallets(context, address, query)
    await context.shards.wait_for_tables()
    async with context.database.reading() as tx:
        rows = await load_wallet_trades(tx, wallets, (), wanted, offset, ENTRIES_PER_PAGE + 1)
    await context.market_names.load(row.trade.condition_id for row in rows)
    own = context.wallets.of(address)
    fee_by_market = _fees(context, (row.trade.condition_id for row in rows))
    records = [
        trade_record(row, own, context.market_names.outcome, fee_by_market[row.trade.condition_id])
        for row in rows
    ]
    return page(records, offset, ENTRIES_PER_PAGE)


def _order(
    context: TradingContext, row: OrderRow, trade_ids: Mapping[str, Sequence[str]]
) -> OrderRecord:
    return order_record(
        view_of_row(row),
        row.status,
        row.matched_units,
        trade_ids.get(row.order_id, ()),
        context.market_names.outcome(row.condition_id, row.is_yes),
        row.close_reason,
    )


def _trade_filter(query: Query) -> TradeFilter:
    try:
        before_s = query.optional_integer("before", 0, SECONDS_MAX)
        after_s = query.optional_integer("after", 0, SECONDS_MAX)
    except MalformedQuery as error:
        raise InvalidTradeFilter(error.message) from error
    return TradeFilter(
        trade_id=query.text("id"),
        condition_id=_word(query, "market", InvalidTradeFilter),
        token_id=_token(query, InvalidTradeFilter),
        before_s=before_s,
        after_s=after_s,
        taker=_address(query, "taker"),
        maker=_address(query, "maker"),
    )


def _wallets(context: TradingContext, address: Address, query: Query) -> Sequence[Address]:
    """Return the caller's wallets, or the one that the query names if it is one of them."""
    wanted = _address(query, "maker_address")
    own = context.wallets.of(address)
    return own if wanted is None else [wallet for wallet in own if wallet == wanted]


def _fees(context: TradingContext, condition_ids: Iterable[Bytes32]) -> Mapping[Bytes32, int]:
    markets = context.books.market_by_id
    return {one: markets[one].rules.fee_rate_bps for one in condition_ids}


def _word(query: Query, name: str, refusal: type[InvalidInput]) -> Bytes32 | None:
    text = query.text(name)
    if text is None:
        return None
    try:
        return parse_bytes32(text, name)
    except MalformedHex as error:
        raise refusal(error.message) from error


def _address(query: Query, name: str) -> Address | None:
    text = query.text(name)
    if text is None:
        return None
    try:
        return parse_address(text, name)
    except MalformedHex as error:
        raise InvalidTradeFilter(error.message) from error


def _token(query: Query, refusal: type[InvalidInput]) -> str | None:
    text = query.text("asset_id")
    if text is not None and not is_token_id(text):
        raise refusal("asset_id must be a decimal integer")
    return text
