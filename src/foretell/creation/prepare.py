"""Preparation: plans the transactions that the creator of an accepted payload must send.

It needs storage and the chain, so it runs in the background, in steps that may run twice. See `accept` for what comes
before.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from foretell.creation.chain_checks.terms import check_terms
from foretell.creation.context import CreationContext
from foretell.creation.metadata import store_drafts, store_images
from foretell.domain.creation.payload import Payload, ResolutionType, parse_payload
from foretell.domain.creation.plan import (
    MarketIds,
    PlanFacts,
    build_plan,
    event_market_id,
    ids_of_markets,
    plan_cost_units,
    stated_end_s,
)
from foretell.domain.creation.request import (
    VERIFIED,
    Claim,
    RequestStatus,
    RequestTrigger,
    condition_claim,
    may_take,
    renewed_at_ms,
)
from foretell.domain.errors.creation import (
    AlreadyInitialized,
    CreatorNotWhitelisted,
    CreatorUnderfunded,
)
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.store.creation.claims import load_claims, record_claims
from foretell.store.creation.requests import (
    CreationRequest,
    drop_images,
    load_images,
    load_request,
    move_request,
    record_image_ids,
)
from foretell.store.database import Transaction

NAME_HELD: Final = (
    "a market with this slug or question exists already, or another request creates it"
)


def ids_of(context: CreationContext, payload: Payload) -> list[MarketIds]:
    """Return the ids of each market of a payload on the chain."""
    return ids_of_markets(payload, context.contracts(payload))


def claimed_names(payload: Payload, ids: Sequence[MarketIds]) -> list[str]:
    """Return what a request claims: every slug and condition of its payload."""
    return [*payload.slugs, *(condition_claim(each.condition_id) for each in ids)]


async def takeable_claims(
    tx: Transaction,
    request: CreationRequest,
    payload: Payload,
    ids: Sequence[MarketIds],
    now_ms: int,
) -> list[Claim]:
    """Return the claims on the payload's names, all of which the request may take, or refuse."""
    held = await load_claims(tx, claimed_names(payload, ids))
    kept = {
        claim.name
        for claim in held
        if claim.request_id != request.request_id
        and not may_take(claim, request.creator, request.created_at_ms, now_ms)
    }
    if kept:
        raise AlreadyInitialized(duplicates_of(payload, ids, kept), NAME_HELD)
    return held


async def _claim(
    tx: Transaction,
    request: CreationRequest,
    payload: Payload,
    ids: Sequence[MarketIds],
    now_ms: int,
) -> None:
    """Claim every slug and condition of the payload for this request, or refuse.

    An earlier request that loses a claim ends here. Claims of the same creator keep their time, so that
    new requests do not hold a name for longer. Requests of earlier versions have their claims already.
    """
    held = await takeable_claims(tx, request, payload, ids, now_ms)
    own = {claim.name for claim in held if claim.request_id == request.request_id}
    taken = [claim for claim in held if claim.name not in own]
    names = [name for name in claimed_names(payload, ids) if name not in own]
    claimed_at_ms = min(
        (renewed_at_ms(claim, request.creator, now_ms) for claim in taken), default=now_ms
    )
    if not (
        await record_claims(tx, request.request_id, names, taken, claimed_at_ms)
        and await _end_holders(tx, taken, request.request_id, now_ms)
    ):
        lost = {claim.name for claim in taken} or set(names)
        raise AlreadyInitialized(duplicates_of(payload, ids, lost), NAME_HELD)


async def _end_holders(
    tx: Transaction, taken: Sequence[Claim], request_id: str, now_ms: int
) -> bool:
    """End the requests that lost claims; False when one of them has moved in the meantime."""
    for holder in {claim.request_id for claim in taken if claim.status is not RequestStatus.FAILED}:
        ended = await load_request(tx, holder)
        assert ended is not None
        message = f"superseded: request {request_id} creates these markets"
        if ended.status in VERIFIED or not await move_request(
            tx, ended, RequestTrigger.FAIL, now_ms, error_message=message
        ):
            return False
    return True


def duplicates_of(
    payload: Payload, ids: Sequence[MarketIds], names: Collection[str]
) -> list[Mapping[str, str]]:
    """Return the payload's markets with taken names, or all of them if the event's slug is taken."""
    return [
        {
            "key": market.key,
            "slug": market.slug,
            "questionId": each.question_id,
            "conditionId": each.condition_id,
        }
        for market, each in zip(payload.markets, ids, strict=True)
        if not {payload.slug, market.slug, condition_claim(each.condition_id)}.isdisjoint(names)
    ]


