"""Read and write the trades of settlement: several trades in one transaction of the database.

A second process by mistake may have taken a trade further since it was read. What the other one knows is stored then.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import structlog

from foretell.domain.exchange.settlement import RefusedOrder, Settlement
from foretell.domain.exchange.wallets.wallet_bars import Offence, bar_after, day_of
from foretell.settlement.context import SettlementContext
from foretell.settlement.match_call import Matched
from foretell.store.creation.markets import load_market
from foretell.store.database import Transaction
from foretell.store.outbox.refused_orders import record_refused_orders
from foretell.store.outbox.settlement_views import record_failures
from foretell.store.outbox.settlements import are_sent, are_unchanged, record_settlements
from foretell.store.outbox.wallet_bars import add_gas, load_bar, record_bar
from foretell.store.trading.orders import load_orders
from foretell.store.trading.trades import load_trades_by_id

BY_ANOTHER: Final = "trades are settled by another process too"
"""The event of the log when a second process has taken trades further."""

log = structlog.get_logger(__name__)


class Progress(NamedTuple):
    """The progress of a trade: as it was read, and as it is stored then.

    Without `is_sent` nothing is stored of a trade whose transaction is, for that may be on its way.
    """

    read: Settlement
    after: Settlement
    is_sent: bool = False


async def load_matched(
    context: SettlementContext, settlements: Sequence[Settlement]
) -> list[Matched]:
    """Return trades with their orders and exchanges, in the order of the settlements."""
    async with context.database.reading() as tx:
        rows = await load_trades_by_id(tx, [each.trade_id for each in settlements])
        row_by_id = {row.trade.trade_id: row for row in rows}
        ids = {row.trade.taker_order_id for row in rows}
        ids.update(fill.maker_order_id for row in rows for fill in row.trade.fills)
        order_by_id = await load_orders(tx, sorted(ids))
        exchange_by_condition = {}
        for condition_id in {row.trade.condition_id for row in rows}:
            market = await load_market(tx, condition_id)
            assert market is not None, "only markets of the table are traded"
            exchange_by_condition[condition_id] = market.exchange
    packed = {
        exchange: await context.call_forms.is_packed(context.operator, exchange)
        for exchange in sorted(set(exchange_by_condition.values()))
    }
    found = [row_by_id[each.trade_id] for each in settlements]
    exchanges = [exchange_by_condition[row.trade.condition_id] for row in found]
    return [
        Matched(row, order_by_id, exchange, packed[exchange])
        for row, exchange in zip(found, exchanges, strict=True)
    ]


async def record(
    context: SettlementContext,
    steps: Sequence[Progress],
    refused: Sequence[RefusedOrder] = (),
    offences: Sequence[Offence] = (),
    batch_gas: int = 0,
) -> bool:
    """Store the progress of trades, all of it or none, what the chain refuses, and who is to blame.

    Nothing is stored, and False returned, if one of them has changed since it was read.
    `batch_gas` is what matches of these trades that failed in a batch cost at most.
    """
    if not steps:
        return True
    read, settlements = [each.read for each in steps], [each.after for each in steps]
    unsent = [each.read for each in steps if not each.is_sent]
    failed = [each.trade_id for each in settlements if each.failure is not None]
    async with context.database.writing() as tx:
        if not await are_unchanged(tx, read) or await are_sent(tx, unsent):
            log.error(BY_ANOTHER, trade_id=read[0].trade_id, tx_id=read[0].tx_id)
            return False
        await record_refused_orders(tx, refused)
        await record_settlements(tx, settlements)
        if failed:
            await record_failures(tx, failed, day_of(context.now_ms()), batch_gas)
        for offence in offences:
            await _record_offence(context, tx, offence)
    return True


async def is_sent_by_now(context: SettlementContext, settlements: Sequence[Settlement]) -> bool:
    """Return whether a transaction that these trades name is stored: it may be on its way."""
    async with context.database.reading() as tx:
        return await are_sent(tx, settlements)


async def _record_offence(context: SettlementContext, tx: Transaction, offence: Offence) -> None:
    """Count what a wallet's failed settlement cost, and bar the wallet if that follows."""
    now_ms = context.now_ms()
    gas_of_day = await add_gas(tx, offence.wallet, day_of(now_ms), offence.gas)
    known = await load_bar(tx, offence.wallet)
    bar = bar_after(known, offence, gas_of_day, now_ms, context.bars)
    if bar is not None:
        await record_bar(tx, bar)
