from dataclasses import replace

import pytest
from tests.contracts.evm import Contract, own_artifact, reverts
from tests.contracts.neg_risk.rig import EVENT, NegRisk
from tests.contracts.optimistic import (
    ARBITRATION_S,
    BOND,
    HOLD_S,
    IGNORE,
    LIVENESS_S,
    REQUESTED,
    REWARD,
    SAFETY_S,
    Optimistic,
    deploy_optimistic_event,
)
from tests.contracts.resolution import (
    INITIALIZED,
    PRICE_NO,
    PRICE_UNKNOWN,
    PRICE_YES,
    RESOLVED,
    YES_OR_NO_QUERY,
)
from tests.contracts.signing import ZERO

LIVENESS_MAX_S = 7 * 24 * 3_600
ANSWER_S = 7 * 24 * 3_600
UNRESOLVED = (0, 0, 0)


@pytest.fixture
def asked(optimistic: Optimistic) -> Optimistic:
    optimistic.ask()
    return optimistic


@pytest.fixture
def answered(asked: Optimistic) -> Optimistic:
    """A question with an undisputed answer, Yes."""
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    return asked


@pytest.fixture
def outsider(optimistic: Optimistic) -> str:
    return optimistic.world.evm.actor("outsider").address


def act(optimistic: Optimistic, name: str, *more: object) -> None:
    """Call a function of the question as the admin."""
    optimistic.adapter.send(name, optimistic.question, *more, sender=optimistic.admin)


def test_initialize_asks_a_question_and_prepares_its_condition(optimistic: Optimistic) -> None:
    receipt = optimistic.ask()
    adapter, world = optimistic.adapter, optimistic.world
    assert adapter.logs(receipt, INITIALIZED) == [
        {
            "questionID": optimistic.question,
            "requestTimestamp": optimistic.asked_at,
            "creator": optimistic.creator,
            "ancillaryData": optimistic.signed_text,
            "rewardToken": world.collateral.address,
            "reward": REWARD,
            "proposalBond": BOND,
        }
    ]
    assert adapter.call("isInitialized", optimistic.question)
    assert adapter.call("questionIdOf", optimistic.text, optimistic.creator) == optimistic.question
    assert world.ctf.call("getOutcomeSlotCount", optimistic.condition) == 2
    markets = optimistic.resolution.markets
    assert markets.call("creatorOf", optimistic.condition) == optimistic.creator


def test_l_10_get_question_has_the_layout_that_clients_read(asked: Optimistic) -> None:
    """The reward token is the one of the log, and not zero."""
    assert asked.adapter.call("getQuestion", asked.question) == (
        *(asked.asked_at, REWARD, BOND, LIVENESS_S, 0),
        *(False, False, False, False),
        *(asked.world.collateral.address, asked.creator, asked.signed_text),
    )


def test_a_question_is_asked_once(asked: Optimistic) -> None:
    with reverts("AlreadyInitialized"):
        asked.ask()


def test_a_question_may_require_more_than_the_defaults(optimistic: Optimistic) -> None:
    optimistic.ask(reward=0, bond=2 * BOND, liveness=LIVENESS_S + 1)
    request = optimistic.oracle.call("getRequest", *optimistic.request())
    assert request[3:6] == (0, 2 * BOND, LIVENESS_S + 1)


@pytest.mark.parametrize(
    ("bond", "liveness"),
    [(BOND - 1, 0), (0, 60), (0, LIVENESS_S - 1), (0, LIVENESS_MAX_S + 1)],
)
def test_h_02_a_question_cannot_require_less_than_the_defaults(
    optimistic: Optimistic, bond: int, liveness: int
) -> None:
    with reverts("TermsNotSupported"):
        optimistic.ask(bond=bond, liveness=liveness)


def test_a_reward_is_paid_in_collateral(optimistic: Optimistic, outsider: str) -> None:
    with reverts("TokenNotSupported"):
        optimistic.adapter.send(
            "initialize", optimistic.text, outsider, 1, 0, 0, sender=optimistic.creator
        )


@pytest.mark.case("F-07")
def test_a_condition_prepared_by_another_account_is_no_obstacle(
    optimistic: Optimistic, outsider: str
) -> None:
    optimistic.world.ctf.send(
        "prepareCondition", optimistic.adapter.address, optimistic.question, 2, sender=outsider
    )
    optimistic.ask()
    assert optimistic.state() == REQUESTED


