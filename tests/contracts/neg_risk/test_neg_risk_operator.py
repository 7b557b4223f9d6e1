import pytest
from eth_abi.abi import decode
from tests.contracts.evm import Receipt, own_artifact, reverts
from tests.contracts.neg_risk.rig import EVENT, NegRisk
from tests.contracts.resolution import PRICE_NO, PRICE_UNKNOWN, PRICE_YES, YES_OR_NO_QUERY
from tests.contracts.signing import UNIT, ZERO

from foretell.domain.values.hexadecimal import keccak256

DELAY_S = 3_600
ANSWER_S = 7 * 24 * 3_600
HOLD_S = 7 * 24 * 3_600
YES = True
NO = False


@pytest.fixture
def event(neg_risk: NegRisk) -> NegRisk:
    neg_risk.open_event(3)
    return neg_risk


@pytest.fixture
def admin(neg_risk: NegRisk) -> str:
    return neg_risk.resolution.admin


@pytest.fixture
def outsider(neg_risk: NegRisk) -> str:
    return neg_risk.world.evm.actor("outsider").address


def report(event: NegRisk, index: int, payouts: list[int]) -> Receipt:
    """Report as the oracle."""
    return event.operator.send(
        "reportPayouts", event.request(index), payouts, sender=event.requests.address
    )


def resolve(event: NegRisk, index: int, sender: str) -> None:
    event.operator.send("resolveQuestion", event.question(index), sender=sender)


def payout_of_yes(event: NegRisk, index: int) -> tuple[int, int]:
    ctf, condition = event.world.ctf, event.condition(index)
    return ctf.call("payoutNumerators", condition, 0), ctf.call("payoutDenominator", condition)


def wait(event: NegRisk, seconds: int) -> None:
    event.world.evm.rpc("evm_increaseTime", seconds)


def test_prepare_market_prepares_one_of_the_caller(neg_risk: NegRisk) -> None:
    receipt = neg_risk.open_market(100)
    assert neg_risk.operator.call("creatorOf", neg_risk.market(100)) == neg_risk.creator
    assert neg_risk.operator.logs(receipt, "MarketCreated(bytes32,address)") == [
        {"marketId": neg_risk.market(100), "creator": neg_risk.creator}
    ]


def words_of(event: NegRisk, receipt: Receipt, topic: str) -> tuple[tuple[bytes, ...], bytes]:
    """Return the indexed values and the data of the operator's log with this topic."""
    (found,) = (
        log
        for log in receipt.logs
        if log.topics[0].hex().startswith(topic)
        and log.address.lower() == event.operator.address.lower()
    )
    return found.topics[1:], found.data


def test_l_01_market_prepared_has_the_layout_that_indexers_of_the_field_decode(
    neg_risk: NegRisk,
) -> None:
    """The topics here and below are those of the public operator."""
    indexed, data = words_of(neg_risk, neg_risk.open_market(100), "8138c066")
    assert indexed == (neg_risk.market(100),)
    assert decode(["uint256", "bytes"], data) == (100, EVENT)


def test_l_01_question_prepared_has_the_layout_that_indexers_of_the_field_decode(
    event: NegRisk,
) -> None:
    indexed, data = words_of(event, event.add_question(3), "cdc45423")
    assert indexed == (event.market(), event.question(3), event.request(3))
    assert decode(["uint256", "bytes"], data) == (3, b"option")


def test_l_01_question_reported_has_the_layout_that_indexers_of_the_field_decode(
    event: NegRisk,
) -> None:
    indexed, data = words_of(event, report(event, 1, [1, 0]), "504306b4")
    assert indexed == (event.question(1),)
    assert decode(["bytes32", "bool"], data) == (event.request(1), True)


def test_no_other_account_can_take_a_creators_market_id(neg_risk: NegRisk, outsider: str) -> None:
    neg_risk.operator.send("prepareMarket", 0, EVENT, sender=outsider)
    neg_risk.open_market()
    assert neg_risk.operator.call("creatorOf", neg_risk.market()) == neg_risk.creator


def test_prepare_question_joins_a_request_with_a_question(neg_risk: NegRisk) -> None:
    neg_risk.open_market()
    neg_risk.add_question(0)
    question, request = neg_risk.question(0), neg_risk.request(0)
    assert neg_risk.operator.call("questionIds", request) == question
    assert neg_risk.operator.call("requestIds", question) == request


