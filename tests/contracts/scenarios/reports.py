"""Actions about the answers of the sealed event: reports, flags that hold them up, and emergencies.

Each succeeds exactly when the expected reports say so.
"""

from tests.contracts.evm import Reverted
from tests.contracts.neg_risk.rig import text_of
from tests.contracts.resolution import PRICE_NO, PRICE_YES, YES_OR_NO_QUERY, with_initializer
from tests.contracts.scenarios.expected import QUESTIONS
from tests.contracts.scenarios.expected_reports import EMERGENCY_DELAY_S, HOLD_S
from tests.contracts.scenarios.scenario import Scenario, Step


def answer_question(scenario: Scenario, step: Step) -> None:
    """Answer a question at some steps: at once, by a report to pass on later, or by the admin."""
    index, is_yes = step.actor % QUESTIONS, step.amount % 3 == 0
    if step.second % 16:
        return
    if step.third % 4 == 0:
        answer_by_emergency(scenario, index, is_yes=is_yes)
    elif step.third % 4 == 1:
        report(scenario, index, is_yes=is_yes)
        if step.amount % 2:
            set_flag(scenario, index, "flagQuestion")
            pass_on_as(scenario, scenario.account(step.actor), index)
    else:
        answer_at_once(scenario, index, is_yes=is_yes)


def answer_at_once(scenario: Scenario, index: int, *, is_yes: bool) -> None:
    event, price = scenario.rig.neg_risk, PRICE_YES if is_yes else PRICE_NO
    is_due = scenario.reports.answer(index, scenario.rig.evm.now(), is_yes=is_yes)
    refusal = ""
    try:
        event.answer(index, price, scenario.rig.event_market)
    except Reverted as refused:
        refusal = refused.name or "no name"
    assert is_due == (refusal == ""), refusal
    note_answers(scenario)


def report(scenario: Scenario, index: int, *, is_yes: bool) -> None:
    """Report an answer, which anybody passes on later."""
    event, request = scenario.rig.neg_risk, scenario.rig.neg_risk.request(index)
    resolution = event.resolution
    arguments = (
        *(event.requests.address, request, YES_OR_NO_QUERY),
        event.requests.call("questionState", request)[0],
        with_initializer(text_of(index), event.creator),
        PRICE_YES if is_yes else PRICE_NO,
    )
    is_due = scenario.reports.report(index, scenario.rig.evm.now(), is_yes=is_yes)
    oracle = resolution.oracle
    assert scenario.attempt(resolution.proposer, oracle, "proposeAndResolve", *arguments) == is_due
    scenario.done["reported"] += is_due


def pass_on(scenario: Scenario, step: Step) -> None:
    """Pass a reported answer on, as any account."""
    pass_on_as(scenario, scenario.account(step.actor), step.second % QUESTIONS)


def pass_on_as(scenario: Scenario, who: str, index: int) -> None:
    event, now = scenario.rig.neg_risk, scenario.rig.evm.now()
    is_flagged = index in scenario.reports.flagged_at
    is_due = scenario.reports.pass_on(index, now)
    question = event.question(index, scenario.rig.event_market)
    assert scenario.attempt(who, event.operator, "resolveQuestion", question) == is_due
    scenario.done["held up"] += not is_due and scenario.refusal == "Flagged"
    scenario.done["passed on"] += is_due
    scenario.done["passed on after the hold"] += is_due and is_flagged
    note_answers(scenario)


def flag_question(scenario: Scenario, step: Step) -> None:
    """Flag a question or take its flag back, as the operator's admin; another account is refused."""
    event, index = scenario.rig.neg_risk, step.second % QUESTIONS
    question = event.question(index, scenario.rig.event_market)
    name = "unflagQuestion" if step.third % 2 else "flagQuestion"
    assert not scenario.attempt(scenario.account(step.actor), event.operator, name, question)
    set_flag(scenario, index, name)


def set_flag(scenario: Scenario, index: int, name: str) -> None:
    event, reports = scenario.rig.neg_risk, scenario.reports
    question, admin = event.question(index, scenario.rig.event_market), event.resolution.admin
    is_flag = name == "flagQuestion"
    is_due = reports.flag(index, scenario.rig.evm.now()) if is_flag else reports.unflag(index)
    assert scenario.attempt(admin, event.operator, name, question) == is_due
    scenario.done["flagged" if is_flag else "unflagged"] += is_due


def answer_by_emergency(scenario: Scenario, index: int, *, is_yes: bool) -> None:
    """Flag a question, and answer it an hour later, as the admin; earlier it is refused."""
    event, reports = scenario.rig.neg_risk, scenario.reports
    question = event.question(index, scenario.rig.event_market)
    operator, admin, evm = event.operator, event.resolution.admin, scenario.rig.evm
    set_flag(scenario, index, "flagQuestion")
    for delay_s in (0, EMERGENCY_DELAY_S):
        evm.rpc("evm_increaseTime", delay_s)
        is_due = reports.answer_by_emergency(index, evm.now(), is_yes=is_yes)
        name = "emergencyResolveQuestion"
        assert scenario.attempt(admin, operator, name, question, is_yes) == is_due
        scenario.done["emergency"] += is_due
    note_answers(scenario)


def note_answers(scenario: Scenario) -> None:
    """Have the answered questions' tokens paid."""
    for index, is_yes in scenario.answered.items():
        yes, no = scenario.rig.questions[index].pair
        scenario.expected.payout_by_token |= {yes: (int(is_yes), 1), no: (int(not is_yes), 1)}


def answer_all(scenario: Scenario) -> None:
    """Answer every question of the event, held up or not."""
    for index in range(QUESTIONS):
        answer_question(scenario, Step(0, index, 0, 0, index, 1))
        if index not in scenario.reports.reported_at:
            report(scenario, index, is_yes=False)
    scenario.rig.evm.rpc("evm_increaseTime", HOLD_S)
    for _ in range(QUESTIONS):
        for index in range(QUESTIONS):
            pass_on_as(scenario, scenario.accounts[0], index)
    assert len(scenario.answered) == QUESTIONS
