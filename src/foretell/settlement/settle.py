"""Send matched trades to the chain: several at once, each exactly once.

A trade's row names the transaction that carries it, and is stored before that is sent. After a
crash the same transaction is found or sent, never a second one; the next one is named only when the
outcome of the last is final and settled nothing.

Trades may need each other: tokens bought in one are sold in the next. One that needs an earlier one waits while
that may pass, and gets a later account nonce, so the chain has them in that order. A node that ignores pending transactions reports
that the later one reverts; no try is counted while an earlier trade of its wallets may pass. Nor is
one counted while the exchange is closed to the operator: the pass ends, and the trades stay named. Trades of
the other exchange do not wait for those, nor for those of a halted market.

Trades that fail hold up others little: half of the places are for new trades of wallets without one.
New trades of one exchange share transactions (`batches`), where the deployment has the contract.
"""

from collections.abc import Collection, Sequence

import structlog

from foretell.chain.artifacts import reason_of
from foretell.domain.errors.chain import ExchangeClosed, ExecutionReverted, RpcRefused
from foretell.domain.evm.transaction import FINISHED, OutgoingTx, SentTx, TxStatus
from foretell.domain.exchange.settlement import (
    EarlierTrades,
    FailureReport,
    RefusedOrder,
    Settlement,
    failed_settlement,
    is_batch,
    named_settlement,
    refused_settlement,
    settlement_after_mined_revert,
    settlement_after_revert,
    waiting_settlement,
)
from foretell.domain.exchange.waiting.places import free_places
from foretell.domain.exchange.wallets.wallet_bars import Offence
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.batch_call import BatchedTrade, batched_trade, in_groups, in_places
from foretell.settlement.batches import (
    follow_batch,
    read_outcomes,
    start_batch,
    start_unsimulated_batches,
    start_whole_batches,
)
from foretell.settlement.context import SettlementContext
from foretell.settlement.exchange_status import CLOSED_REASONS, check_collateral, check_exchange
from foretell.settlement.failing_orders import find_failing_orders
from foretell.settlement.landed_trades import has_index, without_landed
from foretell.settlement.match_call import Matched, match_call
from foretell.settlement.mined_reverts import MinedRevert, judge_mined_revert
from foretell.settlement.node_refusals import bounded_options, check_node
from foretell.settlement.operators import must_wait
from foretell.settlement.simulations import unsimulated_trades
from foretell.settlement.stored import BY_ANOTHER, Progress, is_sent_by_now, load_matched, record
from foretell.settlement.wallet_bars import count_offences, probe_wallets, without_barred
from foretell.settlement.wallet_funds import orders_to_blame
from foretell.store.outbox.due_settlements import load_due_settlements
from foretell.store.outbox.settlements import (
    OpenSettlement,
    has_unsettled,
    load_earlier,
    load_open_settlements,
    name_settlements,
)
from foretell.store.outbox.transactions import SETTLEMENT, load_tx

_Closed = dict[Address, ExchangeClosed | RpcRefused]
"""The exchanges for which one pass can send nothing, with the refusal of each: it is closed, or the node refuses all."""

log = structlog.get_logger(__name__)


async def run_once(context: SettlementContext) -> bool:
    """Advance every trade as far as it goes now; return whether one is not on the chain yet.

    Raises ExchangeClosed when an exchange settles none of its trades. No try is counted for any of
    them, and the trades of another exchange have advanced. Raises RpcRefused when the node refuses every
    transaction, with the same consequence.
    """
    if not await has_index(context):
        return True
    closed: _Closed = {}
    room = free_places(context.options.in_flight_max, await _follow(context, closed))
    if not await has_index(context):
        return True
    has_batches = context.batch_settler is not None and room > 0
    batched_max = context.options.batched_per_pass_max if has_batches else 0
    async with context.database.reading() as tx:
        due = await load_due_settlements(
            tx, context.now_ms(), room, closed, batched_max=batched_max
        )
    due = await without_barred(context, await without_landed(context, due))
    await _start_due(context, due, room, closed)
    await probe_wallets(context)
    for refusal in closed.values():
        raise refusal
    async with context.database.reading() as tx:
        return await has_unsettled(tx)


async def _follow(context: SettlementContext, closed: _Closed) -> int:
    """Advance the trades that have a transaction; return how many of these are on their way."""
    async with context.database.reading() as tx:
        begun = await load_open_settlements(tx)
    carried_by_tx_id: dict[str, list[OpenSettlement]] = {}
    for each in begun:
        carried_by_tx_id.setdefault(each.settlement.tx_id or "", []).append(each)
    confirmed, under_way = [], 0
    for tx_id, carried in carried_by_tx_id.items():
        status = carried[0].status
        if status is TxStatus.CONFIRMED:
            confirmed.append(carried)
        elif status is None or status in FINISHED:
            settlements = [each.settlement for each in carried]
            under_way += await _follow_tx(context, tx_id, settlements, closed)
        else:
            under_way += 1
    await read_outcomes(context, confirmed)
    return under_way


