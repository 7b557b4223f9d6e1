"""Brings matched trades to the chain: oldest first, several at once, each exactly once.

A trade's row names the transaction that carries it, and is stored before that is sent. The id is
made of the trade and of how often it was tried, so after a crash the same transaction is found or
sent, never a second one. Only when one has come to nothing for good is there a next.

Trades may need each other: what is bought in one is sold in the next. They get their nonces in
their order, so the chain has them in their order; a node that does not see that coming says that
the later one reverts. It is not counted against it while an earlier trade of its wallets is open.
Nor is it while the exchange is closed to the operator: then a look ends, and the trades stay named.
"""

from collections.abc import Sequence
from typing import Final

import structlog

from foretell.chain.artifacts import reason_of
from foretell.domain.errors.chain import ExchangeClosed, ExecutionReverted, RpcRefused
from foretell.domain.evm.transaction import OutgoingTx, TxStatus
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.context import SettlementContext, SettlementOptions
from foretell.settlement.exchange_status import CLOSED_REASONS, check_exchange
from foretell.settlement.failing_orders import find_failing_orders
from foretell.settlement.match_call import Matched, match_call
from foretell.store.creation.markets import load_market
from foretell.store.outbox.refused_orders import RefusedOrder, record_refused_orders
from foretell.store.outbox.settlements import (
    Settlement,
    has_unsettled,
    has_unsettled_before,
    load_due_settlements,
    load_open_settlements,
    record_settlement,
)
from foretell.store.outbox.transactions import SETTLEMENT, load_txs
from foretell.store.trading.orders import load_orders
from foretell.store.trading.trades import load_trades_by_id

CAUSE_CHARS_MAX: Final = 500

_Closed = dict[Address, ExchangeClosed]
"""The exchanges that were found closed in one look, and why each is."""

_log: Final = structlog.get_logger(__name__)


