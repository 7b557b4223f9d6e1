import pytest
from tests.contracts.evm import reverts
from tests.contracts.neg_risk.rig import EVENT, NegRisk
from tests.contracts.resolution import with_initializer

from foretell.domain.values.hexadecimal import keccak256

MARKET_PREPARED = "MarketPrepared(bytes32,address,uint256,bytes)"
QUESTION_PREPARED = "QuestionPrepared(bytes32,bytes32,uint256,bytes)"
OUTCOME_REPORTED = "OutcomeReported(bytes32,bytes32,bool)"


@pytest.fixture
def host(neg_risk: NegRisk) -> str:
    """An oracle that calls the adapter without an operator."""
    return neg_risk.world.evm.actor("host").address


@pytest.fixture
def market(neg_risk: NegRisk, host: str) -> bytes:
    """A market of the host with two questions."""
    adapter = neg_risk.adapter
    market: bytes = adapter.call("prepareMarket", 100, b"data", sender=host)
    adapter.send("prepareMarket", 100, b"data", sender=host)
    adapter.send("prepareQuestion", market, b"first", sender=host)
    adapter.send("prepareQuestion", market, b"second", sender=host)
    return market


def test_prepare_market_prepares_a_market_of_the_caller_and_logs_it(
    neg_risk: NegRisk, host: str
) -> None:
    receipt = neg_risk.adapter.send("prepareMarket", 250, b"data", sender=host)
    (logged,) = neg_risk.adapter.logs(receipt, MARKET_PREPARED)
    market = logged["marketId"]
    assert logged == {"marketId": market, "oracle": host, "feeBips": 250, "data": b"data"}
    assert neg_risk.adapter.call("getOracle", market) == host
    assert neg_risk.adapter.call("getFeeBips", market) == 250
    assert neg_risk.adapter.call("getQuestionCount", market) == 0
    assert market[-1] == 0


def test_a_markets_id_is_that_of_the_package(neg_risk: NegRisk) -> None:
    receipt = neg_risk.open_market(250)
    (logged,) = neg_risk.adapter.logs(receipt, MARKET_PREPARED)
    assert logged["marketId"] == neg_risk.market(250)
    assert logged["data"] == with_initializer(EVENT, neg_risk.creator)


def test_a_market_is_prepared_once(neg_risk: NegRisk, host: str, market: bytes) -> None:
    assert neg_risk.adapter.call("getQuestionCount", market) == 2
    with reverts("MarketAlreadyPrepared"):
        neg_risk.adapter.send("prepareMarket", 100, b"data", sender=host)


def test_a_fee_is_at_most_one_hundred_per_cent(neg_risk: NegRisk, host: str) -> None:
    neg_risk.adapter.send("prepareMarket", 10_000, b"data", sender=host)
    with reverts("FeeBipsOutOfBounds"):
        neg_risk.adapter.send("prepareMarket", 10_001, b"data", sender=host)


def test_prepare_question_adds_a_condition_of_the_adapters(
    neg_risk: NegRisk, host: str, market: bytes
) -> None:
    adapter, world = neg_risk.adapter, neg_risk.world
    receipt = adapter.send("prepareQuestion", market, b"third", sender=host)
    question, condition = neg_risk.question(2, market), neg_risk.condition(2, market)
    assert adapter.logs(receipt, QUESTION_PREPARED) == [
        {"marketId": market, "questionId": question, "index": 2, "data": b"third"}
    ]
    assert world.ctf.call("getOutcomeSlotCount", condition) == 2
    assert adapter.call("getConditionId", question) == condition
    positions = tuple(adapter.call("getPositionId", question, side) for side in (True, False))
    assert positions == neg_risk.tokens(2, market)


@pytest.mark.case("F-07")
def test_open_zeppelin_h_01_a_condition_prepared_by_another_account_is_no_obstacle(
    neg_risk: NegRisk, host: str, market: bytes
) -> None:
    world, question = neg_risk.world, neg_risk.question(2, market)
    world.ctf.send("prepareCondition", neg_risk.adapter.address, question, 2, sender=world.operator)
    neg_risk.adapter.send("prepareQuestion", market, b"third", sender=host)
    assert neg_risk.adapter.call("getQuestionCount", market) == 3


def test_only_the_oracle_adds_and_answers_questions(neg_risk: NegRisk, market: bytes) -> None:
    outsider = neg_risk.world.operator
    with reverts("OnlyOracle"):
        neg_risk.adapter.send("prepareQuestion", market, b"third", sender=outsider)
    with reverts("OnlyOracle"):
        neg_risk.adapter.send("reportOutcome", market, True, sender=outsider)  # noqa: FBT003
    with reverts("OnlyOracle"):
        neg_risk.adapter.send("sealMarket", market, sender=outsider)


def test_m_05_a_seal_changes_nothing_else_of_a_market(
    neg_risk: NegRisk, host: str, market: bytes
) -> None:
    adapter = neg_risk.adapter
    names = ("getQuestionCount", "getDetermined", "getResult", "getFeeBips", "getOracle")
    before = [adapter.call(name, market) for name in names]
    word: bytes = adapter.call("getMarketData", market)
    adapter.send("sealMarket", market, sender=host)
    assert [adapter.call(name, market) for name in names] == before
    assert adapter.call("getMarketData", market) == word[:5] + b"\1" + word[6:]
    adapter.send("reportOutcome", neg_risk.question(1, market), True, sender=host)  # noqa: FBT003
    assert (adapter.call("getDetermined", market), adapter.call("getResult", market)) == (True, 1)
    with reverts("MarketNotPrepared"):
        adapter.send("sealMarket", keccak256(b"other"), sender=host)


