"""Takes the hashes of what a creator sent, checks them against the plan, and opens the markets.

What `POST /finalize` answers is decided by what was sent and what the chain shows now. What waits
for the chain (confirmations, registration) runs in the background, in steps that may run twice.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from foretell.creation.context import CreationContext
from foretell.creation.market_rows import event_row, result_document, update_document
from foretell.creation.messages import SentTxs
from foretell.creation.metadata import store_final
from foretell.creation.prepare import ids_of, payload_of
from foretell.creation.registration import Registered, register
from foretell.domain.creation.payload import Payload
from foretell.domain.creation.plan import (
    MarketIds,
    MetadataName,
    PlanItem,
    PlanTx,
    SeenTx,
    build_metadata_plan,
    check_known,
    check_txs,
    check_unchanged,
)
from foretell.domain.creation.request import RequestStatus, RequestTrigger
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.errors.creation import (
    RegistrationPending,
    RegistrationRefused,
    RequestNotFound,
    TxPending,
)
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.creation.markets import record_event
from foretell.store.creation.requests import (
    CreationRequest,
    load_request,
    move_request,
    record_txs,
    record_verified,
)
from foretell.store.database import Transaction

_WAITING_FOR_TXS: Final = frozenset({RequestStatus.PREPARED, RequestStatus.METADATA_UPDATE_PENDING})
_FINALIZABLE: Final = _WAITING_FOR_TXS | {RequestStatus.FINALIZE_RUNNING, RequestStatus.FINALIZED}


async def confirm_txs(context: CreationContext, sent: SentTxs) -> CreationRequest:
    """Return the request with the hashes kept; whether they are true is asked when it finalizes."""
    return await _keep(context, sent, _WAITING_FOR_TXS, RequestTrigger.TX_CONFIRM)


async def finalize(context: CreationContext, sent: SentTxs) -> CreationRequest:
    """Return the request as far as what was sent and what the chain shows bring it."""
    request = await _keep(context, sent, _FINALIZABLE, RequestTrigger.FINALIZE)
    if request.status is RequestStatus.PREPARED:
        await _start(context, request)
    elif request.status is RequestStatus.METADATA_UPDATE_PENDING:
        await _complete(context, request)
    return await _load(context, sent)


async def _load(context: CreationContext, sent: SentTxs) -> CreationRequest:
    async with context.database.reading() as tx:
        request = await load_request(tx, sent.request_id)
    if request is None or request.creator != sent.creator:
        raise RequestNotFound(sent.request_id)
    return request


async def _keep(
    context: CreationContext,
    sent: SentTxs,
    takes: Collection[RequestStatus],
    trigger: RequestTrigger,
) -> CreationRequest:
    """Return the request with the hashes that were sent; one that was verified stays as it is.

    Refuses where the request takes none. A request that moved in between is read again, which
    ends: a life has no way back.
    """
    while True:
        request = await _load(context, sent)
        if request.status not in takes:
            raise IllegalTransition("request", request.status, trigger)
        check_known(sent.txs, (*(request.plan or ()), *request.metadata_plan))
        verified = {tx.item_id: tx.tx_hash for tx in request.txs if tx.is_verified}
        check_unchanged(sent.txs, verified)
        new = [tx for tx in sent.txs if request.hash_by_id.get(tx.item_id) != tx.tx_hash]
        if not new:
            return request
        async with context.database.writing() as tx:
            if await record_txs(tx, request, new, context.now_ms()):
                break
    return await _load(context, sent)


async def _start(context: CreationContext, request: CreationRequest) -> None:
    """Let finalization begin, once every item of the plan is in a block as planned."""
    assert request.plan is not None
    await _check_done(context, request, request.plan)
    async with context.database.writing() as tx:
        now_ms = context.now_ms()
        if await _record_done(tx, request, request.plan, now_ms):
            await move_request(tx, request, RequestTrigger.FINALIZE, now_ms)


async def _complete(context: CreationContext, request: CreationRequest) -> None:
    """Open the markets, once the creator has named their metadata; before that nothing changes."""
    plan = request.metadata_plan
    if any(item.item_id not in request.hash_by_id for item in plan):
        return
    await _check_done(context, request, plan)
    hash_by_key = {item.market_key: request.hash_by_id[item.item_id] for item in plan}
    updates = [
        {**update, "updateTxHash": hash_by_key.get(update["key"])}
        for update in request.metadata_updates
    ]
    async with context.database.writing() as tx:
        now_ms = context.now_ms()
        if await _record_done(tx, request, plan, now_ms):
            await move_request(
                tx, request, RequestTrigger.COMPLETE, now_ms, metadata_updates=updates
            )
            await record_event(tx, event_row(context, request, updates), now_ms)


async def _record_done(
    tx: Transaction, request: CreationRequest, plan: Sequence[PlanItem], now_ms: int
) -> bool:
    """Store exactly the hashes that were checked, as verified; False when the request moved on.

    Anyone may send a hash for a request that waits, also while the chain is asked about the
    creator's own.
    """
    done = [PlanTx(item.item_id, request.hash_by_id[item.item_id]) for item in plan]
    if not await record_txs(tx, request, done, now_ms):
        return False
    await record_verified(tx, request.request_id, [each.item_id for each in done])
    return True


async def _check_done(
    context: CreationContext, request: CreationRequest, plan: Sequence[PlanItem]
) -> Mapping[Bytes32, SeenTx]:
    """Return what the chain shows of a plan's transactions, or refuse what is not as planned."""
    hashes = list(
        {request.hash_by_id[item.item_id] for item in plan if item.item_id in request.hash_by_id}
    )
    txs = await context.reader.transactions(hashes)
    receipts = await context.reader.receipts(hashes)
    seen_by_hash = {
        known.tx_hash: SeenTx(
            sender=known.sender,
            target=known.target,
            value_wei=known.value_wei,
            calldata=known.calldata,
            is_success=None if receipt is None else receipt.is_success,
            block_number=None if receipt is None else receipt.block_number,
        )
        for known, receipt in zip(txs, receipts, strict=True)
        if known is not None
    }
    check_txs(plan, request.hash_by_id, seen_by_hash, request.creator)
    return seen_by_hash