def test_a_questions_condition_has_the_creator_of_its_market(event: NegRisk) -> None:
    markets = event.resolution.markets
    assert [markets.call("creatorOf", event.condition(index)) for index in range(3)] == [
        event.creator
    ] * 3


def test_a_question_of_an_event_costs_its_creation_fee(neg_risk: NegRisk) -> None:
    before = neg_risk.collateral_of(neg_risk.creator)
    neg_risk.open_event(3)
    assert before - neg_risk.collateral_of(neg_risk.creator) == 3 * 2 * UNIT


def test_only_the_creator_adds_questions(event: NegRisk, outsider: str) -> None:
    with reverts("NotCreator"):
        event.operator.send("prepareQuestion", event.market(), b"", b"\1" * 32, sender=outsider)


def test_m_05_the_creator_alone_seals_its_market_once(event: NegRisk, outsider: str) -> None:
    with reverts("NotCreator"):
        event.operator.send("sealMarket", event.market(), sender=outsider)
    assert not event.adapter.call("isSealed", event.market())
    receipt = event.seal()
    assert event.adapter.logs(receipt, "MarketSealed(bytes32,uint256)") == [
        {"marketId": event.market(), "questionCount": 3}
    ]
    assert event.adapter.call("isSealed", event.market())
    with reverts("MarketAlreadySealed"):
        event.seal()


def test_a_request_is_used_once(event: NegRisk) -> None:
    with reverts("RequestIdAlreadyUsed"):
        event.operator.send(
            "prepareQuestion", event.market(), b"again", event.request(0), sender=event.creator
        )


def test_an_unknown_request_is_refused(event: NegRisk) -> None:
    with reverts("InvalidRequestId"):
        event.operator.send(
            "prepareQuestion", event.market(), b"", keccak256(b"none"), sender=event.creator
        )


def test_a_request_of_another_creator_is_refused(event: NegRisk, outsider: str) -> None:
    """Otherwise another account could use a request before its creator does."""
    event.ask(3)
    market = event.operator.call("prepareMarket", 0, EVENT, sender=outsider)
    event.operator.send("prepareMarket", 0, EVENT, sender=outsider)
    with reverts("InvalidRequestId"):
        event.operator.send("prepareQuestion", market, b"", event.request(3), sender=outsider)


def an_oracle(event: NegRisk, *words: int) -> str:
    """Return a contract that answers every call with these words."""
    code = b"".join(
        b"\x7f" + word.to_bytes(32) + b"\x60" + bytes([place * 32]) + b"\x52"
        for place, word in enumerate(words)
    )
    address = event.world.evm.actor("an oracle").address
    returned = code + bytes.fromhex(f"60{32 * len(words):02x}5ff3")
    event.world.evm.rpc("anvil_setCode", address, "0x" + returned.hex())
    return address


@pytest.mark.parametrize("is_resolved", [False, True])
def test_a_request_that_its_oracle_has_resolved_is_refused(
    event: NegRisk,
    is_resolved: bool,  # noqa: FBT001 - the column of a table
) -> None:
    """Its answer was reported already, and would never reach the question."""
    markets, admin = event.resolution.markets, event.resolution.admin
    args = ("other", event.adapter.address, markets.address, admin)
    operator = event.world.evm.deploy(own_artifact("NegRiskOperator"), *args)
    oracle = an_oracle(event, 1, int(is_resolved), int(event.creator, 16))
    operator.send("setOracle", oracle, sender=admin)
    markets.send("addAdapter", operator.address, sender=admin)
    market = operator.call("prepareMarket", 0, EVENT, sender=event.creator)
    operator.send("prepareMarket", 0, EVENT, sender=event.creator)
    question = ("prepareQuestion", market, b"", keccak256(b"a request"))
    if is_resolved:
        with reverts("InvalidRequestId"):
            operator.send(*question, sender=event.creator)
    else:
        operator.send(*question, sender=event.creator)


@pytest.mark.parametrize(("payouts", "result"), [([1, 0], YES), ([0, 1], NO)])
def test_report_payouts_accepts_yes_or_no(
    event: NegRisk,
    payouts: list[int],
    result: bool,  # noqa: FBT001 - the column of a table
) -> None:
    report(event, 0, payouts)
    assert event.operator.call("results", event.question(0)) is result
    assert event.operator.call("reportedAt", event.question(0)) == event.world.evm.now()