def test_an_unknown_market_has_no_questions(neg_risk: NegRisk, host: str, market: bytes) -> None:
    question = neg_risk.question(1, market)
    with reverts("MarketNotPrepared"):
        neg_risk.adapter.send("prepareQuestion", question, b"third", sender=host)
    with reverts("MarketNotPrepared"):
        neg_risk.adapter.send("reportOutcome", keccak256(b"other"), True, sender=host)  # noqa: FBT003


@pytest.mark.parametrize(("outcome", "payouts"), [(True, (1, 0)), (False, (0, 1))])
def test_report_outcome_pays_one_side_in_full(
    neg_risk: NegRisk,
    host: str,
    market: bytes,
    outcome: bool,  # noqa: FBT001 - the column of a table
    payouts: tuple[int, int],
) -> None:
    adapter, ctf = neg_risk.adapter, neg_risk.world.ctf
    question, condition = neg_risk.question(1, market), neg_risk.condition(1, market)
    receipt = adapter.send("reportOutcome", question, outcome, sender=host)
    assert tuple(ctf.call("payoutNumerators", condition, slot) for slot in (0, 1)) == payouts
    assert adapter.logs(receipt, OUTCOME_REPORTED) == [
        {"marketId": market, "questionId": question, "outcome": outcome}
    ]
    assert adapter.call("isAnswered", question)
    assert adapter.call("getDetermined", market) is outcome
    assert adapter.call("getResult", market) == int(outcome)


def test_one_question_of_a_market_is_yes_and_the_others_are_no(
    neg_risk: NegRisk, host: str, market: bytes
) -> None:
    adapter = neg_risk.adapter
    adapter.send("reportOutcome", neg_risk.question(0, market), True, sender=host)  # noqa: FBT003
    with reverts("MarketAlreadyDetermined"):
        adapter.send("reportOutcome", neg_risk.question(1, market), True, sender=host)  # noqa: FBT003
    adapter.send("reportOutcome", neg_risk.question(1, market), False, sender=host)  # noqa: FBT003


def test_all_questions_of_a_market_may_be_no(neg_risk: NegRisk, host: str, market: bytes) -> None:
    for index in (0, 1):
        question = neg_risk.question(index, market)
        neg_risk.adapter.send("reportOutcome", question, False, sender=host)  # noqa: FBT003
    assert not neg_risk.adapter.call("getDetermined", market)
    questions = [neg_risk.question(index, market) for index in (0, 1)]
    assert all(neg_risk.adapter.call("isAnswered", question) for question in questions)
    with reverts("QuestionAlreadyAnswered"):
        neg_risk.adapter.send("reportOutcome", questions[0], False, sender=host)  # noqa: FBT003


def test_a_question_is_answered_once(neg_risk: NegRisk, host: str, market: bytes) -> None:
    question = neg_risk.question(0, market)
    neg_risk.adapter.send("reportOutcome", question, False, sender=host)  # noqa: FBT003
    with reverts("QuestionAlreadyAnswered"):
        neg_risk.adapter.send("reportOutcome", question, True, sender=host)  # noqa: FBT003


def test_an_unknown_question_is_not_answered(neg_risk: NegRisk, host: str, market: bytes) -> None:
    with reverts("InvalidQuestion"):
        neg_risk.adapter.send("reportOutcome", neg_risk.question(2, market), True, sender=host)  # noqa: FBT003
    with reverts("InvalidCondition"):
        neg_risk.adapter.call("getPositionId", neg_risk.question(2, market), True)  # noqa: FBT003


def test_market_data_has_the_layout_that_clients_read(
    neg_risk: NegRisk, host: str, market: bytes
) -> None:
    neg_risk.adapter.send("reportOutcome", neg_risk.question(1, market), True, sender=host)  # noqa: FBT003
    word = neg_risk.adapter.call("getMarketData", market)
    assert word[:5] == bytes((2, 1, 1, 0, 100))
    assert word[12:] == bytes.fromhex(host[2:])


def test_l_11_a_market_has_100_questions_at_most(
    neg_risk: NegRisk, host: str, market: bytes
) -> None:
    """The market's storage word, with its count raised to one below the limit."""
    evm, adapter = neg_risk.world.evm, neg_risk.adapter
    slot = keccak256(market_slot(neg_risk, market))
    word = adapter.call("getMarketData", market)
    evm.rpc(
        "anvil_setStorageAt",
        adapter.address,
        "0x" + slot.hex(),
        "0x" + (bytes([99]) + word[1:]).hex(),
    )
    adapter.send("prepareQuestion", market, b"the last", sender=host)
    assert adapter.call("getQuestionCount", market) == 100
    with reverts("TooManyQuestions"):
        adapter.send("prepareQuestion", market, b"one more", sender=host)


def market_slot(neg_risk: NegRisk, market: bytes) -> bytes:
    """Return the preimage of the market's storage slot: its id and the slot of the map."""
    evm, address = neg_risk.world.evm, neg_risk.adapter.address
    word = neg_risk.adapter.call("getMarketData", market)
    return next(
        key
        for key in (place.to_bytes(32, "big") + market for place in range(10))
        if bytes.fromhex(
            evm.rpc("eth_getStorageAt", address, "0x" + keccak256(key).hex(), "latest")[2:]
        )
        == word
    )