async def run_finalization(context: CreationContext, request: CreationRequest) -> None:
    """Wait for confirmations, register the tokens, store the metadata, and name what is left.

    Raises TxPending or RegistrationPending while the chain is not there yet.
    """
    payload = payload_of(context, request)
    await _check_confirmed(context, request)
    ids = ids_of(context, payload)
    await _check_asked(context, payload, ids)
    registered = await _registered(context, ids, request.entered_at_ms)
    names = [await _named(context, payload, each, request.image_ids) for each in ids]
    plan = build_metadata_plan(names, context.contracts(payload))
    updates = [update_document(name) for name in names]
    changes = {
        "register_results": [
            result_document(context, each, done) for each, done in zip(ids, registered, strict=True)
        ],
        "metadata_updates": updates,
        "metadata_plan": [item.document() for item in plan],
    }
    trigger = RequestTrigger.UPDATES_NEEDED if plan else RequestTrigger.COMPLETE
    async with context.database.writing() as tx:
        now_ms = context.now_ms()
        has_moved = await move_request(tx, request, trigger, now_ms, **changes)
        if has_moved and not plan:
            await record_event(tx, event_row(context, request, updates), now_ms)


async def _check_confirmed(context: CreationContext, request: CreationRequest) -> None:
    """Refuse while a transaction of the plan is not as deep in the chain as it must be."""
    assert request.plan is not None
    seen_by_hash = await _check_done(context, request, request.plan)
    head = await context.reader.head()
    deepest = head - context.options.confirmations
    shallow = [
        {"id": item.item_id, "hash": request.hash_by_id[item.item_id]}
        for item in request.plan
        if (seen_by_hash[request.hash_by_id[item.item_id]].block_number or 0) > deepest
    ]
    if shallow:
        raise TxPending(shallow)


async def _check_asked(
    context: CreationContext, payload: Payload, ids: Sequence[MarketIds]
) -> None:
    """Refuse while the chain has not every question: an adopted one may have been taken back.

    In an event each has its place: what was added in another order cannot be told apart.
    """
    contracts = context.contracts(payload)
    for each in ids:
        if await context.reader.question(each.asked_id, contracts.adapter) is None:
            raise ChainInconsistent(f"question {each.asked_id} is not on the chain")
        if contracts.event is None:
            continue
        found = await context.reader.event_question(contracts.event.operator, each.asked_id)
        if found is None:
            raise ChainInconsistent(f"question {each.asked_id} is in no event on the chain")
        if found != each.question_id:
            why = f"its question is {found}, because questions were added in another order"
            raise RegistrationRefused(each.condition_id, why)


async def _registered(
    context: CreationContext, ids: Sequence[MarketIds], since_ms: int
) -> list[Registered]:
    """Return how each market's tokens were registered, or refuse while one is on its way."""
    registered = [await register(context, each, since_ms) for each in ids]
    done = [each for each in registered if each is not None]
    if len(done) < len(ids):
        raise RegistrationPending([each.condition_id for each in ids])
    return done


async def _named(
    context: CreationContext, payload: Payload, ids: MarketIds, image_ids: Mapping[str, str]
) -> MetadataName:
    """Return the id of a market's stored metadata, beside the one that the chain names."""
    entry = await context.reader.market_entry(ids.condition_id)
    return MetadataName(
        market=next(market for market in payload.markets if market.key == ids.key),
        condition_id=ids.condition_id,
        metadata_id=await store_final(context, payload, ids, image_ids),
        metadata_id_on_chain="" if entry is None else entry.metadata_id,
    )
