"""Send trades in batches, and read which trades of a batch are settled.

The rows of all its trades name a batch before it is sent, so after a crash the same one is made of
them, found or sent. A trade has failed within a confirmed batch only when the batch logged that and
the index, which has read the block, has no fill of it. Where the two disagree, the trade waits: it is
never sent twice. A trade that failed goes on alone.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from foretell.chain.artifacts import error_names, reason_of
from foretell.chain.sender import Sender
from foretell.domain.contracts.batches import failed_places, matches_of, parse_match_failed
from foretell.domain.errors.chain import ExecutionReverted, MalformedCalldata, RpcRefused
from foretell.domain.evm.abi import revert_reason
from foretell.domain.evm.transaction import OutgoingTx, SentTx, TxStatus
from foretell.domain.exchange.settlement import (
    Settlement,
    batch_id_of,
    failed_settlement,
    refused_settlement,
    settlement_after_batch,
    waiting_settlement,
)
from foretell.domain.values.hexadecimal import Address, parse_bytes
from foretell.settlement.batch_call import SHARE_GAS, BatchedTrade, batch_call, batched_trade
from foretell.settlement.context import SettlementContext
from foretell.settlement.match_call import match_gas
from foretell.settlement.node_refusals import check_node, is_capped
from foretell.settlement.operators import (
    is_dismissal,
    is_of_dismissed,
    operators_for,
    simulated_at,
)
from foretell.settlement.stored import BY_ANOTHER, Progress, is_sent_by_now, load_matched, record
from foretell.store.database import Transaction
from foretell.store.index.blocks import load_last_block
from foretell.store.outbox.landed_trades import load_settled_in
from foretell.store.outbox.settlements import OpenSettlement, name_settlements
from foretell.store.outbox.transactions import SETTLEMENT, load_tx, load_txs

_Assigned = tuple[Sequence[BatchedTrade], Sender]
"""A batch, and the account that sends it."""

log = structlog.get_logger(__name__)

TOGETHER_MIN: Final = 2
"""The fewest batches that are simulated in one request."""
TOGETHER_MAX: Final = 4
"""The most of them: the next ones are simulated while these are mined."""
SHARED_MIN: Final = 2
"""The fewest trades that share a transaction."""
FAILED_IN_BATCH = "failed within a batch"
BATCH: Final = "batch"


async def assigned_trades(
    context: SettlementContext, settler: Address, batch: Sequence[BatchedTrade]
) -> tuple[list[BatchedTrade], Sender]:
    """Return the trades of a batch that settle in a simulation now, none if it says nothing, and the account for them.

    An account that is no operator any more leaves the batch to another one.
    """
    call, exchange = batch_call(settler, batch, ""), batch[0].matched.exchange
    others = len(context.further_operators)
    while True:
        (sender,) = await operators_for(context, [exchange])
        try:
            result: bytes | RpcRefused = await sender.result_of(call, simulated_at(context))
        except RpcRefused as refusal:
            result = refusal
        if not others or not is_dismissal(context, sender, exchange, result):
            return _passing(batch, result), sender
        others -= 1


def _passing(batch: Sequence[BatchedTrade], result: bytes | RpcRefused) -> list[BatchedTrade]:
    """Return the trades of a batch that settled in its simulation."""
    if isinstance(result, ExecutionReverted):
        log.warning("batch reverts", cause=reason_of(result))
        return []
    if isinstance(result, RpcRefused):
        log.warning("batch not simulated", cause=result.message)
        return []
    try:
        failed = failed_places(result, len(batch))
    except MalformedCalldata as malformed:
        log.warning("batch not simulated", cause=malformed.message)
        return []
    return [each for place, each in enumerate(batch) if place not in failed]


async def start_whole_batches(
    context: SettlementContext, settler: Address, batches: Sequence[Sequence[BatchedTrade]]
) -> int:
    """Send the first batches together, up to one of which a trade fails; return how many were sent.

    Some are simulated in one request, each without those before it, while the node takes and mines the
    ones before. A trade that needs an earlier batch may fail then, so from the first failure on the
    batches are for the caller, one after the other.
    """
    if len(batches) < TOGETHER_MIN:
        return 0
    senders = await operators_for(context, [batch[0].matched.exchange for batch in batches])
    pairs = list(zip(batches, senders, strict=True))
    parts = [pairs[at : at + TOGETHER_MAX] for at in range(0, len(pairs), TOGETHER_MAX)]
    whole, starting = 0, None
    try:
        for part in parts:
            results = await _simulated(context, settler, part)
            if starting is not None:
                await starting
            passed = _first_whole(context, part, results)
            starting = asyncio.create_task(_start_by_sender(context, settler, passed))
            whole += len(passed)
            if len(passed) < len(part):
                break
    finally:
        if starting is not None:
            await starting
    return whole


async def start_unsimulated_batches(
    context: SettlementContext, settler: Address, batches: Sequence[Sequence[BatchedTrade]]
) -> None:
    """Send batches whose trades need no simulation, all together."""
    if batches:
        senders = await operators_for(context, [batch[0].matched.exchange for batch in batches])
        assigned = list(zip(batches, senders, strict=True))
        await _start_by_sender(context, settler, assigned)


def _first_whole(
    context: SettlementContext, part: Sequence[_Assigned], results: Sequence[bytes | RpcRefused]
) -> Sequence[_Assigned]:
    """Return the batches before the first one of which a trade failed in its simulation."""
    for number, ((batch, sender), result) in enumerate(zip(part, results, strict=True)):
        is_over = is_dismissal(context, sender, batch[0].matched.exchange, result)
        if is_over or len(_passing(batch, result)) < len(batch):
            return part[:number]
    return part


async def _start_by_sender(
    context: SettlementContext, settler: Address, assigned: Sequence[_Assigned]
) -> None:
    """Name and send batches, those of an account together."""
    batches_by_sender: dict[Sender, list[Sequence[BatchedTrade]]] = {}
    for batch, sender in assigned:
        batches_by_sender.setdefault(sender, []).append(batch)
    for sender, batches in batches_by_sender.items():
        await _start(context, settler, batches, sender)


async def _simulated(
    context: SettlementContext, settler: Address, assigned: Sequence[_Assigned]
) -> list[bytes | RpcRefused]:
    """Return the results of batches, in their order; those of an account are simulated in one request."""
    calls_by_sender: dict[Sender, dict[int, OutgoingTx]] = {}
    for number, (batch, sender) in enumerate(assigned):
        calls_by_sender.setdefault(sender, {})[number] = batch_call(settler, batch, "")
    result_by_number: dict[int, bytes | RpcRefused] = {}
    for sender, calls in calls_by_sender.items():
        results = await sender.results_of(list(calls.values()), simulated_at(context))
        result_by_number |= zip(calls, results, strict=True)
    return [result_by_number[number] for number in range(len(assigned))]


async def start_batch(
    context: SettlementContext, settler: Address, batch: Sequence[BatchedTrade]
) -> list[BatchedTrade]:
    """Simulate a batch, send the trades that pass together, and return them; a single one goes alone."""
    passing, sender = await assigned_trades(context, settler, batch)
    if len(passing) < SHARED_MIN:
        return []
    await _start(context, settler, [passing], sender)
    return passing


async def _named(
    tx: Transaction, batches: Sequence[Sequence[BatchedTrade]]
) -> list[list[BatchedTrade]]:
    """Return batches with ids that no stored transaction has."""
    repeats = [0] * len(batches)
    while True:
        pairs = zip(batches, repeats, strict=True)
        ids = [batch_id_of([each.settlement for each in batch], number) for batch, number in pairs]
        stored = {each.tx_id for each in await load_txs(tx, SETTLEMENT, ids)}
        if not stored:
            return [
                [each._replace(settlement=each.settlement._replace(tx_id=tx_id)) for each in batch]
                for tx_id, batch in zip(ids, batches, strict=True)
            ]
        numbers = zip(ids, repeats, strict=True)
        repeats = [number + (tx_id in stored) for tx_id, number in numbers]


async def _start(
    context: SettlementContext,
    settler: Address,
    batches: Sequence[Sequence[BatchedTrade]],
    sender: Sender,
) -> None:
    """Store the names of batches, all or none, and send them."""
    async with context.database.writing() as tx:
        named = await _named(tx, batches)
        settlements = [each.settlement for batch in named for each in batch]
        is_named = await name_settlements(tx, settlements)
    if is_named:
        await _send(context, settler, named, sender)
    else:
        log.error(BY_ANOTHER, tx_id=settlements[0].tx_id)


async def follow_batch(
    context: SettlementContext, settlements: Sequence[Settlement], sent: SentTx | None
) -> bool:
    """Advance the trades that one batch carries; return whether it takes a place on the way."""
    if sent is None:
        return await _resume(context, settlements)
    if sent.status in {TxStatus.FAILED, TxStatus.CANCELED}:
        if sent.status is TxStatus.CANCELED:
            context.start.ask_again()
        if await _is_no_try(context, settlements, sent):
            log.warning("batch goes again", tx_id=sent.tx_id, cause=sent.failure)
            await _requeue(context, settlements, is_sent=True)
            return False
        await _fail_all(context, settlements, sent.failure or sent.status)
        return False
    return True


async def _is_no_try(
    context: SettlementContext, settlements: Sequence[Settlement], sent: SentTx
) -> bool:
    """Return whether a batch settled nothing, and that says nothing about any of its trades."""
    if is_capped(context, sent):
        return True
    (first, *_) = await load_matched(context, settlements)
    return await is_of_dismissed(context, sent, first.exchange)


async def _resume(context: SettlementContext, settlements: Sequence[Settlement]) -> bool:
    """Send a batch that was named before a crash, as it was named.

    Nothing of it was stored or sent. Its trades are due again instead, and free to go alone, where none
    of them would settle, or where this deployment has no batches.
    """
    rows = await load_matched(context, settlements)
    batch = [batched_trade(*pair) for pair in zip(settlements, rows, strict=True)]
    settler = context.batch_settler
    if settler is not None:
        passing, sender = await assigned_trades(context, settler, batch)
        if passing:
            await _send(context, settler, [batch], sender)
            return True
    if await is_sent_by_now(context, settlements):
        return True  # sent meanwhile, which is why its trades fail in a simulation
    await _requeue(context, settlements, is_sent=False)
    return False


async def _requeue(
    context: SettlementContext, settlements: Sequence[Settlement], *, is_sent: bool
) -> None:
    """Have trades go without the batch that carries them, which settles nothing; no try is counted."""
    now_ms, options = context.now_ms(), context.options
    await record(
        context,
        [
            Progress(each, waiting_settlement(each, now_ms, options), is_sent=is_sent)
            for each in settlements
        ],
    )


async def _send(
    context: SettlementContext,
    settler: Address,
    batches: Sequence[Sequence[BatchedTrade]],
    sender: Sender,
) -> None:
    """Send named batches that passed a simulation, unless they were sent before.

    A refusal of the node counts as no try. While it refuses everything, that is raised.
    """
    calls = [batch_call(settler, batch, batch[0].settlement.tx_id or "") for batch in batches]
    try:
        await sender.send_all(calls)
    except RpcRefused as refusal:
        for batch, call in zip(batches, calls, strict=True):
            log.warning("batch refused by the node", tx_id=call.tx_id, cause=str(refusal))
            settlements = [each.settlement for each in batch]
            if not await is_sent_by_now(context, settlements):
                await check_node(context, batch[0].matched.exchange, refusal)
                now_ms, options = context.now_ms(), context.options
                refused = [
                    Progress(each, refused_settlement(each, now_ms, options))
                    for each in settlements
                ]
                await record(context, refused)


async def _fail_all(
    context: SettlementContext, settlements: Sequence[Settlement], cause: str
) -> None:
    """Count a try of each trade of a batch that settled nothing."""
    log.warning("batch failed", tx_id=settlements[0].tx_id, cause=cause)
    now_ms, options = context.now_ms(), context.options
    failed = [
        Progress(each, failed_settlement(each, cause, now_ms, options), is_sent=True)
        for each in settlements
    ]
    await record(context, failed)


async def read_outcomes(
    context: SettlementContext, confirmed: Sequence[Sequence[OpenSettlement]]
) -> None:
    """Have the trades that failed within confirmed batches go on alone."""
    if not confirmed:
        return
    async with context.database.reading() as tx:
        last = await load_last_block(tx)
        if last is None:
            return
        indexed = [
            batch for batch in confirmed if (batch[0].block_number or 0) <= last.block_number
        ]
        trades = [each for batch in indexed for each in batch]
        hashes = {each.mined_hash for each in trades if each.mined_hash is not None}
        settled = await load_settled_in(tx, [each.settlement.trade_id for each in trades], hashes)
    for batch in indexed:
        missing = [
            each.settlement
            for each in batch
            if (each.settlement.trade_id, each.mined_hash) not in settled
        ]
        if missing:
            await _read_failures(context, missing)


async def _read_failures(context: SettlementContext, missing: Sequence[Settlement]) -> None:
    """Have the trades of a confirmed batch that is indexed without them go on alone."""
    async with context.database.reading() as tx:
        sent = await load_tx(tx, SETTLEMENT, missing[0].tx_id or "")
    if sent is None or sent.mined_hash is None:
        return
    cause_by_call = await _failures(context, sent)
    rows = await load_matched(context, missing)
    failed, gas = [], 0
    for settlement, matched in zip(missing, rows, strict=True):
        # Earlier versions of the program packed no call, or did not sort its makers.
        forms = [
            matched._replace(is_packed=is_packed, is_sorted=is_sorted)
            for is_packed in (matched.is_packed, False)
            for is_sorted in (True, False)
        ]
        calls = [batched_trade(settlement, form).call.calldata for form in forms]
        cause = next((cause_by_call[call] for call in calls if call in cause_by_call), None)
        if cause is None:
            log.warning("trade neither settled nor failed in its batch", **settlement._asdict())
            continue
        log.warning("trade failed in its batch", trade_id=settlement.trade_id, cause=cause)
        after = settlement_after_batch(settlement, cause, context.now_ms(), context.options)
        failed.append(Progress(settlement, after, is_sent=True))
        gas += match_gas(len(matched.row.trade.fills)) + SHARE_GAS
    if await record(context, failed, batch_gas=gas) and gas:
        context.counts.gas(BATCH, gas)


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
