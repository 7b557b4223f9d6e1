"""Finalization: checks a creator's transactions against the plan, and opens the markets.

The answer of `POST /finalize` depends on the hashes that were sent and on the chain's current state.
Work that waits for the chain (confirmations, registration) runs in the background, in steps that may
run twice.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import structs

from foretell.creation.chain_checks.plan_txs import fetch_plan_txs
from foretell.creation.chain_checks.terms import check_terms
from foretell.creation.context import CreationContext
from foretell.creation.market_rows import event_row, registration_of, update_of
from foretell.creation.messages import SentTxs
from foretell.creation.metadata import store_final
from foretell.creation.prepare import ids_of, payload_of
from foretell.creation.registration import Registered, register
from foretell.domain.creation.payload import Payload
from foretell.domain.creation.plan import (
    EventContracts,
    MarketIds,
    MetadataName,
    PlanItem,
    PlanTx,
    SeenTx,
    build_metadata_plan,
    check_known,
    check_unchanged,
    event_market_id,
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
from foretell.store.failures import after_effect

_WAITING_FOR_TXS: Final = frozenset({RequestStatus.PREPARED, RequestStatus.METADATA_UPDATE_PENDING})
_FINALIZABLE: Final = _WAITING_FOR_TXS | {RequestStatus.FINALIZE_RUNNING, RequestStatus.FINALIZED}


async def confirm_txs(context: CreationContext, sent: SentTxs) -> CreationRequest:
    """Return the request with the hashes stored; they are checked when it is finalized.

    In every later status the same hashes again change nothing and are no error: the client may have
    lost the first answer.
    """
    return await _keep(context, sent, _WAITING_FOR_TXS, RequestTrigger.TX_CONFIRM)


async def finalize(context: CreationContext, sent: SentTxs) -> CreationRequest:
    """Return the request, advanced as far as its hashes and the chain allow."""
    request = await _keep(context, sent, _FINALIZABLE, RequestTrigger.FINALIZE)
    if request.status is RequestStatus.PREPARED:
        await _start(context, request)
    elif request.status is RequestStatus.METADATA_UPDATE_PENDING:
        await _complete(context, request)
    with after_effect():
        return await _load(context, sent)


async def _load(context: CreationContext, sent: SentTxs) -> CreationRequest:
    async with context.database.public_reading() as tx:
        request = await load_request(tx, sent.request_id)
    if request is None or request.creator != sent.creator:
        raise RequestNotFound(sent.request_id)
    return request


async def _keep(
    context: CreationContext,
    sent: SentTxs,
    accepting: Collection[RequestStatus],
    trigger: RequestTrigger,
) -> CreationRequest:
    """Return the request with the sent hashes stored; a verified hash stays as it is.

    Refuses if the request's status accepts no hashes. A request that moved in between is read again;
    that ends, because statuses only move forward.
    """
    while True:
        request = await _load(context, sent)
        if request.status not in accepting:
            if trigger is RequestTrigger.TX_CONFIRM and _has_all(request, sent.txs):
                return request
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
    with after_effect():
        return await _load(context, sent)


def _has_all(request: CreationRequest, txs: Sequence[PlanTx]) -> bool:
    """Return whether a request that had a plan has stored each of these hashes already."""
    return request.plan is not None and all(
        request.hash_by_id.get(tx.item_id) == tx.tx_hash for tx in txs
    )


async def _start(context: CreationContext, request: CreationRequest) -> None:
    """Start finalization once every item of the plan is in a block as planned."""
    assert request.plan is not None
    await _fetch_done(context, request, request.plan)
    async with context.database.writing() as tx:
        now_ms = context.now_ms()
        if await _record_done(tx, request, request.plan, now_ms):
            await move_request(tx, request, RequestTrigger.FINALIZE, now_ms)


async def _complete(context: CreationContext, request: CreationRequest) -> None:
    """Open the markets once the creator has set their metadata; before that change nothing."""
    plan = request.metadata_plan
    if any(item.item_id not in request.hash_by_id for item in plan):
        return
    await _fetch_done(context, request, plan)
    hash_by_key = {item.market_key: request.hash_by_id[item.item_id] for item in plan}
    updates = [
        structs.replace(update, update_tx_hash=hash_by_key.get(update.key))
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
    """Store exactly the checked hashes, as verified; False when the request has moved.

    Anyone may send hashes for a waiting request, also while the creator's are being checked.
    """
    done = [PlanTx(item.item_id, request.hash_by_id[item.item_id]) for item in plan]
    if not await record_txs(tx, request, done, now_ms):
        return False
    await record_verified(tx, request.request_id, [each.item_id for each in done])
    return True


async def _fetch_done(
    context: CreationContext, request: CreationRequest, plan: Sequence[PlanItem]
) -> Mapping[Bytes32, SeenTx]:
    """Return the transactions of a plan as the chain has them, or refuse any that differ."""
    return await fetch_plan_txs(context.reader.rpc, plan, request.hash_by_id, request.creator)


async def run_finalization(context: CreationContext, request: CreationRequest) -> None:
    """Check confirmations, register the tokens, store the metadata, and plan its updates.

    Raises TxPending or RegistrationPending while the chain has not got that far.
    """
    payload = payload_of(context, request)
    await _check_confirmed(context, request)
    ids = ids_of(context, payload)
    await _check_questions(context, request, payload, ids)
    registered = await _registered(context, ids, request.entered_at_ms)
    names = [await _named(context, payload, each, request.image_ids) for each in ids]
    plan = build_metadata_plan(names, context.contracts(payload))
    updates = [update_of(context, name) for name in names]
    registrations = [
        registration_of(context, each, done) for each, done in zip(ids, registered, strict=True)
    ]
    trigger = RequestTrigger.UPDATES_NEEDED if plan else RequestTrigger.COMPLETE
    async with context.database.writing() as tx:
        now_ms = context.now_ms()
        has_moved = await move_request(
            tx,
            request,
            trigger,
            now_ms,
            register_results=registrations,
            metadata_updates=updates,
            metadata_plan=plan,
        )
        if has_moved and not plan:
            await record_event(tx, event_row(context, request, updates), now_ms)


async def _check_confirmed(context: CreationContext, request: CreationRequest) -> None:
    """Refuse while a transaction of the plan lacks confirmations."""
    assert request.plan is not None
    seen_by_hash = await _fetch_done(context, request, request.plan)
    head = await context.reader.head()
    deepest = head - context.options.confirmations
    shallow = [
        {"id": item.item_id, "hash": request.hash_by_id[item.item_id]}
        for item in request.plan
        if (seen_by_hash[request.hash_by_id[item.item_id]].block_number or 0) > deepest
    ]
    if shallow:
        raise TxPending(shallow)


async def _check_questions(
    context: CreationContext, request: CreationRequest, payload: Payload, ids: Sequence[MarketIds]
) -> None:
    """Refuse while the chain lacks a question: a reorg may have removed or changed an adopted one.

    The reward is not compared: an operator may have raised it since the plan. In an event each question has
    its place, because its id follows from the order of adding.
    """
    contracts = context.contracts(payload)
    asked = [each.asked_id for each in ids]
    questions = await context.reader.questions(asked, contracts.adapter)
    planned_keys = {
        item.market_key or "" for item in request.plan or () if item.target == contracts.adapter
    }
    await check_terms(context, payload, ids, questions, 0, planned_keys)
    for each, question in zip(ids, questions, strict=True):
        if question is None:
            raise ChainInconsistent(f"question {each.asked_id} is not on the chain")
        if contracts.event is None:
            continue
        found = await context.reader.event_question(contracts.event.operator, each.asked_id)
        if found is None:
            raise ChainInconsistent(f"question {each.asked_id} is in no event on the chain")
        if found != each.question_id:
            why = f"its question is {found}, because questions were added in another order"
            raise RegistrationRefused(each.condition_id, why)
    if contracts.event is not None:
        await _check_sealed(context, payload, contracts.event, ids)


async def _check_sealed(
    context: CreationContext, payload: Payload, event: EventContracts, ids: Sequence[MarketIds]
) -> None:
    """Refuse an event that may get more questions, or has more than the payload.

    One of them could be true, and none of the event's markets would pay.
    """
    event_id = event_market_id(payload, event)
    state = await context.reader.event_state(event.neg_risk_adapter, event_id)
    if state.is_sealed is None:
        return
    if state.question_count != len(ids):
        why = f"its event has {state.question_count} questions, and the payload {len(ids)}"
        raise RegistrationRefused(ids[0].condition_id, why)
    if not state.is_sealed:
        raise ChainInconsistent(f"event {event_id} is not sealed on the chain")


async def _registered(
    context: CreationContext, ids: Sequence[MarketIds], since_ms: int
) -> list[Registered]:
    """Return the registration of each market's tokens, or refuse while one is in progress."""
    registered = [await register(context, each, since_ms) for each in ids]
    done = [each for each in registered if each is not None]
    if len(done) < len(ids):
        raise RegistrationPending([each.condition_id for each in ids])
    return done


async def _named(
    context: CreationContext, payload: Payload, ids: MarketIds, image_ids: Mapping[str, str]
) -> MetadataName:
    """Return the id of a market's stored metadata and the id that the chain has."""
    entry = await context.reader.market_entry(ids.condition_id)
    return MetadataName(
        market=next(market for market in payload.markets if market.key == ids.key),
        condition_id=ids.condition_id,
        metadata_id=await store_final(context, payload, ids, image_ids),
        metadata_id_on_chain="" if entry is None else entry.metadata_id,
    )
