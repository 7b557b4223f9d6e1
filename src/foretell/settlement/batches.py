"""Send trades in batches, and read which trades of a batch are settled.

The rows of all its trades name a batch before it is sent, so after a crash the same one is made of
them, found or sent. A trade has failed within a confirmed batch only when the batch logged that and
the index, which has read the block, has no fill of it. Where the two disagree, the trade waits: it is
never sent twice. A trade that failed goes on alone.
"""

from collections.abc import Sequence

import structlog

from foretell.chain.artifacts import error_names, reason_of
from foretell.domain.contracts.batches import failed_places, matches_of, parse_match_failed
from foretell.domain.errors.chain import ExecutionReverted, MalformedCalldata, RpcRefused
from foretell.domain.evm.abi import revert_reason
from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.domain.exchange.settlement import (
    Settlement,
    batch_id_of,
    failed_settlement,
    refused_settlement,
    settlement_after_batch,
    waiting_settlement,
)
from foretell.domain.values.hexadecimal import Address, parse_bytes
from foretell.settlement.batch_call import BatchedTrade, batch_call, batched_trade
from foretell.settlement.context import SettlementContext
from foretell.settlement.stored import load_matched, record
from foretell.store.index.blocks import load_last_block
from foretell.store.outbox.settlements import load_settled_in, name_batch
from foretell.store.outbox.transactions import SETTLEMENT, load_txs

log = structlog.get_logger(__name__)

FAILED_IN_BATCH = "failed within a batch"


async def passing_trades(
    context: SettlementContext, settler: Address, batch: Sequence[BatchedTrade]
) -> list[BatchedTrade]:
    """Return the trades of a batch that settle in a simulation now; none if it says nothing."""
    call = batch_call(settler, batch, "")
    try:
        failed = failed_places(await context.operator.result_of(call), len(batch))
    except ExecutionReverted as reverted:
        log.warning("batch reverts", cause=reason_of(reverted))
        return []
    except (RpcRefused, MalformedCalldata) as refusal:
        log.warning("batch not simulated", cause=str(refusal))
        return []
    return [each for place, each in enumerate(batch) if place not in failed]


async def start_batch(
    context: SettlementContext, settler: Address, batch: Sequence[BatchedTrade]
) -> None:
    """Name the transaction that carries trades that pass together, and send it."""
    tx_id = batch_id_of([each.settlement for each in batch])
    named = [each._replace(settlement=each.settlement._replace(tx_id=tx_id)) for each in batch]
    async with context.database.writing() as tx:
        is_named = await name_batch(tx, [each.settlement for each in named])
    if is_named:
        await _send(context, settler, named, is_simulated=True)
    else:
        log.error("trades are settled by another process too", tx_id=tx_id)


async def follow_batch(
    context: SettlementContext, settlements: Sequence[Settlement], sent: SentTx | None
) -> bool:
    """Advance the trades that one batch carries; return whether it takes a place on the way."""
    if sent is None:
        return await _resume(context, settlements)
    if sent.status is TxStatus.CONFIRMED:
        await _read_outcomes(context, settlements, sent)
        return False
    if sent.status in {TxStatus.FAILED, TxStatus.CANCELED}:
        await _fail_all(context, settlements, sent.failure or sent.status)
        return False
    return True


async def _resume(context: SettlementContext, settlements: Sequence[Settlement]) -> bool:
    """Send a batch that was named before a crash, as it was named.

    Nothing of it was stored or sent. Its trades are due again instead, and free to go alone, where none
    of them would settle, or where this deployment has no batches.
    """
    rows = await load_matched(context, settlements)
    batch = [batched_trade(*pair) for pair in zip(settlements, rows, strict=True)]
    settler = context.batch_settler
    if settler is not None and await passing_trades(context, settler, batch):
        await _send(context, settler, batch)
        return True
    if await _is_stored(context, settlements):
        return True  # sent meanwhile, which is why its trades fail in a simulation
    now_ms, options = context.now_ms(), context.options
    await record(context, [waiting_settlement(each, now_ms, options) for each in settlements])
    return False