async def _follow_tx(
    context: SettlementContext, tx_id: str, carried: Sequence[Settlement], closed: _Closed
) -> bool:
    """Advance the trades of a transaction that is not stored or has failed; return whether it is on its way."""
    async with context.database.reading() as tx:
        carrying_tx = await load_tx(tx, SETTLEMENT, tx_id)
    if carrying_tx is None:
        others = await without_landed(context, carried)
        if len(others) < len(carried):
            await _name_again(context, others)
            return False
    if is_batch(tx_id):
        try:
            return await follow_batch(context, carried, carrying_tx)
        except RpcRefused as refusal:
            closed[(await _load(context, carried[0])).exchange] = refusal
            return False
    (settlement,) = carried
    return await _follow_one(context, settlement, carrying_tx, closed)


async def _name_again(context: SettlementContext, carried: Sequence[Settlement]) -> None:
    """Have trades go without the transaction that was to carry them: others of it are on the chain already."""
    now_ms, options = context.now_ms(), context.options
    waiting = [Progress(each, waiting_settlement(each, now_ms, options)) for each in carried]
    await record(context, waiting)


async def _follow_one(
    context: SettlementContext,
    settlement: Settlement,
    carrying_tx: SentTx | None,
    closed: _Closed,
) -> bool:
    """Advance a trade with a transaction of its own; return whether that is on its way."""
    if carrying_tx is None:
        return await _send(context, settlement, closed)
    if carrying_tx.status is TxStatus.FAILED:
        await _revert(context, settlement, carrying_tx)
        return False
    if carrying_tx.status is TxStatus.CANCELED:
        context.start.ask_again()
        await _fail(context, settlement, carrying_tx.failure or carrying_tx.status)
        return False
    return True


async def _start_due(
    context: SettlementContext, due: Sequence[Settlement], room: int, closed: _Closed
) -> None:
    """Send due trades in their order, those that may share a transaction first."""
    settler = context.batch_settler
    if settler is None:
        for settlement in due:
            await _start(context, settlement, closed)
        return
    rows = await load_matched(context, due)
    trades = [batched_trade(*pair) for pair in zip(due, rows, strict=True)]
    try:
        await _start_shared(context, settler, trades, room, closed)
    except RpcRefused as refusal:
        closed |= dict.fromkeys({each.matched.exchange for each in trades}, refusal)


async def _start_shared(
    context: SettlementContext,
    settler: Address,
    trades: Sequence[BatchedTrade],
    room: int,
    closed: _Closed,
) -> None:
    """Send trades in batches, and those alone that may share none.

    Raises RpcRefused when the node refuses every batch.
    """
    covered = await unsimulated_trades(context, settler, trades)
    groups, covered = in_groups(trades, covered, await bounded_options(context))
    shared, others = in_places(groups, room)
    certain = [group for group in shared if group[0].settlement.trade_id in covered]
    await start_unsimulated_batches(context, settler, certain)
    uncertain = [group for group in shared if group[0].settlement.trade_id not in covered]
    whole = await start_whole_batches(context, settler, uncertain)
    room -= len(certain) + whole
    for group in [*uncertain[whole:], *others]:
        if room <= 0:
            return
        together = await start_batch(context, settler, group) if len(group) > 1 else []
        room -= bool(together)
        alone = [each for each in group if each not in together]
        for each in alone:
            await _start(context, each.settlement, closed)
        room -= len(alone)


async def _start(context: SettlementContext, due: Settlement, closed: _Closed) -> None:
    """Name the transaction that carries a trade, and send it, unless its exchange is closed."""
    if closed and (await _load(context, due)).exchange in closed:
        return
    if await must_wait(context, due, closed):
        waiting = waiting_settlement(due, context.now_ms(), context.options)
        await record(context, [Progress(due, waiting)])
        return
    named = named_settlement(due)
    async with context.database.writing() as tx:
        is_named = await name_settlements(tx, [named])
    if is_named:
        await _send(context, named, closed)
    else:
        log.error(BY_ANOTHER, tx_id=named.tx_id)


async def _send(context: SettlementContext, settlement: Settlement, closed: _Closed) -> bool:
    """Send the transaction that a trade's row names, unless it was sent before.

    Return whether it takes a place among those on their way; at a closed exchange none does.
    """
    assert settlement.tx_id is not None
    matched = await _load(context, settlement)
    if matched.exchange in closed:
        return False
    try:
        await _carry(context, settlement, match_call(matched, settlement.tx_id), matched, closed)
        return True
    except ExchangeClosed as refusal:
        closed[matched.exchange] = refusal
        return False
    except RpcRefused as refusal:
        try:
            await _requeue(context, settlement, matched, refusal)
        except RpcRefused:
            closed[matched.exchange] = refusal
            return False
        return True


async def _load(context: SettlementContext, settlement: Settlement) -> Matched:
    (matched,) = await load_matched(context, [settlement])
    return matched