@pytest.mark.parametrize("payouts", [[1, 1], [0, 0], [2, 0], [1], []])
def test_report_payouts_refuses_other_payouts(event: NegRisk, payouts: list[int]) -> None:
    with reverts("InvalidPayouts"):
        report(event, 0, payouts)


def test_report_payouts_is_for_the_oracle_alone(event: NegRisk, outsider: str) -> None:
    with reverts("OnlyOracle"):
        event.operator.send("reportPayouts", event.request(0), [1, 0], sender=outsider)


def test_report_payouts_accepts_one_answer_to_a_known_request(event: NegRisk) -> None:
    with reverts("InvalidRequestId"):
        report(event, 3, [1, 0])
    report(event, 0, [0, 1])
    with reverts("QuestionAlreadyReported"):
        report(event, 0, [1, 0])


def test_any_account_resolves_a_reported_question(event: NegRisk, outsider: str) -> None:
    report(event, 0, [1, 0])
    resolve(event, 0, outsider)
    assert payout_of_yes(event, 0) == (1, 1)


def test_resolve_question_needs_a_report(event: NegRisk, outsider: str) -> None:
    with reverts("NotReported"):
        resolve(event, 0, outsider)
    with reverts("InvalidQuestion"):
        resolve(event, 3, outsider)


def test_once_a_question_is_yes_any_account_closes_the_others_as_no(
    event: NegRisk, outsider: str
) -> None:
    event.answer(1, PRICE_YES)
    assert event.operator.call("isDetermined", event.question(0))
    resolve(event, 0, outsider)
    assert payout_of_yes(event, 0) == (0, 1)


def test_l_03_the_first_reported_yes_wins(event: NegRisk, outsider: str) -> None:
    """Otherwise the first caller of `resolveQuestion` would choose the winner."""
    for index in (2, 0, 1):
        report(event, index, [1, 0])
    for index in (0, 1):
        with reverts("EarlierYes"):
            resolve(event, index, outsider)
    resolve(event, 2, outsider)
    for index in (0, 1):
        resolve(event, index, outsider)
    assert [payout_of_yes(event, index)[0] for index in range(3)] == [0, 0, 1]
    assert [event.operator.call("results", event.question(i)) for i in range(3)] == [NO, NO, YES]


def test_l_03_the_next_yes_wins_if_the_admin_answers_the_first_no(
    event: NegRisk, admin: str, outsider: str
) -> None:
    for index in range(2):
        report(event, index, [1, 0])
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    wait(event, DELAY_S)
    with reverts("EarlierYes"):
        resolve(event, 1, outsider)
    event.operator.send("emergencyResolveQuestion", event.question(0), NO, sender=admin)
    resolve(event, 1, outsider)
    assert [payout_of_yes(event, index)[0] for index in range(2)] == [0, 1]


def test_l_03_a_flag_on_the_first_yes_holds_the_next_for_a_week_at_most(
    event: NegRisk, admin: str, outsider: str
) -> None:
    for index in range(2):
        report(event, index, [1, 0])
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    wait(event, HOLD_S)
    for index in range(2):
        resolve(event, index, outsider)
    assert [payout_of_yes(event, index)[0] for index in range(2)] == [1, 0]


def test_l_02_a_second_yes_is_taken_as_no(event: NegRisk, outsider: str) -> None:
    """Refused, its request would be ready for ever, and revert for ever."""
    event.answer(1, PRICE_YES)
    report(event, 0, [1, 0])
    assert event.operator.call("results", event.question(0)) is NO
    resolve(event, 0, outsider)
    assert payout_of_yes(event, 0) == (0, 1)


def test_the_direct_oracle_refuses_a_second_yes(event: NegRisk) -> None:
    event.answer(1, PRICE_YES)
    with reverts("MarketAlreadyDetermined"):
        event.answer(0, PRICE_YES)


def test_the_direct_oracle_answers_a_question_of_an_event_at_once(event: NegRisk) -> None:
    event.answer(0, PRICE_NO)
    assert payout_of_yes(event, 0) == (0, 1)


@pytest.mark.case("B-13")
def test_the_direct_oracle_refuses_a_tie(event: NegRisk) -> None:
    with reverts("InvalidPayouts"):
        event.answer(0, PRICE_UNKNOWN)