async def _send(
    context: SettlementContext,
    settler: Address,
    batch: Sequence[BatchedTrade],
    *,
    is_simulated: bool = False,
) -> None:
    """Send a named batch, unless it was sent before; a refusal of the node counts as no try."""
    settlements = [each.settlement for each in batch]
    tx_id = settlements[0].tx_id
    assert tx_id is not None
    try:
        await context.operator.send(batch_call(settler, batch, tx_id), is_simulated=is_simulated)
    except (RpcRefused, ExecutionReverted) as refusal:
        log.warning("batch refused by the node", tx_id=tx_id, cause=str(refusal))
        if not await _is_stored(context, settlements):
            now_ms, options = context.now_ms(), context.options
            refused = [refused_settlement(each, now_ms, options) for each in settlements]
            await record(context, refused)


async def _is_stored(context: SettlementContext, settlements: Sequence[Settlement]) -> bool:
    """Return whether the transaction that these trades name is stored: it may be on its way."""
    async with context.database.reading() as tx:
        return bool(await load_txs(tx, SETTLEMENT, [settlements[0].tx_id or ""]))


async def _fail_all(
    context: SettlementContext, settlements: Sequence[Settlement], cause: str
) -> None:
    """Count a try of each trade of a batch that settled nothing."""
    log.warning("batch failed", tx_id=settlements[0].tx_id, cause=cause)
    now_ms, options = context.now_ms(), context.options
    failed = [failed_settlement(each, cause, now_ms, options) for each in settlements]
    await record(context, failed)


async def _read_outcomes(
    context: SettlementContext, settlements: Sequence[Settlement], sent: SentTx
) -> None:
    """Have the trades that failed within a confirmed batch go on alone."""
    assert sent.mined_hash is not None
    assert sent.block_number is not None
    async with context.database.reading() as tx:
        last = await load_last_block(tx)
        ids = [each.trade_id for each in settlements]
        settled = await load_settled_in(tx, ids, sent.mined_hash)
    if last is None or last.block_number < sent.block_number:
        return
    missing = [each for each in settlements if each.trade_id not in settled]
    if not missing:
        return
    cause_by_call = await _failures(context, sent)
    rows = await load_matched(context, missing)
    failed = []
    for settlement, matched in zip(missing, rows, strict=True):
        # An earlier version of the program packed no call.
        forms = (matched, matched._replace(is_packed=False))
        calls = [batched_trade(settlement, form).call.calldata for form in forms]
        cause = next((cause_by_call[call] for call in calls if call in cause_by_call), None)
        if cause is None:
            log.warning("trade neither settled nor failed in its batch", **settlement._asdict())
            continue
        log.warning("trade failed in its batch", trade_id=settlement.trade_id, cause=cause)
        failed.append(settlement_after_batch(settlement, cause, context.now_ms(), context.options))
    await record(context, failed)


async def _failures(context: SettlementContext, sent: SentTx) -> dict[bytes, str]:
    """Return the cause of each failed match of a mined batch, by its calldata."""
    assert sent.mined_hash is not None
    try:
        receipt = await context.operator.receipt(sent.mined_hash)
    except RpcRefused as refusal:
        log.warning("receipt of a batch not read", cause=refusal.message)
        return {}
    if receipt is None:
        return {}
    matches = matches_of(sent.calldata)
    causes = {}
    for entry in receipt.logs:
        if entry.address.lower() != sent.target:
            continue
        words = parse_bytes(entry.data, "log", len(entry.data))
        if (failure := parse_match_failed(entry.topics, words)) is not None:
            place, revert = failure
            causes[matches[place]] = revert_reason(revert, error_names()) or FAILED_IN_BATCH
    return causes
