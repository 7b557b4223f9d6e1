"""Actions about the market of the direct stack: answers, flags, and the ways out of a market without answer.

Each succeeds exactly when the rules of the stack say so.
"""

from typing import Final

from tests.contracts.resolution import (
    PRICE_NO,
    PRICE_UNKNOWN,
    PRICE_YES,
    YES_OR_NO_QUERY,
    with_initializer,
)
from tests.contracts.scenarios.lives import DIRECT_TEXT, PAYOUT_BY_PRICE, Life
from tests.contracts.scenarios.scenario import Step

SAFETY_S: Final = 7 * 24 * 3600
FALLBACK_S: Final = 30 * 24 * 3600
UNFLAG_S: Final = 365 * 24 * 3600
PRICES: Final = (PRICE_YES, PRICE_NO, PRICE_UNKNOWN)


def flag_direct(life: Life, step: Step) -> None:
    """Flag the market as any account, or take the flag back as the admin."""
    resolution, question = life.rig.neg_risk.resolution, question_of(life)
    if step.second % 4 == 0:
        stranger = life.account(step.actor)
        assert not life.attempt(stranger, resolution.adapter, "unflag", question)
        is_in_time = life.rig.evm.now() < life.life.direct_ends_at + UNFLAG_S
        is_due = is_open(life) and life.direct_flagged_at > 0 and is_in_time
        assert life.attempt(resolution.admin, resolution.adapter, "unflag", question) == is_due
        life.direct_flagged_at = 0 if is_due else life.direct_flagged_at
        life.done["direct unflagged"] += is_due
    else:
        flag(life, life.account(step.actor))


def flag(life: Life, who: str) -> None:
    """Flag the market, which nobody can before its end."""
    now = life.rig.evm.now()
    is_ended = now >= life.life.direct_ends_at
    is_due = is_open(life) and is_ended and not life.direct_flagged_at
    adapter = life.rig.neg_risk.resolution.adapter
    assert life.attempt(who, adapter, "flag", question_of(life)) == is_due
    life.direct_flagged_at = now if is_due else life.direct_flagged_at
    life.done["direct flagged"] += is_due


def change_direct_adapter(life: Life, step: Step) -> None:
    """Have the oracle speak to the adapter no more, or again."""
    resolution = life.rig.neg_risk.resolution
    name = "removeAdapter" if step.second % 2 else "addAdapter"
    arguments = resolution.oracle, name, resolution.adapter.address
    assert not life.attempt(life.account(step.actor), *arguments)
    assert life.attempt(resolution.admin, *arguments)
    life.has_direct_adapter = name == "addAdapter"
    life.done["direct adapter removed"] += not life.has_direct_adapter


def answer_direct(life: Life, step: Step) -> None:
    """Answer by the proposer, by the admin, or by the fall-back, at some steps after the needed time."""
    way = (propose, answer_manually, fall_back, fall_back)[step.second % 4]
    if way is propose and step.amount % 4:
        return
    if way is not propose and step.third % 4 == 0:
        wait_for_end(life, FALLBACK_S if way is fall_back else SAFETY_S)
    way(life, step)


def propose(life: Life, step: Step) -> None:
    resolution, question = life.rig.neg_risk.resolution, question_of(life)
    price = PRICES[step.third % len(PRICES)]
    arguments = (
        *(resolution.adapter.address, question, YES_OR_NO_QUERY),
        *(resolution.asked_at(DIRECT_TEXT), with_initializer(DIRECT_TEXT, resolution.creator)),
        price,
    )
    call = resolution.oracle, "proposeAndResolve", *arguments
    assert not life.attempt(life.account(step.actor), *call)
    is_due = is_open(life) and life.has_direct_adapter
    assert life.attempt(resolution.proposer, *call) == is_due
    end(life, PAYOUT_BY_PRICE[price], "direct proposed", is_due=is_due)


def answer_manually(life: Life, step: Step) -> None:
    resolution, payout = life.rig.neg_risk.resolution, [*PAYOUT_BY_PRICE.values()][step.third % 3]
    call = resolution.adapter, "resolveManually", question_of(life), list(payout)
    assert not life.attempt(life.account(step.actor), *call)
    is_due = is_open(life) and is_flagged_for(life, SAFETY_S)
    assert life.attempt(resolution.admin, *call) == is_due
    end(life, payout, "direct answered by the admin", is_due=is_due)


def fall_back(life: Life, step: Step) -> None:
    """End the market at a half, as any account."""
    who, adapter = life.account(step.actor), life.rig.neg_risk.resolution.adapter
    is_due = is_open(life) and is_flagged_for(life, FALLBACK_S)
    assert life.attempt(who, adapter, "resolveByFallback", question_of(life)) == is_due
    end(life, (1, 1), "direct fall-back", is_due=is_due)


def end(life: Life, payout: tuple[int, int], name: str, *, is_due: bool) -> None:
    """Have the market pay, if the call that ends it went through."""
    if is_due:
        for token, numerator in zip(life.life.direct.pair, payout, strict=True):
            life.expected.payout_by_token[token] = numerator, sum(payout)
        life.done[name] += 1


def end_direct(life: Life) -> None:
    """End the market, by its proposer or without it."""
    step = Step(0, 0, 0, 0, life.salt, 0)
    if life.has_direct_adapter and life.salt % 3 == 0:
        propose(life, step)
    elif life.salt % 3 == 1:
        wait_for_end(life, SAFETY_S)
        answer_manually(life, step)
    else:
        wait_for_end(life, FALLBACK_S)
        fall_back(life, step)
    assert not is_open(life)


def wait_for_end(life: Life, period_s: int) -> None:
    """Wait until the market can be flagged, flag it, and wait for the period."""
    evm = life.rig.evm
    evm.rpc("evm_increaseTime", max(0, life.life.direct_ends_at - evm.now()))
    flag(life, life.accounts[0])
    evm.rpc("evm_increaseTime", period_s)


def is_open(life: Life) -> bool:
    return not life.is_answered(life.life.direct)


def is_flagged_for(life: Life, period_s: int) -> bool:
    flagged_at = life.direct_flagged_at
    return flagged_at > 0 and life.rig.evm.now() >= flagged_at + period_s


def question_of(life: Life) -> bytes:
    return life.rig.neg_risk.resolution.question_id(DIRECT_TEXT)