@pytest.mark.parametrize(
    ("place", "value", "error"),
    [
        (1, "0x" + "11" * 20, "InvalidOperator"),
        (3, b"\1" * 32, "InvalidQuestion"),
        (4, b"\1" * 32, "InvalidIdentifier"),
    ],
)
def test_the_direct_oracle_answers_the_proposers_question(
    event: NegRisk, place: int, value: object, error: str
) -> None:
    arguments: list[object] = [
        *(event.requests.address, event.operator.address, event.request(0), event.question(0)),
        *(YES_OR_NO_QUERY, event.requests.call("questionState", event.request(0))[0]),
        *(event.requests.call("getQuestion", event.request(0))[-1], PRICE_YES),
    ]
    arguments[place] = value
    with reverts(error):
        event.resolution.oracle.send(
            "proposeAndResolveNegRisk", *arguments, sender=event.resolution.proposer
        )


def test_a_flag_blocks_a_question(event: NegRisk, admin: str, outsider: str) -> None:
    report(event, 0, [1, 0])
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    with reverts("Flagged"):
        resolve(event, 0, outsider)
    event.operator.send("unflagQuestion", event.question(0), sender=admin)
    resolve(event, 0, outsider)


def test_a_flag_blocks_a_reported_question_for_a_week_at_most(
    event: NegRisk, admin: str, outsider: str
) -> None:
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    report(event, 0, [1, 0])
    wait(event, HOLD_S)
    resolve(event, 0, outsider)
    assert payout_of_yes(event, 0) == (1, 1)


def test_m_04_a_flag_lapses_a_week_after_its_delay(
    event: NegRisk, admin: str, outsider: str
) -> None:
    """An old flag holds nothing up, and is no power to answer at any later second."""
    question = event.question(0)
    event.operator.send("flagQuestion", question, sender=admin)
    wait(event, DELAY_S + ANSWER_S - 60)
    with reverts("Flagged"):
        event.operator.send("flagQuestion", question, sender=admin)
    wait(event, 60)
    with reverts("NotFlagged"):
        event.operator.send("emergencyResolveQuestion", question, NO, sender=admin)
    report(event, 0, [1, 0])
    resolve(event, 0, outsider)
    assert payout_of_yes(event, 0) == (1, 1)


def test_m_04_after_a_lapse_the_admin_flags_again(event: NegRisk, admin: str) -> None:
    question = event.question(0)
    event.operator.send("flagQuestion", question, sender=admin)
    wait(event, DELAY_S + ANSWER_S)
    event.operator.send("flagQuestion", question, sender=admin)
    with reverts("DelayPeriodNotOver"):
        event.operator.send("emergencyResolveQuestion", question, NO, sender=admin)
    wait(event, DELAY_S + ANSWER_S - 60)
    event.operator.send("emergencyResolveQuestion", question, YES, sender=admin)
    assert payout_of_yes(event, 0) == (1, 1)
    assert event.operator.call("ANSWER_PERIOD") == ANSWER_S


@pytest.mark.parametrize("result", [YES, NO])
def test_emergency_resolve_question_answers_after_the_delay(
    event: NegRisk,
    admin: str,
    result: bool,  # noqa: FBT001 - the column of a table
) -> None:
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    with reverts("DelayPeriodNotOver"):
        event.operator.send("emergencyResolveQuestion", event.question(0), result, sender=admin)
    wait(event, DELAY_S)
    event.operator.send("emergencyResolveQuestion", event.question(0), result, sender=admin)
    assert payout_of_yes(event, 0) == (int(result), 1)


@pytest.mark.parametrize("result", [YES, NO])
@pytest.mark.parametrize("payouts", [[1, 0], [0, 1]])
def test_l_04_a_report_after_an_emergency_says_what_is_paid(
    event: NegRisk,
    admin: str,
    result: bool,  # noqa: FBT001 - the column of a table
    payouts: list[int],
) -> None:
    question = event.question(0)
    event.operator.send("flagQuestion", question, sender=admin)
    wait(event, DELAY_S)
    event.operator.send("emergencyResolveQuestion", question, result, sender=admin)
    receipt = report(event, 0, payouts)
    (logged,) = event.operator.logs(receipt, "QuestionReported(bytes32,bytes32,bool)")
    assert logged["result"] is result
    assert event.operator.call("results", question) is result


