"""The dry run of a payload: what is wrong with it, what it would create, and what that would cost.

Nothing is signed, stored or claimed. The chain is read a fixed number of times, however many markets
a payload has, because the route is open to all.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from foretell.creation.chain_checks.terms import check_asked
from foretell.creation.context import CreationContext
from foretell.creation.prepare import claimed_names, duplicates_of, ids_of
from foretell.creation.responses import CreationFees, PlannedMarket, Problem, ValidationResponse
from foretell.domain.creation.payload import (
    MarketDraft,
    Payload,
    ResolutionType,
    parse_payload,
    payload_hash,
)
from foretell.domain.creation.plan import MarketIds
from foretell.domain.creation.request import may_take
from foretell.domain.errors.creation import AlreadyInitialized
from foretell.domain.errors.families import InvalidFields
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.creation.claims import load_claims

WHOLE: Final = "payload"
"""The field of a problem of the payload as a whole."""


async def validate_payload(context: CreationContext, raw: bytes) -> ValidationResponse:
    """Return all problems of a payload, or the markets and fees of a valid one."""
    try:
        payload = parse_payload(raw, context.rules, context.now_ms())
    except InvalidFields as refusal:
        return ValidationResponse(
            valid=False,
            payload_hash=payload_hash(raw),
            problems=[_problem(**each) for each in refusal.details["problems"]],
            duplicates=[],
        )
    ids = ids_of(context, payload)
    async with context.database.public_reading() as tx:
        held = await load_claims(tx, claimed_names(payload, ids))
    now_ms = context.now_ms()
    taken = {claim.name for claim in held if not may_take(claim, payload.creator, now_ms, now_ms)}
    duplicates = [
        *duplicates_of(payload, ids, taken),
        *await _of_other_terms(context, payload, ids),
    ]
    whitelist = await context.reader.proposer_whitelist(payload.creator)
    return ValidationResponse(
        valid=not duplicates,
        payload_hash=payload_hash(raw),
        problems=[],
        duplicates=duplicates,
        slug=payload.slug,
        chain_id=payload.chain_id,
        markets=[
            _market(context, market, each)
            for market, each in zip(payload.markets, ids, strict=True)
        ],
        fees=await _fees(context, payload),
        creator_is_whitelisted=whitelist is not None,
    )


async def _of_other_terms(
    context: CreationContext, payload: Payload, ids: Sequence[MarketIds]
) -> Sequence[Mapping[str, Any]]:
    """Return the markets whose questions the chain has with other terms than the plan's."""
    try:
        await check_asked(context, payload, ids)
    except AlreadyInitialized as refusal:
        duplicates: Sequence[Mapping[str, Any]] = refusal.details["duplicates"]
        return duplicates
    return ()


def _problem(field: str, message: str) -> Problem:
    """Return a problem with the JSON pointer of its field (RFC 6901)."""
    pointer = "" if field == WHOLE else "/" + field.replace("~", "~0")
    return Problem(pointer=pointer, field=field, message=message)


def _market(context: CreationContext, market: MarketDraft, ids: MarketIds) -> PlannedMarket:
    return PlannedMarket(
        market_key=market.key,
        slug=market.slug,
        question=market.question,
        title=market.title,
        outcomes=[market.outcome_yes, market.outcome_no],
        question_id=ids.question_id,
        condition_id=ids.condition_id,
        exchange=checksum_address(context.exchange(ids)),
        token_a=str(ids.tokens.yes),
        token_b=str(ids.tokens.no),
    )


async def _fees(context: CreationContext, payload: Payload) -> CreationFees:
    """Return the fees if the chain has none of the questions; a plan leaves out those that it has."""
    is_direct = payload.resolution_type is ResolutionType.DIRECT
    adapter = context.contracts(payload).adapter
    fee_units = await context.reader.creation_fee_units(adapter) if is_direct else 0
    reward_units = 0 if is_direct else context.options.reward_units
    held_units = await context.reader.collateral_units(payload.creator)
    return CreationFees(
        fee_per_market=decimal_text(fee_units),
        reward_per_market=decimal_text(reward_units),
        total=decimal_text((fee_units + reward_units) * len(payload.markets)),
        creator_holds=decimal_text(held_units),
    )
