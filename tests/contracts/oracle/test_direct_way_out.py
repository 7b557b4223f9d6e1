"""M-03: a question of the direct stack ends although its proposers never answer."""

import pytest
from tests.contracts.evm import reverts
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.resolution import PRICE_UNKNOWN, PRICE_YES, RESOLVED, Resolution

END_S = 10 * 24 * 3_600
END_S_DEFAULT = 2 * 365 * 24 * 3_600
END_S_MAX = 10 * 365 * 24 * 3_600
SAFETY_S = 7 * 24 * 3_600
FALLBACK_S = 30 * 24 * 3_600
UNFLAG_S = 365 * 24 * 3_600


@pytest.fixture
def asked(resolution: Resolution) -> Resolution:
    resolution.ask_until(END_S)
    return resolution


@pytest.fixture
def flagged(asked: Resolution) -> Resolution:
    """A question without an answer, flagged by somebody after its end."""
    wait(asked, END_S)
    act(asked, "flag", sender=somebody(asked))
    return asked


def wait(resolution: Resolution, seconds: int) -> None:
    resolution.world.evm.rpc("evm_increaseTime", seconds)


def somebody(resolution: Resolution) -> str:
    return resolution.world.evm.actor("outsider").address


def act(resolution: Resolution, name: str, *more: object, sender: str = "") -> None:
    """Call a function of the question, by default as the admin."""
    question = resolution.question_id()
    resolution.adapter.send(name, question, *more, sender=sender or resolution.admin)


@pytest.mark.parametrize("stated_s", [1, END_S, END_S_MAX])
def test_m_03_a_question_states_its_end(resolution: Resolution, stated_s: int) -> None:
    resolution.ask_until(stated_s)
    question = resolution.question_id()
    assert resolution.adapter.call("endsAt", question) == resolution.asked_at() + stated_s
    assert resolution.adapter.call("getQuestion", question)[3] == stated_s


def test_m_03_without_a_stated_end_it_is_two_years_later(resolution: Resolution) -> None:
    resolution.ask()
    ends_at = resolution.adapter.call("endsAt", resolution.question_id())
    assert ends_at == resolution.asked_at() + END_S_DEFAULT
    assert resolution.adapter.call("endsAt", b"\1" * 32) == 0


def test_m_03_nobody_flags_a_question_before_its_end(asked: Resolution) -> None:
    wait(asked, END_S - 60)
    for sender in (asked.admin, somebody(asked)):
        with reverts("NotEnded"):
            act(asked, "flag", sender=sender)


def test_m_03_any_account_flags_a_question_once_after_its_end(asked: Resolution) -> None:
    wait(asked, END_S)
    question = asked.question_id()
    assert not asked.adapter.call("isFlagged", question)
    receipt = asked.adapter.send("flag", question, sender=somebody(asked))
    assert asked.adapter.logs(receipt, "QuestionFlagged(bytes32)") == [{"questionID": question}]
    assert asked.adapter.call("isFlagged", question)
    with reverts("Flagged"):
        act(asked, "flag")


@pytest.mark.parametrize(
    ("reported", "payouts"), [([1, 0], (1, 0, 1)), ([0, 1], (0, 1, 1)), ([1, 1], (1, 1, 2))]
)
@pytest.mark.case("J-04")
def test_m_03_the_admin_answers_a_week_after_the_flag(
    flagged: Resolution, reported: list[int], payouts: tuple[int, int, int]
) -> None:
    wait(flagged, SAFETY_S - 60)
    with reverts("SafetyPeriodNotPassed"):
        act(flagged, "resolveManually", reported)
    wait(flagged, 60)
    act(flagged, "resolveManually", reported)
    assert flagged.payouts() == payouts
    with reverts("AlreadyResolved"):
        flagged.answer(PRICE_YES)


@pytest.mark.parametrize("reported", [[0, 0], [2, 0], [1], []])
def test_m_03_the_admin_answers_with_payouts_only(flagged: Resolution, reported: list[int]) -> None:
    wait(flagged, SAFETY_S)
    with reverts("InvalidPayouts"):
        act(flagged, "resolveManually", reported)