async def run_preparation(context: CreationContext, request: CreationRequest) -> None:
    """Read the chain, store images and drafts, build the plan, and claim the names.

    Raises CreatorNotWhitelisted while the creator has no whitelist, and CreatorUnderfunded while it
    lacks the collateral of the plan. Until both are there, nothing is stored permanently, and the
    request keeps no name from others.
    """
    await check_whitelist(context, request.creator)  # before the payload is parsed
    payload = payload_of(context, request)
    await _funded_facts(context, request, payload)
    image_ids = await _stored_images(context, request)
    await store_drafts(context, payload, image_ids)
    await check_whitelist(context, request.creator)  # both may have changed meanwhile
    facts = await _funded_facts(context, request, payload)
    plan = build_plan(payload, context.contracts(payload), facts)
    ids, now_ms = ids_of(context, payload), context.now_ms()
    async with context.database.writing() as tx:
        if await move_request(tx, request, RequestTrigger.PLAN_BUILT, now_ms, plan=plan):
            await _claim(tx, request, payload, ids, now_ms)
        await drop_images(tx, request.request_id)


async def check_whitelist(context: CreationContext, creator: Address) -> None:
    """Refuse a creator without a whitelist: before the work that waits for one, and after it."""
    if await context.reader.proposer_whitelist(creator) is None:
        raise CreatorNotWhitelisted(creator)


async def _funded_facts(
    context: CreationContext, request: CreationRequest, payload: Payload
) -> PlanFacts:
    """Return the facts for the plan, or refuse a creator that lacks the collateral."""
    facts = await _facts(context, payload)
    cost_units = plan_cost_units(payload, facts)
    held_units = await context.reader.collateral_units(request.creator)
    if held_units < cost_units:
        cost, held = decimal_text(cost_units), decimal_text(held_units)
        raise CreatorUnderfunded(checksum_address(request.creator), cost, held)
    return facts


def payload_of(context: CreationContext, request: CreationRequest) -> Payload:
    """Return the accepted payload, without checking its end again."""
    assert request.payload is not None
    return parse_payload(request.payload, context.rules, now_ms=0)


async def _stored_images(context: CreationContext, request: CreationRequest) -> Mapping[str, str]:
    if request.image_ids:
        return request.image_ids
    await context.blobs.check_room()  # preparations that were accepted before fill it together
    async with context.database.reading() as tx:
        content_by_field = await load_images(tx, request.request_id)
    image_ids = await store_images(context, content_by_field)
    async with context.database.writing() as tx:
        await record_image_ids(tx, request.request_id, image_ids, context.now_ms())
    return image_ids


async def _facts(context: CreationContext, payload: Payload) -> PlanFacts:
    """Return the fee, the allowance, and the questions that the chain has already.

    Refuses a question that its creator asked with other terms than the plan's.
    """
    reader, contracts = context.reader, context.contracts(payload)
    ids = ids_of(context, payload)
    asked = await reader.questions([each.asked_id for each in ids], contracts.adapter)
    await check_terms(context, payload, ids, asked, context.options.reward_units)
    is_direct = payload.resolution_type is ResolutionType.DIRECT
    facts = PlanFacts(
        fee_units=await reader.creation_fee_units(contracts.adapter) if is_direct else 0,
        allowance_units=await reader.allowance_units(payload.creator, contracts.adapter),
        reward_units=0 if is_direct else context.options.reward_units,
        end_s=await _end_s(context, payload, contracts.adapter) if is_direct else 0,
        initialized_keys=frozenset(
            each.key for each, question in zip(ids, asked, strict=True) if question is not None
        ),
    )
    return facts if contracts.event is None else await _event_facts(context, payload, facts)


async def _end_s(context: CreationContext, payload: Payload, adapter: Address) -> int:
    """Return the seconds until the end that the direct questions of a plan state.

    An adapter of an earlier version accepts zero only, and so have its questions no stated end.
    """
    if not await context.reader.states_end(adapter):
        return 0
    return stated_end_s(payload.ends_at_ms, context.now_ms())


async def _event_facts(context: CreationContext, payload: Payload, facts: PlanFacts) -> PlanFacts:
    """Return the facts with the event's state on the chain.

    Refuses questions of another event, and an event that its creator sealed without all of them.
    """
    event = context.contracts(payload).event
    assert event is not None
    ids = ids_of(context, payload)
    known = [await context.reader.event_question(event.operator, each.asked_id) for each in ids]
    others = [
        each
        for each, question_id in zip(ids, known, strict=True)
        if question_id not in {None, each.question_id}
    ]
    if others:
        claims = {condition_claim(each.condition_id) for each in others}
        why = "a question belongs to another event of this creator"
        raise AlreadyInitialized(duplicates_of(payload, ids, claims), why)
    event_id = event_market_id(payload, event)
    creator = await context.reader.event_creator(event.operator, event_id)
    state = await context.reader.event_state(event.neg_risk_adapter, event_id)
    missing = [each for each, id_ in zip(ids, known, strict=True) if id_ is None]
    if state.is_sealed and missing:
        claims = {condition_claim(each.condition_id) for each in missing}
        why = "its event is sealed without it"
        raise AlreadyInitialized(duplicates_of(payload, ids, claims), why)
    return replace(
        facts,
        has_event=creator is not None,
        prepared_keys=frozenset({each.key for each in ids} - {each.key for each in missing}),
        is_sealed=state.is_sealed is not False,
    )