async def _carry(
    context: SettlementContext,
    settlement: Settlement,
    call: OutgoingTx,
    matched: Matched,
    closed: Collection[Address],
) -> None:
    """Send the call of a trade, or defer the trade when the call reverts.

    Nothing follows a revert after another process has sent the call, which is why it reverts.
    Raises ExchangeClosed when every call would revert.
    """
    try:
        await context.operator.send(call)
    except ExecutionReverted as reverted:
        if await is_sent_by_now(context, [settlement]):
            return
        reason = reason_of(reverted)
        if reason in CLOSED_REASONS:
            await check_exchange(context.operator, call.target)
        if context.collateral is not None:
            await check_collateral(context.operator, call.target, context.collateral)
        await _defer(context, settlement, matched, reason, closed)


async def _requeue(
    context: SettlementContext, settlement: Settlement, matched: Matched, refusal: RpcRefused
) -> None:
    """Send other trades first while the node refuses this one for reasons of its own.

    A transaction that was signed already keeps its name and its place: it may be on its way.
    Raises RpcRefused while the node refuses everything; the trade stays named.
    """
    is_signed = await is_sent_by_now(context, [settlement])
    if not is_signed:
        await check_node(context, matched.exchange, refusal, makers=len(matched.row.trade.fills))
    log.error("settlement refused by the node", trade_id=settlement.trade_id, cause=refusal.message)
    if not is_signed:
        refused = refused_settlement(settlement, context.now_ms(), context.options)
        await record(context, [Progress(settlement, refused)])


async def _defer(
    context: SettlementContext,
    settlement: Settlement,
    matched: Matched,
    cause: str,
    closed: Collection[Address],
) -> None:
    """Record what follows a revert: nothing, while an earlier trade may bring what is missing.

    Where the earlier trades fail as well, this one fails beside them and not after them, so a wallet
    that can't pay ends all its trades together. It does not wait for those of a closed exchange either,
    nor of a halted market: nobody knows how long that lasts.
    """
    async with context.database.reading() as tx:
        earlier = await load_earlier(tx, matched.row, closed)
    if earlier is EarlierTrades.MAY_PASS:
        waiting = waiting_settlement(settlement, context.now_ms(), context.options)
        await record(context, [Progress(settlement, waiting)])
        return
    report = await find_failing_orders(context.operator, matched)
    if earlier is EarlierTrades.FAIL:
        report = report.without_blame()
    after = settlement_after_revert(settlement, cause, report, context.now_ms(), context.options)
    step = Progress(settlement, after)
    if report.releases_fills:
        await _release_fills(context, step, report.refused)
    else:
        await _record_failure(context, step, matched, report.refused)


async def _release_fills(
    context: SettlementContext, step: Progress, refused: Sequence[RefusedOrder]
) -> None:
    """Have these fills leave a trade; the engine splits it, and it is tried again then."""
    if await record(context, [step], refused):
        for each in refused:
            log.warning("fill removed from its trade", **each._asdict())


async def _revert(context: SettlementContext, settlement: Settlement, sent: SentTx) -> None:
    """Count a try that was mined in vain; where its simulation passes, find out whose fault it was."""
    matched, cause = await _load(context, settlement), sent.failure or sent.status
    try:
        judged = await judge_mined_revert(context, settlement, matched, sent)
    except RpcRefused as refusal:
        log.warning("mined revert not examined", cause=refusal.message)
        judged = MinedRevert(FailureReport())
    now_ms, options, report = context.now_ms(), context.options, judged.report
    after = settlement_after_mined_revert(settlement, cause, report, now_ms, options)
    step = Progress(settlement, after, is_sent=True)
    if await _record_failure(context, step, matched, report.refused, judged.offences):
        count_offences(context, judged.offences, judged.gas)


async def _fail(context: SettlementContext, settlement: Settlement, cause: str) -> None:
    """Count a failed try; the trade is tried again later or given up."""
    failed = failed_settlement(settlement, cause, context.now_ms(), context.options)
    step = Progress(settlement, failed, is_sent=True)
    await _record_failure(context, step, await _load(context, settlement))


async def _record_failure(
    context: SettlementContext,
    step: Progress,
    matched: Matched,
    refused: Sequence[RefusedOrder] = (),
    offences: Sequence[Offence] = (),
) -> bool:
    """Store a failed try, and with the last one the orders that are to blame; return whether it is stored.

    A node that does not say who is to blame delays the end of a trade: honest orders would not go back.
    """
    failed = step.after
    if failed.is_given_up and not any(each.is_blamed for each in refused):
        try:
            refused = [*refused, *await orders_to_blame(context, matched)]
        except RpcRefused as refusal:
            log.warning("failed trade not examined", cause=refusal.message)
            failed = failed._replace(is_given_up=False)
    if not await record(context, [step._replace(after=failed)], refused, offences):
        return False
    report = log.error if failed.is_given_up else log.warning
    report("settlement failed", **failed._asdict())
    for each in refused:
        log.warning("order is to blame", **each._asdict())
    return True