def test_l_04_an_emergency_replaces_a_report(event: NegRisk, admin: str) -> None:
    report(event, 0, [1, 0])
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    wait(event, DELAY_S)
    event.operator.send("emergencyResolveQuestion", event.question(0), NO, sender=admin)
    assert event.operator.call("results", event.question(0)) is NO


def test_an_emergency_needs_a_flag(event: NegRisk, admin: str) -> None:
    with reverts("NotFlagged"):
        event.operator.send("emergencyResolveQuestion", event.question(0), YES, sender=admin)
    with reverts("NotFlagged"):
        event.operator.send("unflagQuestion", event.question(0), sender=admin)


def test_a_question_is_flagged_once_and_must_exist(event: NegRisk, admin: str) -> None:
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    with reverts("Flagged"):
        event.operator.send("flagQuestion", event.question(0), sender=admin)
    with reverts("InvalidQuestion"):
        event.operator.send("flagQuestion", event.question(3), sender=admin)


def test_no_flag_stops_a_split_a_merge_a_conversion_or_a_redemption(
    event: NegRisk, admin: str
) -> None:
    holder = event.holder("holder", 100)
    event.seal()
    event.answer(1, PRICE_NO)
    for index in range(3):
        event.operator.send("flagQuestion", event.question(index), sender=admin)
        event.split(holder, index, 10)
    event.adapter.send("convertPositions", event.market(), 0b101, 5, sender=holder)
    event.adapter.send("mergePositions(bytes32,uint256)", event.condition(0), 5, sender=holder)
    event.adapter.send("redeemPositions", event.condition(1), [0, 10], sender=holder)
    assert event.collateral_of(holder) == 70 + 5 + 5 + 10


@pytest.mark.parametrize(
    ("name", "more"),
    [("flagQuestion", ()), ("unflagQuestion", ()), ("emergencyResolveQuestion", (YES,))],
)
def test_flags_and_emergencies_are_for_the_admin_alone(
    event: NegRisk, outsider: str, name: str, more: tuple[bool, ...]
) -> None:
    with reverts("NotAdmin"):
        event.operator.send(name, event.question(0), *more, sender=outsider)


def test_the_admin_sets_the_oracle_once(neg_risk: NegRisk, admin: str, outsider: str) -> None:
    operator = neg_risk.world.evm.deploy(
        own_artifact("NegRiskOperator"), "dro_moov2", neg_risk.adapter.address, ZERO, admin
    )
    with reverts("NotAdmin"):
        operator.send("setOracle", outsider, sender=outsider)
    with reverts("ZeroAddress"):
        operator.send("setOracle", ZERO, sender=admin)
    receipt = operator.send("setOracle", outsider, sender=admin)
    assert operator.logs(receipt, "OracleSet(address)") == [{"oracle": outsider}]
    with reverts("OracleAlreadySet"):
        operator.send("setOracle", outsider, sender=admin)


def test_it_has_the_interface_that_resolution_adapters_call(
    neg_risk: NegRisk, outsider: str
) -> None:
    neg_risk.operator.send("prepareCondition", outsider, b"\1" * 32, 2, sender=outsider)
    assert neg_risk.operator.call("getOutcomeSlotCount", b"\1" * 32) == 2


def test_the_operators_constructor_arguments_can_be_read(neg_risk: NegRisk) -> None:
    operator = neg_risk.operator
    assert operator.call("nrAdapter") == neg_risk.adapter.address
    assert operator.call("resolutionStack") == "dro_moov2"
    assert (operator.call("DELAY_PERIOD"), operator.call("HOLD_PERIOD")) == (DELAY_S, HOLD_S)


def test_flagged_at_returns_the_time_of_the_flag(event: NegRisk, admin: str) -> None:
    assert event.operator.call("flaggedAt", event.question(0)) == 0
    event.operator.send("flagQuestion", event.question(0), sender=admin)
    since = event.operator.call("flaggedAt", event.question(0))
    assert since == event.world.evm.now()


def test_burnt_tokens_go_to_an_address_without_a_key(neg_risk: NegRisk) -> None:
    burnt = neg_risk.adapter.call("NO_TOKEN_BURN_ADDRESS")
    assert neg_risk.world.evm.rpc("eth_getCode", burnt, "latest") == "0x"
    assert burnt not in {ZERO, neg_risk.adapter.address}