async def run_once(context: SettlementContext) -> bool:
    """Bring every trade as far as it goes now, and say whether one is not on the chain yet.

    Raises ExchangeClosed when an exchange settles none of its trades; nothing is counted against
    any of them, and those of another exchange have gone on.
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
    """See to the trades that were begun, and return how many of them are on their way."""
    async with context.database.reading() as tx:
        begun = await load_open_settlements(tx)
        carrying_txs = await load_txs(tx, SETTLEMENT, [each.tx_id or "" for each in begun])
    carrying_tx_by_id = {carrier.tx_id: carrier for carrier in carrying_txs}
    under_way = 0
    for settlement in begun:
        carrier = carrying_tx_by_id.get(settlement.tx_id or "")
        if carrier is None:
            under_way += await _send(context, settlement, closed)
            continue
        if carrier.status in {TxStatus.FAILED, TxStatus.CANCELED}:
            await _fail(context, settlement, carrier.failure or carrier.status)
            continue
        under_way += 1
    return under_way


async def _start(context: SettlementContext, due: Settlement, closed: _Closed) -> None:
    """Name the transaction that will carry a trade, and send it, unless its exchange is closed."""
    if closed and (await _load(context, due)).exchange in closed:
        return
    named = due._replace(tx_id=f"settle:{due.trade_id}:{due.attempts + 1}")
    await _record(context, named)
    await _send(context, named, closed)


async def _send(context: SettlementContext, settlement: Settlement, closed: _Closed) -> bool:
    """Send the transaction that a trade's row names, unless it was sent before.

    Return whether it takes a place among those on their way: at a closed exchange none does.
    """
    assert settlement.tx_id is not None
    matched = await _load(context, settlement)
    if matched.exchange in closed:
        return False
    try:
        await _carry(context, settlement, match_call(matched, settlement.tx_id), matched)
    except RpcRefused as refusal:
        await _make_room(context, settlement, refusal)
    except ExchangeClosed as refusal:
        closed[matched.exchange] = refusal
        return False
    return True


async def _carry(
    context: SettlementContext, settlement: Settlement, call: OutgoingTx, matched: Matched
) -> None:
    """Send what settles a trade; one that reverts is seen to."""
    try:
        await context.operator.send(call)
    except ExecutionReverted as reverted:
        reason = reason_of(reverted)
        if reason in CLOSED_REASONS:
            await check_exchange(context.operator, call.target)
        await _put_off(context, settlement, matched, reason)


async def _make_room(
    context: SettlementContext, settlement: Settlement, refusal: RpcRefused
) -> None:
    """Let others go first while the node refuses a trade, by no fault of it that one can tell.

    One that was signed already keeps its name, and its place: it may be on its way.
    """
    _log.error("settlement not taken", trade_id=settlement.trade_id, cause=refusal.message)
    async with context.database.reading() as tx:
        is_signed = bool(await load_txs(tx, SETTLEMENT, [settlement.tx_id or ""]))
    if not is_signed:
        await _record(context, refused_settlement(settlement, context.now_ms(), context.options))


def refused_settlement(
    settlement: Settlement, now_ms: int, options: SettlementOptions
) -> Settlement:
    """Return how a settlement stands that the node would not take."""
    delay_ms = min(options.refusal_delay_ms * 2**settlement.refusals, options.refusal_delay_ms_max)
    return settlement._replace(
        tx_id=None, retry_at_ms=now_ms + delay_ms, refusals=settlement.refusals + 1
    )


async def _load(context: SettlementContext, settlement: Settlement) -> Matched:
    async with context.database.reading() as tx:
        (trade,) = await load_trades_by_id(tx, [settlement.trade_id])
        ids = [trade.trade.taker_order_id, *(fill.maker_order_id for fill in trade.trade.fills)]
        order_by_id = await load_orders(tx, ids)
        market = await load_market(tx, trade.trade.condition_id)
    assert market is not None, "only what is in the table trades"
    return Matched(trade, order_by_id, market.exchange)


async def _put_off(
    context: SettlementContext, settlement: Settlement, matched: Matched, cause: str
) -> None:
    """See to a trade that reverts now; that is its own fault only when it stands alone."""
    async with context.database.reading() as tx:
        may_wait = await has_unsettled_before(tx, matched.row)
    if may_wait:
        retry_at_ms = context.now_ms() + context.options.wait_delay_ms
        waiting = settlement._replace(tx_id=None, retry_at_ms=retry_at_ms, refusals=0)
        await _record(context, waiting)
        return
    findings = await find_failing_orders(context.operator, matched)
    if findings.over is not None:
        await _give_up(context, settlement, findings.refused, findings.over)
    elif findings.refused:
        await _let_leave(context, settlement, findings.refused)
    else:
        await _fail(context, settlement, cause)


async def _give_up(
    context: SettlementContext,
    settlement: Settlement,
    refused: Sequence[RefusedOrder],
    cause: str,
) -> None:
    """End a trade that can never settle, with what is told of its orders."""
    failed = failed_settlement(settlement, cause, context.now_ms(), context.options)
    over = failed._replace(is_given_up=True)
    _log.error("settlement failed", **over._asdict())
    await _record(context, over, refused)


async def _let_leave(
    context: SettlementContext, settlement: Settlement, refused: Sequence[RefusedOrder]
) -> None:
    """Have these fills leave a trade; it is tried again, at once, when they have."""
    for each in refused:
        _log.warning("fill leaves its trade", **each._asdict())
    waiting = settlement._replace(tx_id=None, retry_at_ms=context.now_ms(), refusals=0)
    await _record(context, waiting, refused)


async def _fail(context: SettlementContext, settlement: Settlement, cause: str) -> None:
    """Count what has come to nothing, and try again later or give up."""
    failed = failed_settlement(settlement, cause, context.now_ms(), context.options)
    tell = _log.error if failed.is_given_up else _log.warning
    tell("settlement failed", **failed._asdict())
    await _record(context, failed)


def failed_settlement(
    settlement: Settlement, cause: str, now_ms: int, options: SettlementOptions
) -> Settlement:
    """Return how a settlement stands once its transaction has come to nothing for good."""
    attempts = settlement.attempts + 1
    delay_ms = min(options.retry_delay_ms * 2 ** (attempts - 1), options.retry_delay_ms_max)
    return Settlement(
        trade_id=settlement.trade_id,
        tx_id=None,
        attempts=attempts,
        retry_at_ms=now_ms + delay_ms,
        failure=cause[:CAUSE_CHARS_MAX],
        is_given_up=attempts >= options.attempts_max,
    )


async def _record(
    context: SettlementContext, settlement: Settlement, refused: Sequence[RefusedOrder] = ()
) -> None:
    async with context.database.writing() as tx:
        await record_refused_orders(tx, refused)
        await record_settlement(tx, settlement)
