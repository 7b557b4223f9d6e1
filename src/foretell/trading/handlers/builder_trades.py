"""Trades of a builder's orders, and the rates of its fees."""

import msgspec

from foretell.domain.portfolio.builder_fees import NO_RATES
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.query import Query
from foretell.store.trading.builder_trades import (
    BuilderTradeFilter,
    load_builder_rates,
    load_builder_trades,
)
from foretell.store.trading.trade_causes import with_causes
from foretell.trading.context import TradingContext
from foretell.trading.handlers.history import ENTRIES_PER_PAGE
from foretell.trading.wire import parameters
from foretell.trading.wire.builder_trades import BuilderTradeRecord, builder_trade_record
from foretell.trading.wire.pages import Page, page


class BuilderFeesRecord(msgspec.Struct, frozen=True):
    """The rates of a builder's fees, in hundredths of a percent, in the words of both families of clients."""

    builder_maker_flat_fee_bps: int
    builder_taker_fee_share_bps: int
    builder_maker_fee_rate_bps: int
    builder_taker_fee_rate_bps: int


async def list_builder_trades(
    context: TradingContext, code: Bytes32, query: Query
) -> Page[BuilderTradeRecord]:
    """Return a page of the trades of a builder's orders, the newest first."""
    offset = query.read(parameters.CURSOR)
    wanted = BuilderTradeFilter(
        trade_id=query.read(parameters.TRADE_ID),
        condition_id=query.read(parameters.TRADE_MARKET),
        token_id=query.read(parameters.TRADE_TOKEN),
        wallet=query.read(parameters.BUILDER_WALLET),
        before_s=query.read(parameters.BEFORE_S),
        after_s=query.read(parameters.AFTER_S),
    )
    query.check_known()
    await context.shards.wait_for_tables()
    async with context.database.public_reading() as tx:
        rates = await load_builder_rates(tx, code)
        found = await load_builder_trades(tx, code, wanted, offset, ENTRIES_PER_PAGE + 1)
        rows = await with_causes(tx, [each.row for each in found])
    found = [each._replace(row=row) for each, row in zip(found, rows, strict=True)]
    await context.market_names.load(each.row.trade.condition_id for each in found)
    markets, outcome_of = context.books.market_by_id, context.market_names.outcome
    records = [
        builder_trade_record(
            each,
            code,
            outcome_of,
            markets[each.row.trade.condition_id].rules.fee_rate_bps,
            rates,
        )
        for each in found
    ]
    return page(records, offset, ENTRIES_PER_PAGE)


async def builder_fees(context: TradingContext, code: Bytes32) -> BuilderFeesRecord:
    """Return the rates that are in force for a builder, zeros if the operator gave it none."""
    now_ms = context.now_ms()
    async with context.database.public_reading() as tx:
        rates = [each for each in await load_builder_rates(tx, code) if each.from_ms <= now_ms]
    newest = rates[-1] if rates else NO_RATES
    return BuilderFeesRecord(
        builder_maker_flat_fee_bps=newest.maker_flat_bps,
        builder_taker_fee_share_bps=newest.taker_share_bps,
        builder_maker_fee_rate_bps=newest.maker_flat_bps,
        builder_taker_fee_rate_bps=0,
    )