@pytest.mark.parametrize("name", ["unflag", "resolveManually"])
def test_m_03_the_admin_alone_unflags_and_answers(flagged: Resolution, name: str) -> None:
    more = ([1, 0],) if name == "resolveManually" else ()
    wait(flagged, SAFETY_S)
    with reverts("NotAdmin"):
        act(flagged, name, *more, sender=somebody(flagged))


def test_m_03_any_account_ends_the_question_at_a_half_a_month_after_the_flag(
    flagged: Resolution,
) -> None:
    wait(flagged, FALLBACK_S - 60)
    with reverts("SafetyPeriodNotPassed"):
        act(flagged, "resolveByFallback", sender=somebody(flagged))
    wait(flagged, 60)
    receipt = flagged.adapter.send(
        "resolveByFallback", flagged.question_id(), sender=somebody(flagged)
    )
    assert flagged.payouts() == (1, 1, 2)
    assert flagged.adapter.logs(receipt, RESOLVED) == [
        {"questionID": flagged.question_id(), "settledPrice": PRICE_UNKNOWN, "payouts": (1, 1)}
    ]


@pytest.mark.parametrize("name", ["resolveManually", "resolveByFallback", "unflag"])
def test_m_03_nobody_ends_a_question_that_was_not_flagged(asked: Resolution, name: str) -> None:
    more = ([1, 0],) if name == "resolveManually" else ()
    wait(asked, END_S + FALLBACK_S)
    with reverts("NotFlagged"):
        act(asked, name, *more)


def test_m_03_a_flag_stops_no_proposer(flagged: Resolution) -> None:
    wait(flagged, FALLBACK_S)
    flagged.answer(PRICE_YES)
    assert flagged.payouts() == (1, 0, 1)
    for name in ("flag", "unflag", "resolveByFallback"):
        with reverts("AlreadyResolved"):
            act(flagged, name)


def test_m_03_an_unflagged_question_starts_its_delays_again(flagged: Resolution) -> None:
    wait(flagged, FALLBACK_S)
    act(flagged, "unflag")
    act(flagged, "flag", sender=somebody(flagged))
    with reverts("SafetyPeriodNotPassed"):
        act(flagged, "resolveManually", [1, 0])
    with reverts("SafetyPeriodNotPassed"):
        act(flagged, "resolveByFallback")


def test_m_03_no_flag_is_withdrawn_from_a_year_after_the_end(flagged: Resolution) -> None:
    """An admin that withdraws every flag must not hold a question up for ever."""
    wait(flagged, UNFLAG_S - 60)
    act(flagged, "unflag")
    act(flagged, "flag", sender=somebody(flagged))
    wait(flagged, 60)
    with reverts("UnflagPeriodOver"):
        act(flagged, "unflag")
    wait(flagged, FALLBACK_S)
    act(flagged, "resolveByFallback", sender=somebody(flagged))
    assert flagged.payouts() == (1, 1, 2)


def test_m_03_the_periods_can_be_read(resolution: Resolution) -> None:
    adapter = resolution.adapter
    assert adapter.call("safetyPeriod") == SAFETY_S
    assert adapter.call("unflagPeriod") == UNFLAG_S
    assert adapter.call("fallbackPeriod") == FALLBACK_S


def test_m_03_an_events_question_falls_back_to_no(neg_risk: NegRisk) -> None:
    neg_risk.open_event(2)
    requests, request = neg_risk.requests, neg_risk.request(0)
    outsider = somebody(neg_risk.resolution)
    wait(neg_risk.resolution, END_S_DEFAULT)
    requests.send("flag", request, sender=outsider)
    wait(neg_risk.resolution, FALLBACK_S)
    requests.send("resolveByFallback", request, sender=outsider)
    neg_risk.operator.send("resolveQuestion", neg_risk.question(0), sender=outsider)
    ctf, condition = neg_risk.world.ctf, neg_risk.condition(0)
    assert ctf.call("payoutNumerators", condition, 1) == 1
    assert ctf.call("payoutDenominator", condition) == 1