@pytest.mark.parametrize(
    ("price", "payouts"),
    [(PRICE_YES, (1, 0, 1)), (PRICE_NO, (0, 1, 1)), (PRICE_UNKNOWN, (1, 1, 2))],
)
def test_resolve_reports_an_undisputed_answer(
    asked: Optimistic, price: int, payouts: tuple[int, int, int]
) -> None:
    asked.propose(price)
    with reverts("PriceNotAvailable"):
        asked.resolve()
    asked.wait(LIVENESS_S)
    receipt = asked.resolve()
    assert asked.payouts == payouts
    assert asked.adapter.logs(receipt, RESOLVED) == [
        {"questionID": asked.question, "settledPrice": price, "payouts": payouts[:2]}
    ]
    assert asked.owed(asked.proposer) == (BOND + REWARD,)


def test_resolve_answers_once(answered: Optimistic) -> None:
    answered.resolve()
    with reverts("AlreadyResolved"):
        answered.resolve()
    with reverts("NotInitialized"):
        answered.adapter.send("resolve", b"\1" * 32, sender=answered.creator)


def test_resolve_accepts_an_answer_that_was_settled_before(answered: Optimistic) -> None:
    answered.settle()
    answered.resolve()
    assert answered.payouts == (1, 0, 1)
    assert answered.owed(answered.proposer) == (BOND + REWARD,)


