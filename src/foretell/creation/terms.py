"""The check of questions that their creator asked itself: a market opens with the plan's terms only."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from foretell.chain.reader import Question
from foretell.creation.context import CreationContext
from foretell.domain.creation.asked_terms import AskedTerms
from foretell.domain.creation.payload import Payload, ResolutionType
from foretell.domain.creation.plan import MarketIds
from foretell.domain.errors.creation import AlreadyInitialized


async def check_asked(context: CreationContext, payload: Payload, ids: Sequence[MarketIds]) -> None:
    """Refuse a payload with a question that the chain has with terms other than the planned ones."""
    if payload.resolution_type is not ResolutionType.OPTIMISTIC:
        return
    adapter = context.contracts(payload).adapter
    questions = await context.reader.questions([each.asked_id for each in ids], adapter)
    await check_terms(context, payload, ids, questions, context.options.reward_units)


async def check_terms(
    context: CreationContext,
    payload: Payload,
    ids: Sequence[MarketIds],
    questions: Sequence[Question | None],
    reward_units: int,
    planned_keys: Collection[str] = (),
) -> None:
    """Refuse questions with other terms than the plan's, of which the reward may be higher.

    Those of `planned_keys` came from the plan.

    Questions of the direct stack have no terms. The defaults of the adapter never change, but an
    adapter of an earlier version accepts any liveness.
    """
    if payload.resolution_type is not ResolutionType.OPTIMISTIC:
        return
    adopted = [
        (each, question.terms)
        for each, question in zip(ids, questions, strict=True)
        if question is not None and each.key not in planned_keys
    ]
    if not adopted:
        return
    proposal = await context.reader.proposal_terms(context.contracts(payload).adapter)
    wanted = AskedTerms(reward_units, proposal.bond_units, proposal.liveness_s)
    others = [(each, terms) for each, terms in adopted if not terms.satisfies(wanted)]
    if others:
        why = f"asked with {others[0][1].describe()}, and the plan has {wanted.describe()}; ask another question"
        raise AlreadyInitialized(
            [_duplicate(payload, each, terms, wanted) for each, terms in others], why
        )


def _duplicate(
    payload: Payload, ids: MarketIds, terms: AskedTerms, wanted: AskedTerms
) -> Mapping[str, Any]:
    slug = next(market.slug for market in payload.markets if market.key == ids.key)
    return {
        "key": ids.key,
        "slug": slug,
        "questionId": ids.question_id,
        "conditionId": ids.condition_id,
        "terms": terms.wire(),
        "plannedTerms": wanted.wire(),
    }
