"""The check of questions that their creator asked itself: a market opens with the plan's terms only."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from foretell.chain.reader import Question
from foretell.creation.context import CreationContext
from foretell.domain.creation.asked_terms import AskedTerms
from foretell.domain.creation.payload import Payload, ResolutionType
from foretell.domain.creation.plan import MarketIds, stated_end_s
from foretell.domain.errors.creation import AlreadyInitialized

_Adopted = tuple[MarketIds, Question]
_Compared = tuple[MarketIds, AskedTerms, AskedTerms]
"""A question's ids, its terms and those of the plan."""


async def check_asked(context: CreationContext, payload: Payload, ids: Sequence[MarketIds]) -> None:
    """Refuse a payload with a question that the chain has with terms other than the planned ones."""
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

    Those of `planned_keys` came from the plan. The defaults of the optimistic adapter never change, but one of an
    earlier version accepts any liveness. A question of the direct stack has one term: when it ends.
    """
    adopted = [
        (each, question)
        for each, question in zip(ids, questions, strict=True)
        if question is not None and each.key not in planned_keys
    ]
    if not adopted:
        return
    is_optimistic = payload.resolution_type is ResolutionType.OPTIMISTIC
    compare = _other_terms if is_optimistic else _other_ends
    others = await compare(context, payload, adopted, reward_units)
    if others:
        _, terms, wanted = others[0]
        why = f"asked with {terms.describe()}, and the plan has {wanted.describe()}; ask another question"
        raise AlreadyInitialized([_duplicate(payload, *each) for each in others], why)


async def _other_terms(
    context: CreationContext, payload: Payload, adopted: Sequence[_Adopted], reward_units: int
) -> list[_Compared]:
    """Return the optimistic questions with other terms than the plan's."""
    proposal = await context.reader.proposal_terms(context.contracts(payload).adapter)
    wanted = AskedTerms(reward_units, proposal.bond_units, proposal.liveness_s)
    return [
        (ids, question.terms, wanted)
        for ids, question in adopted
        if not question.terms.satisfies(wanted)
    ]


async def _other_ends(
    context: CreationContext, payload: Payload, adopted: Sequence[_Adopted], _: int
) -> list[_Compared]:
    """Return the questions of the direct stack that do not end with the payload.

    Those of an adapter of an earlier version state no end.
    """
    if not await context.reader.states_end(context.contracts(payload).adapter):
        return []
    planned = [
        AskedTerms(0, 0, stated_end_s(payload.ends_at_ms, question.asked_at_s * 1000))
        for _, question in adopted
    ]
    return [
        (ids, question.terms, wanted)
        for (ids, question), wanted in zip(adopted, planned, strict=True)
        if not question.terms.ends_with(wanted)
    ]


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