def test_the_first_dispute_asks_again_and_the_reward_is_carried_over(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    first = asked.asked_at
    receipt = asked.dispute()
    assert asked.asked_at > first
    assert asked.state() == REQUESTED
    assert asked.oracle.call("getRequest", *asked.request())[3] == REWARD
    assert asked.adapter.logs(receipt, "QuestionReset(bytes32)") == [{"questionID": asked.question}]
    assert asked.adapter.call("getQuestion", asked.question)[7:9] == (True, False)


def test_the_second_dispute_goes_to_the_arbiter(optimistic: Optimistic) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    assert optimistic.adapter.call("getQuestion", optimistic.question)[7:9] == (True, True)
    with reverts("PriceNotAvailable"):
        optimistic.resolve()
    optimistic.decide(PRICE_NO)
    optimistic.resolve()
    assert optimistic.payouts == (0, 1, 1)


def test_without_an_answer_of_the_arbiter_the_question_is_settled_at_a_half(
    optimistic: Optimistic,
) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    optimistic.wait(ARBITRATION_S)
    optimistic.resolve()
    assert optimistic.payouts == (1, 1, 2)


def test_after_a_too_early_answer_the_question_is_asked_again_with_two_disputes(
    optimistic: Optimistic,
) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    optimistic.decide(IGNORE)
    optimistic.resolve()
    assert optimistic.state() == REQUESTED
    assert optimistic.adapter.call("getQuestion", optimistic.question)[7:9] == (False, False)
    assert optimistic.oracle.call("getRequest", *optimistic.request())[3] == REWARD
    assert optimistic.payouts == UNRESOLVED


def test_ready_returns_whether_resolve_would_succeed(asked: Optimistic) -> None:
    assert not asked.adapter.call("ready", b"\1" * 32)
    assert not asked.adapter.call("ready", asked.question)
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    asked.world.evm.rpc("evm_mine")
    assert asked.adapter.call("ready", asked.question)
    act(asked, "pause")
    assert not asked.adapter.call("ready", asked.question)
    act(asked, "unpause")
    asked.resolve()
    assert not asked.adapter.call("ready", asked.question)


def test_get_expected_payouts_returns_the_payouts_to_be_reported(asked: Optimistic) -> None:
    with reverts("PriceNotAvailable"):
        asked.adapter.call("getExpectedPayouts", asked.question)
    asked.propose(PRICE_UNKNOWN)
    asked.wait(LIVENESS_S)
    asked.world.evm.rpc("evm_mine")
    assert asked.adapter.call("getExpectedPayouts", asked.question) == (1, 1)


@pytest.mark.parametrize("hold", ["pause", "flag"])
def test_a_hold_stops_resolve_until_a_week_after_the_answer(
    answered: Optimistic, hold: str
) -> None:
    act(answered, hold)
    with reverts("Paused"):
        answered.resolve()
    answered.wait(HOLD_S)
    answered.resolve()
    assert answered.payouts == (1, 0, 1)


@pytest.mark.parametrize(("hold", "release"), [("pause", "unpause"), ("flag", "unflag")])
def test_only_the_admin_ends_a_hold(answered: Optimistic, hold: str, release: str) -> None:
    act(answered, hold)
    act(answered, release)
    answered.resolve()
    assert answered.payouts == (1, 0, 1)


def test_a_hold_stops_neither_proposals_nor_disputes(asked: Optimistic) -> None:
    act(asked, "pause")
    asked.propose(PRICE_YES)
    asked.dispute()
    assert asked.state() == REQUESTED


@pytest.mark.parametrize(
    ("reported", "payouts"), [([1, 0], (1, 0, 1)), ([0, 1], (0, 1, 1)), ([1, 1], (1, 1, 2))]
)
def test_resolve_manually_answers_after_the_safety_period(
    asked: Optimistic, reported: list[int], payouts: tuple[int, int, int]
) -> None:
    act(asked, "flag")
    assert asked.adapter.call("isFlagged", asked.question)
    with reverts("SafetyPeriodNotPassed"):
        act(asked, "resolveManually", reported)
    asked.wait(SAFETY_S)
    act(asked, "resolveManually", reported)
    assert asked.payouts == payouts


@pytest.mark.parametrize("reported", [[0, 0], [2, 0], [1], []])
def test_resolve_manually_refuses_other_payouts(asked: Optimistic, reported: list[int]) -> None:
    act(asked, "flag")
    asked.wait(SAFETY_S)
    with reverts("InvalidPayouts"):
        act(asked, "resolveManually", reported)


def test_resolve_manually_needs_a_flag(asked: Optimistic) -> None:
    with reverts("NotFlagged"):
        act(asked, "resolveManually", [1, 0])


def test_resolve_manually_returns_an_unearned_reward(asked: Optimistic) -> None:
    act(asked, "flag")
    asked.wait(SAFETY_S)
    act(asked, "resolveManually", [1, 0])
    assert asked.owed(asked.creator) == (REWARD,) == (asked.held,)
    with reverts("InvalidState"):
        asked.propose(PRICE_YES)


def test_resolve_manually_returns_the_reward_after_a_too_early_answer(
    optimistic: Optimistic,
) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    optimistic.decide(IGNORE)
    act(optimistic, "flag")
    optimistic.wait(SAFETY_S)
    act(optimistic, "resolveManually", [1, 0])
    assert optimistic.owed(optimistic.creator) == (REWARD,)


@pytest.mark.parametrize("waited_s", [0, SAFETY_S + 1])
def test_m_04_a_flag_can_be_withdrawn_at_any_time(asked: Optimistic, waited_s: int) -> None:
    with reverts("NotFlagged"):
        act(asked, "unflag")
    act(asked, "flag")
    with reverts("Flagged"):
        act(asked, "flag")
    asked.wait(waited_s)
    act(asked, "unflag")
    assert not asked.adapter.call("isFlagged", asked.question)
    with reverts("NotFlagged"):
        act(asked, "resolveManually", [1, 0])


def test_m_04_unpause_withdraws_the_announcement(answered: Optimistic) -> None:
    """No admin answers a question that goes on without a new announcement."""
    act(answered, "flag")
    answered.wait(SAFETY_S + 1)
    receipt = answered.adapter.send("unpause", answered.question, sender=answered.admin)
    assert answered.adapter.logs(receipt, "QuestionUnflagged(bytes32)") == [
        {"questionID": answered.question}
    ]
    assert not answered.adapter.call("isFlagged", answered.question)
    with reverts("NotFlagged"):
        act(answered, "resolveManually", [0, 1])
    answered.resolve()
    assert answered.payouts == (1, 0, 1)


def test_m_04_a_flag_lapses_a_week_after_its_delay(asked: Optimistic) -> None:
    """An old flag is no power to answer at any later second; the admin flags again."""
    act(asked, "flag")
    asked.wait(SAFETY_S + ANSWER_S - 60)
    with reverts("Flagged"):
        act(asked, "flag")
    asked.wait(60)
    with reverts("NotFlagged"):
        act(asked, "resolveManually", [1, 0])
    act(asked, "pause")
    assert not asked.adapter.call("isFlagged", asked.question)
    act(asked, "flag")
    assert asked.adapter.call("isFlagged", asked.question)
    with reverts("SafetyPeriodNotPassed"):
        act(asked, "resolveManually", [1, 0])


def test_m_04_the_admin_answers_until_its_flag_lapses(asked: Optimistic) -> None:
    act(asked, "flag")
    asked.wait(SAFETY_S + ANSWER_S - 60)
    act(asked, "resolveManually", [1, 0])
    assert asked.payouts == (1, 0, 1)
    assert asked.adapter.call("answerPeriod") == ANSWER_S


def test_unpause_of_a_question_that_is_not_flagged_withdraws_nothing(asked: Optimistic) -> None:
    act(asked, "pause")
    receipt = asked.adapter.send("unpause", asked.question, sender=asked.admin)
    assert asked.adapter.logs(receipt, "QuestionUnflagged(bytes32)") == []


@pytest.mark.parametrize("name", ["flag", "unflag", "pause", "unpause", "resolveManually"])
def test_holds_and_emergencies_are_for_the_admin_alone_and_for_open_questions(
    answered: Optimistic, outsider: str, name: str
) -> None:
    more = {"resolveManually": ([1, 0],)}.get(name, ())
    with reverts("NotAdmin"):
        answered.adapter.send(name, answered.question, *more, sender=outsider)
    answered.resolve()
    with reverts("AlreadyResolved"):
        act(answered, name, *more)


@pytest.mark.case("J-04")
def test_uma_h_01_no_reward_is_stuck_after_a_second_dispute(optimistic: Optimistic) -> None:
    """With any or no answer of the arbiter, all received collateral is owed to accounts."""
    asked_at = optimistic.escalate(PRICE_YES, PRICE_NO)
    optimistic.wait(ARBITRATION_S)
    optimistic.resolve()
    optimistic.settle(asked_at)
    accounts = (
        *(optimistic.proposer, optimistic.disputer),
        *(optimistic.creator, optimistic.treasury),
    )
    assert sum(optimistic.owed(*accounts)) == optimistic.held == 4 * BOND + REWARD


def test_uma_h_01_no_reward_is_stuck_when_a_manual_answer_follows_a_too_early_one(
    optimistic: Optimistic,
) -> None:
    asked_at = optimistic.escalate(PRICE_YES, PRICE_NO)
    act(optimistic, "flag")
    optimistic.wait(SAFETY_S)
    act(optimistic, "resolveManually", [1, 0])
    optimistic.decide(IGNORE)
    optimistic.settle(asked_at)
    accounts = (optimistic.proposer, optimistic.disputer, optimistic.creator)
    assert optimistic.owed(*accounts) == (2 * BOND, 2 * BOND, REWARD)


@pytest.mark.case("J-04")
def test_uma_l_03_a_dispute_after_a_manual_answer_changes_no_answer(
    asked: Optimistic,
) -> None:
    asked.propose(PRICE_NO)
    act(asked, "flag")
    asked.wait(SAFETY_S)
    act(asked, "resolveManually", [1, 0])
    asked.dispute()
    assert asked.payouts == (1, 0, 1)
    asked.wait(ARBITRATION_S)
    asked.settle()
    assert asked.owed(asked.proposer, asked.disputer, asked.creator) == (BOND, BOND, REWARD)


def test_disputes_are_accepted_from_the_oracle_alone(asked: Optimistic, outsider: str) -> None:
    with reverts("NotOracle"):
        asked.adapter.send("priceDisputed", *asked.request()[1:], 0, sender=outsider)


@pytest.mark.parametrize(("bond", "liveness"), [(0, 7_200), (1, 59), (1, LIVENESS_MAX_S + 1)])
def test_the_defaults_are_within_the_supported_range(
    optimistic: Optimistic, bond: int, liveness: int
) -> None:
    world = optimistic.world
    with reverts("TermsNotSupported"):
        world.evm.deploy(
            own_artifact("OptimisticResolutionAdapter"),
            *(world.ctf.address, optimistic.oracle.address, ZERO, world.collateral.address),
            *(optimistic.admin, bond, liveness, True),
        )


@pytest.fixture
def event(neg_risk: NegRisk, optimistic: Optimistic) -> tuple[Optimistic, Contract, bytes]:
    """A neg-risk question of the optimistic oracle, with its operator and its id."""
    asked, operator = deploy_optimistic_event(neg_risk, optimistic)
    asked.ask()
    market = operator.call("prepareMarket", 0, EVENT, sender=asked.creator)
    operator.send("prepareMarket", 0, EVENT, sender=asked.creator)
    question = operator.call(
        "prepareQuestion", market, b"option", asked.question, sender=asked.creator
    )
    operator.send("prepareQuestion", market, b"option", asked.question, sender=asked.creator)
    return asked, operator, question


def test_in_an_event_a_half_cannot_be_proposed(event: tuple[Optimistic, Contract, bytes]) -> None:
    with reverts("InvalidPrice"):
        event[0].propose(PRICE_UNKNOWN)


@pytest.mark.case("J-04")
def test_uma_m_02_no_tie_leaves_an_events_question_stuck(
    neg_risk: NegRisk, event: tuple[Optimistic, Contract, bytes]
) -> None:
    """The arbiter cannot decide a tie either; its answer or its silence ends the question."""
    asked, operator, question = event
    for _ in range(2):
        asked.propose(PRICE_YES)
        asked.dispute()
    with reverts("InvalidPrice"):
        asked.decide(PRICE_UNKNOWN)
    asked.decide(PRICE_NO)
    asked.resolve()
    operator.send("resolveQuestion", question, sender=asked.creator)
    condition = neg_risk.adapter.call("getConditionId", question)
    assert neg_risk.world.ctf.call("payoutNumerators", condition, 1) == 1


def test_a_question_of_an_event_is_answered_through_the_operator(
    neg_risk: NegRisk, event: tuple[Optimistic, Contract, bytes]
) -> None:
    asked, operator, question = event
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    asked.resolve()
    operator.send("resolveQuestion", question, sender=asked.creator)
    condition = neg_risk.adapter.call("getConditionId", question)
    assert neg_risk.world.ctf.call("payoutNumerators", condition, 0) == 1


def test_without_an_answer_of_the_arbiter_an_events_question_is_no(
    neg_risk: NegRisk, event: tuple[Optimistic, Contract, bytes]
) -> None:
    asked, operator, question = event
    for _ in range(2):
        asked.propose(PRICE_YES)
        asked.dispute()
    asked.wait(ARBITRATION_S)
    asked.resolve()
    operator.send("resolveQuestion", question, sender=asked.creator)
    condition = neg_risk.adapter.call("getConditionId", question)
    assert neg_risk.world.ctf.call("payoutNumerators", condition, 1) == 1


def test_l_02_a_second_yes_ends_its_request(
    event: tuple[Optimistic, Contract, bytes],
) -> None:
    first, operator, question = event
    second = replace(first, text=b"q: title: does the other one win?")
    second.ask()
    market = bytes([*question[:-1], 0])
    operator.send("prepareQuestion", market, b"other", second.question, sender=first.creator)
    for each in (first, second):
        each.propose(PRICE_YES)
    first.wait(LIVENESS_S)
    first.resolve()
    operator.send("resolveQuestion", question, sender=first.creator)
    assert second.adapter.call("ready", second.question)
    second.resolve()
    assert not second.adapter.call("ready", second.question)
    assert second.owed(second.proposer) == (2 * BOND + 2 * REWARD,)
    other = operator.call("questionIds", second.question)
    assert operator.call("results", other) is False
    operator.send("resolveQuestion", other, sender=first.creator)


def test_an_events_question_cannot_be_answered_manually_with_a_half(
    event: tuple[Optimistic, Contract, bytes],
) -> None:
    asked = event[0]
    act(asked, "flag")
    asked.wait(SAFETY_S)
    with reverts("InvalidPayouts"):
        act(asked, "resolveManually", [1, 1])


def test_two_questions_are_distinguished_by_their_text(asked: Optimistic) -> None:
    other = replace(asked, text=b"q: title: will it snow?")
    other.ask()
    asked.propose(PRICE_YES)
    assert other.state() == REQUESTED
    assert asked.request()[1] == YES_OR_NO_QUERY


def test_the_adapters_constructor_arguments_can_be_read(optimistic: Optimistic) -> None:
    adapter = optimistic.adapter
    assert (adapter.call("defaultBond"), adapter.call("defaultLiveness")) == (BOND, LIVENESS_S)
    assert adapter.call("holdPeriod") == HOLD_S
