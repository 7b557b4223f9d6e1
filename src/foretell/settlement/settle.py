"""Send matched trades to the chain: several at once, each exactly once.

A trade's row names the transaction that carries it, and is stored before that is sent. After a
crash the same transaction is found or sent, never a second one; the next one is named only when the
outcome of the last is final and settled nothing.

Trades may need each other: tokens bought in one are sold in the next. They get account nonces in
their order, so the chain has them in that order. A node that ignores pending transactions reports
that the later one reverts; no try is counted while an earlier trade of its wallets may pass. Nor is
one counted while the exchange is closed to the operator: the pass ends, and the trades stay named.

Trades that fail hold up others little: half of the places are for new trades of wallets without one.
"""

from collections.abc import Sequence

import structlog

from foretell.chain.artifacts import reason_of
from foretell.domain.errors.chain import ExchangeClosed, ExecutionReverted, RpcRefused
from foretell.domain.evm.transaction import OutgoingTx, SentTx, TxStatus
from foretell.domain.exchange.settlement import (
    EarlierTrades,
    FailureReport,
    RefusedOrder,
    Settlement,
    failed_settlement,
    named_settlement,
    refused_settlement,
    settlement_after_mined_revert,
    settlement_after_revert,
    waiting_settlement,
)
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.context import SettlementContext
from foretell.settlement.exchange_status import CLOSED_REASONS, check_exchange
from foretell.settlement.failing_orders import find_failing_orders
from foretell.settlement.match_call import Matched, match_call
from foretell.settlement.mined_reverts import judge_mined_revert
from foretell.store.creation.markets import load_market
from foretell.store.outbox.refused_orders import record_refused_orders
from foretell.store.outbox.settlements import (
    has_unsettled,
    load_due_settlements,
    load_earlier,
    load_open_settlements,
    record_settlement,
)
from foretell.store.outbox.transactions import SETTLEMENT, load_txs
from foretell.store.trading.orders import load_orders
from foretell.store.trading.trades import load_trades_by_id

_Closed = dict[Address, ExchangeClosed]
"""The exchanges that one pass found closed, with the refusal of each."""

log = structlog.get_logger(__name__)


async def run_once(context: SettlementContext) -> bool:
    """Advance every trade as far as it goes now; return whether one is not on the chain yet.

    Raises ExchangeClosed when an exchange settles none of its trades. No try is counted for any of
    them, and the trades of another exchange have advanced.
    """
    closed: _Closed = {}
    room = context.options.in_flight_max - await _follow(context, closed)
    async with context.database.reading() as tx:
        due = await load_due_settlements(tx, context.now_ms(), max(0, room), closed)
    for settlement in due:
        await _start(context, settlement, closed)
    for refusal in closed.values():
        raise refusal
    async with context.database.reading() as tx:
        return await has_unsettled(tx)


async def _follow(context: SettlementContext, closed: _Closed) -> int:
    """Advance the trades that have a transaction; return how many of them are on their way."""
    async with context.database.reading() as tx:
        begun = await load_open_settlements(tx)
        carrying_txs = await load_txs(tx, SETTLEMENT, [each.tx_id or "" for each in begun])
    carrying_tx_by_id = {carrying_tx.tx_id: carrying_tx for carrying_tx in carrying_txs}
    under_way = 0
    for settlement in begun:
        carrying_tx = carrying_tx_by_id.get(settlement.tx_id or "")
        if carrying_tx is None:
            under_way += await _send(context, settlement, closed)
        elif carrying_tx.status is TxStatus.FAILED:
            await _revert(context, settlement, carrying_tx)
        elif carrying_tx.status is TxStatus.CANCELED:
            await _fail(context, settlement, carrying_tx.failure or carrying_tx.status)
        else:
            under_way += 1
    return under_way


async def _start(context: SettlementContext, due: Settlement, closed: _Closed) -> None:
    """Name the transaction that carries a trade, and send it, unless its exchange is closed."""
    if closed and (await _load(context, due)).exchange in closed:
        return
    named = named_settlement(due)
    await _record(context, named)
    await _send(context, named, closed)


async def _send(context: SettlementContext, settlement: Settlement, closed: _Closed) -> bool:
    """Send the transaction that a trade's row names, unless it was sent before.

    Return whether it takes a place among those on their way; at a closed exchange none does.
    """
    assert settlement.tx_id is not None
    matched = await _load(context, settlement)
    if matched.exchange in closed:
        return False
    try:
        await _carry(context, settlement, match_call(matched, settlement.tx_id), matched)
    except RpcRefused as refusal:
        await _requeue(context, settlement, refusal)
    except ExchangeClosed as refusal:
        closed[matched.exchange] = refusal
        return False
    return True


