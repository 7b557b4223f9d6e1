"""An account's live orders, single orders, trades and balances.

Orders and trades are read from tables that are some milliseconds behind the engine. A reader waits
until they hold everything that was durable when its request came, so that a trade is found as soon
as its order was answered.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from foretell.domain.errors.order import OrderNotFound
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.query import Query
from foretell.engine.protocol.requests import AccountRequest
from foretell.store.public_reads.places import ReadKind, client_name
from foretell.store.trading.orders import OrderFilter, OrderRow, load_live_orders, load_order
from foretell.store.trading.trade_causes import with_causes
from foretell.store.trading.trades import load_trade_ids
from foretell.store.trading.wallet_trades import TradeFilter, load_wallet_trades
from foretell.trading.accounts.accounts import BalanceRecord, balance_record
from foretell.trading.books.books import TokenRef
from foretell.trading.context import TradingContext
from foretell.trading.wire import parameters
from foretell.trading.wire.orders import (
    OrderRecord,
    TradeRecord,
    order_record,
    trade_record,
    view_of_row,
)
from foretell.trading.wire.pages import Page, page

ENTRIES_PER_PAGE: Final = 100


async def live_orders(context: TradingContext, address: Address, query: Query) -> Page[OrderRecord]:
    """Return a page of the orders of an address that are in the books, the newest first."""
    offset = query.read(parameters.CURSOR)
    wanted = OrderFilter(
        order_id=query.read(parameters.ORDER_ID),
        condition_id=query.read(parameters.ORDER_MARKET),
        token_id=query.read(parameters.ORDER_TOKEN),
    )
    await context.shards.wait_for_tables()
    async with context.database.public_reading(ReadKind.OWN) as tx:
        rows = await load_live_orders(tx, address, wanted, offset, ENTRIES_PER_PAGE + 1)
        trade_ids = await load_trade_ids(tx, [row.order_id for row in rows])
    await context.market_names.load(row.condition_id for row in rows)
    return page([render_order(context, row, trade_ids) for row in rows], offset, ENTRIES_PER_PAGE)


async def order(context: TradingContext, address: Address, order_id: str) -> OrderRecord:
    """Return any order that an address ever placed, or refuse."""
    await context.shards.wait_for_tables()
    async with context.database.public_reading(ReadKind.OWN) as tx:
        row = await load_order(tx, order_id.lower())
        if row is None or row.signed.signer != address:
            raise OrderNotFound(order_id)
        trade_ids = await load_trade_ids(tx, [row.order_id])
    await context.market_names.load([row.condition_id])
    return render_order(context, row, trade_ids)


async def trades(context: TradingContext, address: Address, query: Query) -> Page[TradeRecord]:
    """Return a page of the trades that an address took part in, the newest first."""
    offset = query.read(parameters.CURSOR)
    wanted = _trade_filter(query)
    wallets = _wallets(context, address, query)
    await context.shards.wait_for_tables()
    async with context.database.public_reading(ReadKind.OWN) as tx:
        rows = await load_wallet_trades(tx, wallets, wanted, offset, ENTRIES_PER_PAGE + 1)
        rows = await with_causes(tx, rows)
    await context.market_names.load(row.trade.condition_id for row in rows)
    own = context.wallets.of(address)
    fee_by_market = _fees(context, (row.trade.condition_id for row in rows))
    records = [
        trade_record(row, own, context.market_names.outcome, fee_by_market[row.trade.condition_id])
        for row in rows
    ]
    return page(records, offset, ENTRIES_PER_PAGE)


async def balance(
    context: TradingContext, wallet: Address, token: TokenRef | None, *, account: Address
) -> BalanceRecord:
    """Return the balance of a wallet of an account: of a token, or of collateral when none is named."""
    if context.wallet_readings is not None:
        await context.wallet_readings.wait(wallet, client_name.get(), account=account)
    asset = COLLATERAL if token is None else token.market.token(is_yes=token.is_yes)
    request = AccountRequest(wallet, asset, context.exchanges)
    condition_id = None if token is None else token.market.condition_id
    reply = await context.shards.account(request, condition_id)
    exchange = context.deployment.exchange if token is None else token.market.opened.exchange
    return balance_record(wallet, reply, context.deployment, exchange)


def render_order(
    context: TradingContext, row: OrderRow, trade_ids: Mapping[str, Sequence[str]]
) -> OrderRecord:
    """Return an order as clients read it; the names of its market must be loaded."""
    return order_record(
        view_of_row(row),
        row.status,
        row.matched_units,
        trade_ids.get(row.order_id, ()),
        context.market_names.outcome(row.condition_id, row.is_yes),
        row.close_reason,
    )


def _trade_filter(query: Query) -> TradeFilter:
    return TradeFilter(
        before_s=query.read(parameters.BEFORE_S),
        after_s=query.read(parameters.AFTER_S),
        trade_id=query.read(parameters.TRADE_ID),
        condition_id=query.read(parameters.TRADE_MARKET),
        token_id=query.read(parameters.TRADE_TOKEN),
        taker=query.read(parameters.TAKER),
        maker=query.read(parameters.MAKER),
    )


def _wallets(context: TradingContext, address: Address, query: Query) -> Sequence[Address]:
    """Return the caller's wallets, or the one that the query names if it is one of them."""
    wanted = query.read(parameters.MAKER_ADDRESS)
    own = context.wallets.of(address)
    return own if wanted is None else [wallet for wallet in own if wallet == wanted]


def _fees(context: TradingContext, condition_ids: Iterable[Bytes32]) -> Mapping[Bytes32, int]:
    markets = context.books.market_by_id
    return {one: markets[one].rules.fee_rate_bps for one in condition_ids}
