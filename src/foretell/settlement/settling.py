"""Brings matched trades to the chain: oldest first, several at once, each exactly once.

A trade's row names the transaction that carries it, and is stored before that is sent. The id is
made of the trade and of how often it was tried, so after a crash the same transaction is found or
sent, never a second one. Only when one has come to nothing for good is there a next.

Trades may need each other: what is bought in one is sold in the next. They get their nonces in
their order, so the chain has them in their order; a node that does not see that coming says that
the later one reverts. It is not counted against it while an earlier trade of its wallets is open.
Nor is it while the exchange is closed to the operator: then a look ends, and the trades stay named.
"""

from typing import Final, NamedTuple

import structlog

from foretell.chain.artifacts import reason_of
from foretell.domain.chain_errors import ExecutionReverted, RpcRefused
from foretell.domain.transactions import OutgoingTx, TxStatus
from foretell.settlement.batches import match_call
from foretell.settlement.exchange import CLOSED_REASONS, check_exchange
from foretell.settlement.services import SettlementOptions, SettlementServices
from foretell.store.markets import load_market
from foretell.store.orders import load_orders
from foretell.store.settlements import (
    Settlement,
    has_unsettled,
    has_unsettled_before,
    load_due_settlements,
    load_open_settlements,
    record_settlement,
)
from foretell.store.trades import TradeRow, load_trades_by_id
from foretell.store.transactions import SETTLEMENT, load_txs

CAUSE_CHARS_MAX: Final = 500

_log: Final = structlog.get_logger(__name__)


async def look(services: SettlementServices) -> bool:
    """Bring every trade as far as it goes now, and say whether one is not on the chain yet.

    Raises ExchangeClosed when none can be settled; nothing is counted against any of them.
    """
    room = services.options.in_flight_max - await _follow(services)
    async with services.database.reading() as tx:
        due = await load_due_settlements(tx, services.now_ms(), max(0, room))
    for settlement in due:
        await _start(services, settlement)
    async with services.database.reading() as tx:
        return await has_unsettled(tx)


async def _follow(services: SettlementServices) -> int:
    """See to the trades that were begun, and return how many of them are on their way."""
    async with services.database.reading() as tx:
        begun = await load_open_settlements(tx)
        carriers = await load_txs(tx, SETTLEMENT, [each.tx_id or "" for each in begun])
    carrier_by_id = {carrier.tx_id: carrier for carrier in carriers}
    under_way = 0
    for settlement in begun:
        carrier = carrier_by_id.get(settlement.tx_id or "")
        if carrier is None:
            await _send(services, settlement)
        elif carrier.status in {TxStatus.FAILED, TxStatus.CANCELED}:
            await _fail(services, settlement, carrier.failure or carrier.status)
            continue
        under_way += 1
    return under_way


async def _start(services: SettlementServices, due: Settlement) -> None:
    """Name the transaction that will carry a trade, and send it."""
    named = due._replace(tx_id=f"settle:{due.trade_id}:{due.attempts + 1}")
    await _record(services, named)
    await _send(services, named)


async def _send(services: SettlementServices, settlement: Settlement) -> None:
    """Send the transaction that a trade's row names, unless it was sent before."""
    matched = await _load(services, settlement)
    try:
        await services.operator.send(matched.call)
    except ExecutionReverted as reverted:
        reason = reason_of(reverted)
        if reason in CLOSED_REASONS:
            await check_exchange(services.operator, matched.call.target)
        await _put_off(services, settlement, matched.trade, reason)
    except RpcRefused as refusal:
        # Not the trade's fault, as far as one can tell: it stays named and is sent at the next look.
        _log.error("settlement not taken", trade_id=settlement.trade_id, cause=refusal.message)


class _Matched(NamedTuple):
    """A trade, and the transaction that settles it."""

    trade: TradeRow
    call: OutgoingTx


async def _load(services: SettlementServices, settlement: Settlement) -> _Matched:
    assert settlement.tx_id is not None
    async with services.database.reading() as tx:
        (trade,) = await load_trades_by_id(tx, [settlement.trade_id])
        ids = [trade.trade.taker_order_id, *(fill.maker_order_id for fill in trade.trade.fills)]
        order_by_id = await load_orders(tx, ids)
        market = await load_market(tx, trade.trade.condition_id)
    assert market is not None, "only what is in the table trades"
    return _Matched(trade, match_call(trade, order_by_id, market.exchange, settlement.tx_id))


async def _put_off(
    services: SettlementServices, settlement: Settlement, trade: TradeRow, cause: str
) -> None:
    """Try a trade again later that reverts now; that is its own fault only when it stands alone."""
    async with services.database.reading() as tx:
        may_wait = await has_unsettled_before(tx, trade)
    if not may_wait:
        await _fail(services, settlement, cause)
        return
    retry_at_ms = services.now_ms() + services.options.wait_delay_ms
    await _record(services, settlement._replace(tx_id=None, retry_at_ms=retry_at_ms))


async def _fail(services: SettlementServices, settlement: Settlement, cause: str) -> None:
    """Count what has come to nothing, and try again later or give up."""
    failed = failed_settlement(settlement, cause, services.now_ms(), services.options)
    tell = _log.error if failed.is_given_up else _log.warning
    tell("settlement failed", **failed._asdict())
    await _record(services, failed)


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


async def _record(services: SettlementServices, settlement: Settlement) -> None:
    async with services.database.writing() as tx:
        await record_settlement(tx, settlement)