async def _load(context: SettlementContext, settlement: Settlement) -> Matched:
    async with context.database.reading() as tx:
        (trade,) = await load_trades_by_id(tx, [settlement.trade_id])
        ids = [trade.trade.taker_order_id, *(fill.maker_order_id for fill in trade.trade.fills)]
        order_by_id = await load_orders(tx, ids)
        market = await load_market(tx, trade.trade.condition_id)
    assert market is not None, "only markets of the table are traded"
    return Matched(trade, order_by_id, market.exchange)


async def _carry(
    context: SettlementContext, settlement: Settlement, call: OutgoingTx, matched: Matched
) -> None:
    """Send the call of a trade, or defer the trade when the call reverts."""
    try:
        await context.operator.send(call)
    except ExecutionReverted as reverted:
        reason = reason_of(reverted)
        if reason in CLOSED_REASONS:
            await check_exchange(context.operator, call.target)
        await _defer(context, settlement, matched, reason)


async def _requeue(context: SettlementContext, settlement: Settlement, refusal: RpcRefused) -> None:
    """Send other trades first while the node refuses this one for reasons of its own.

    A transaction that was signed already keeps its name and its place: it may be on its way.
    """
    log.error("settlement refused by the node", trade_id=settlement.trade_id, cause=refusal.message)
    async with context.database.reading() as tx:
        is_signed = bool(await load_txs(tx, SETTLEMENT, [settlement.tx_id or ""]))
    if not is_signed:
        await _record(context, refused_settlement(settlement, context.now_ms(), context.options))


async def _defer(
    context: SettlementContext, settlement: Settlement, matched: Matched, cause: str
) -> None:
    """Record what follows a revert: nothing, while an earlier trade may bring what is missing.

    Where the earlier trades fail as well, this one fails beside them and not after them, so a wallet
    that can't pay ends all its trades together.
    """
    async with context.database.reading() as tx:
        earlier = await load_earlier(tx, matched.row)
    if earlier is EarlierTrades.MAY_PASS:
        await _record(context, waiting_settlement(settlement, context.now_ms(), context.options))
        return
    report = await find_failing_orders(context.operator, matched)
    if earlier is EarlierTrades.FAIL:
        report = report.without_blame()
    after = settlement_after_revert(settlement, cause, report, context.now_ms(), context.options)
    if report.releases_fills:
        await _release_fills(context, after, report.refused)
    else:
        await _record_failure(context, after, report.refused)


async def _release_fills(
    context: SettlementContext, settlement: Settlement, refused: Sequence[RefusedOrder]
) -> None:
    """Have these fills leave a trade; the engine splits it, and it is tried again then."""
    for each in refused:
        log.warning("fill removed from its trade", **each._asdict())
    await _record(context, settlement, refused)


async def _revert(context: SettlementContext, settlement: Settlement, sent: SentTx) -> None:
    """Count a try that was mined in vain; where its simulation passes, find out whose fault it was."""
    matched, cause = await _load(context, settlement), sent.failure or sent.status
    try:
        report = await judge_mined_revert(context, settlement, matched, sent)
    except RpcRefused as refusal:
        log.warning("mined revert not examined", cause=refusal.message)
        report = FailureReport()
    now_ms, options = context.now_ms(), context.options
    after = settlement_after_mined_revert(settlement, cause, report, now_ms, options)
    await _record_failure(context, after, report.refused)


async def _fail(context: SettlementContext, settlement: Settlement, cause: str) -> None:
    """Count a failed try; the trade is tried again later or given up."""
    failed = failed_settlement(settlement, cause, context.now_ms(), context.options)
    await _record_failure(context, failed)


async def _record_failure(
    context: SettlementContext, failed: Settlement, refused: Sequence[RefusedOrder] = ()
) -> None:
    report = log.error if failed.is_given_up else log.warning
    report("settlement failed", **failed._asdict())
    await _record(context, failed, refused)


async def _record(
    context: SettlementContext, settlement: Settlement, refused: Sequence[RefusedOrder] = ()
) -> None:
    async with context.database.writing() as tx:
        await record_refused_orders(tx, refused)
        await record_settlement(tx, settlement)
