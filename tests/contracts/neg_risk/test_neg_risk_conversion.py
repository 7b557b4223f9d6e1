import pytest
from tests.contracts.evm import own_artifact, reverts
from tests.contracts.neg_risk.rig import BURN, NegRisk
from tests.contracts.resolution import PRICE_NO, PRICE_YES
from tests.contracts.signing import UNIT, ZERO

from foretell.domain.values.hexadecimal import keccak256

QUESTIONS_MAX = 100
TX_GAS_MAX = 2**24
CONVERTED = "PositionsConverted(address,bytes32,uint256,uint256)"


@pytest.fixture
def event(neg_risk: NegRisk) -> NegRisk:
    neg_risk.open_sealed_event(3)
    return neg_risk


@pytest.fixture
def holder(event: NegRisk) -> str:
    """An account with ten sets of each question."""
    holder = event.holder("holder", 30)
    for index in range(3):
        event.split(holder, index, 10)
    return holder


def redeem_all(event: NegRisk, *holders: str) -> None:
    for holder in holders:
        for index in range(3):
            held = list(event.held(holder, index))
            event.adapter.send("redeemPositions", event.condition(index), held, sender=holder)


@pytest.mark.parametrize(
    ("index_set", "collateral", "held"),
    [
        (0b001, 0, [(10, 6), (14, 10), (14, 10)]),
        (0b011, 4, [(10, 6), (10, 6), (14, 10)]),
        (0b101, 4, [(10, 6), (14, 10), (10, 6)]),
        (0b111, 8, [(10, 6), (10, 6), (10, 6)]),
    ],
)
def test_convert_positions_exchanges_no_for_collateral_and_the_other_yes(
    event: NegRisk, holder: str, index_set: int, collateral: int, held: list[tuple[int, int]]
) -> None:
    receipt = event.adapter.send("convertPositions", event.market(), index_set, 4, sender=holder)
    assert event.collateral_of(holder) == collateral
    assert [event.held(holder, index) for index in range(3)] == held
    assert [event.held(BURN, index) for index in range(3)] == [(0, 4)] * 3
    assert event.adapter.logs(receipt, CONVERTED) == [
        {"stakeholder": holder, "marketId": event.market(), "indexSet": index_set, "amount": 4}
    ]


@pytest.mark.parametrize("winner", [0, 1, 2])
@pytest.mark.parametrize("index_set", [0b001, 0b011, 0b110, 0b111])
def test_converted_positions_are_paid_whichever_question_is_yes(
    event: NegRisk, holder: str, index_set: int, winner: int
) -> None:
    event.adapter.send("convertPositions", event.market(), index_set, 4, sender=holder)
    event.answer(winner, PRICE_YES)
    for index in {0, 1, 2} - {winner}:
        event.answer(index, PRICE_NO)
    redeem_all(event, holder)
    assert (event.locked, event.collateral_of(holder)) == (0, 30)


@pytest.mark.parametrize("index_set", [0b001, 0b011, 0b111])
def test_unclaimable_collateral_goes_to_vault_when_no_question_is_yes(
    event: NegRisk, holder: str, index_set: int
) -> None:
    event.adapter.send("convertPositions", event.market(), index_set, 4, sender=holder)
    for index in range(3):
        event.answer(index, PRICE_NO)
    redeem_all(event, holder)
    assert event.locked == 4
    receipt = event.adapter.send("releaseUnclaimed", event.market(), 3, sender=holder)
    assert (event.locked, event.collateral_of(event.vault)) == (0, 4)
    assert event.adapter.logs(receipt, "UnclaimedReleased(bytes32,uint256,uint256)") == [
        {"marketId": event.market(), "questionCount": 3, "amount": 4}
    ]


def test_m_05_no_question_is_added_to_a_sealed_market(event: NegRisk, holder: str) -> None:
    """A question added after a conversion could be Yes, and take what was converted to the others."""
    event.adapter.send("convertPositions", event.market(), 0b001, 4, sender=holder)
    with reverts("MarketAlreadySealed"):
        event.add_question(3)
    for index in range(3):
        event.answer(index, (PRICE_NO, PRICE_YES, PRICE_NO)[index])
    redeem_all(event, holder)
    assert (event.locked, event.collateral_of(holder)) == (0, 30)


def test_m_05_a_market_that_may_get_more_questions_converts_nothing(neg_risk: NegRisk) -> None:
    neg_risk.open_event(2)
    holder = neg_risk.holder("holder", 10)
    neg_risk.split(holder, 0, 10)
    with reverts("MarketNotSealed"):
        neg_risk.adapter.send("convertPositions", neg_risk.market(), 1, 4, sender=holder)
    neg_risk.add_question(2)
    neg_risk.seal()
    neg_risk.adapter.send("convertPositions", neg_risk.market(), 1, 4, sender=holder)
    assert [neg_risk.held(holder, index) for index in range(3)] == [(10, 6), (4, 0), (4, 0)]


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_nothing_is_released_while_a_question_is_open(
    event: NegRisk, holder: str, answered: int
) -> None:
    event.adapter.send("convertPositions", event.market(), 0b001, 4, sender=holder)
    for index in range(answered):
        event.answer(index, PRICE_NO)
    with reverts("QuestionsOpen"):
        event.adapter.send("releaseUnclaimed", event.market(), 3, sender=holder)


def test_nothing_is_released_when_a_question_is_yes(event: NegRisk, holder: str) -> None:
    event.adapter.send("convertPositions", event.market(), 0b001, 4, sender=holder)
    for index, price in enumerate((PRICE_NO, PRICE_YES, PRICE_NO)):
        event.answer(index, price)
    with reverts("NothingUnclaimed"):
        event.adapter.send("releaseUnclaimed", event.market(), 3, sender=holder)


def test_unclaimable_collateral_is_released_once(event: NegRisk, holder: str) -> None:
    event.adapter.send("convertPositions", event.market(), 0b001, 4, sender=holder)
    for index in range(3):
        event.answer(index, PRICE_NO)
    event.adapter.send("releaseUnclaimed", event.market(), 3, sender=holder)
    with reverts("NothingUnclaimed"):
        event.adapter.send("releaseUnclaimed", event.market(), 3, sender=holder)


def test_a_markets_conversion_fee_goes_to_vault(neg_risk: NegRisk) -> None:
    market = neg_risk.open_sealed_event(3, fee_bips=100)
    holder = neg_risk.holder("holder", 30_000)
    for index in range(3):
        neg_risk.split(holder, index, 10_000, market)
    neg_risk.adapter.send("convertPositions", market, 0b011, 5_050, sender=holder)
    assert neg_risk.collateral_of(holder) == 5_000
    assert neg_risk.collateral_of(neg_risk.vault) == 50
    assert neg_risk.held(holder, 2, market) == (15_000, 10_000)
    assert neg_risk.held(neg_risk.vault, 2, market) == (50, 0)


@pytest.mark.parametrize("index_set", [0, 0b1000, 0b1001, 1 << 255])
def test_open_zeppelin_c_01_no_question_outside_the_market_is_converted(
    event: NegRisk, holder: str, index_set: int
) -> None:
    with reverts("InvalidIndexSet"):
        event.adapter.send("convertPositions", event.market(), index_set, 1, sender=holder)


def test_open_zeppelin_c_01_no_conversion_exceeds_the_callers_balance(
    event: NegRisk, holder: str
) -> None:
    with reverts("SafeMath: subtraction overflow"):
        event.adapter.send("convertPositions", event.market(), 0b011, 11, sender=holder)


@pytest.mark.case("B-13")
def test_open_zeppelin_m_02_a_tie_is_refused_so_that_conversions_stay_covered(
    event: NegRisk, holder: str
) -> None:
    event.adapter.send("convertPositions", event.market(), 0b011, 4, sender=holder)
    with reverts("InvalidPayouts"):
        event.answer(0, PRICE_YES // 2)


def test_open_zeppelin_l_02_a_conversion_of_nothing_is_refused_without_a_log(
    event: NegRisk, holder: str
) -> None:
    with reverts("ZeroAmount"):
        event.adapter.send("convertPositions", event.market(), 0b011, 0, sender=holder)


def test_open_zeppelin_l_03_an_unknown_market_converts_nothing(event: NegRisk, holder: str) -> None:
    with reverts("MarketNotPrepared"):
        event.adapter.send("convertPositions", keccak256(b"none"), 0b011, 1, sender=holder)
    with reverts("MarketNotPrepared"):
        event.adapter.send("convertPositions", event.question(1), 0b011, 1, sender=holder)


def test_one_question_alone_has_nothing_to_convert_into(neg_risk: NegRisk) -> None:
    neg_risk.open_sealed_event(1)
    holder = neg_risk.holder("holder", 10)
    neg_risk.split(holder, 0, 10)
    with reverts("NoConvertiblePositions"):
        neg_risk.adapter.send("convertPositions", neg_risk.market(), 1, 1, sender=holder)


def test_conversion_continues_after_an_answer(event: NegRisk, holder: str) -> None:
    event.answer(0, PRICE_YES)
    event.adapter.send("convertPositions", event.market(), 0b110, 4, sender=holder)
    event.answer(1, PRICE_NO)
    event.answer(2, PRICE_NO)
    redeem_all(event, holder)
    assert (event.locked, event.collateral_of(holder)) == (0, 30)


def test_vault_cannot_be_the_zero_address(neg_risk: NegRisk) -> None:
    world, code = neg_risk.world, own_artifact("WrappedCollateral").bytecode
    with reverts("ZeroAddress"):
        world.evm.deploy(
            own_artifact("NegRiskAdapter"), world.collateral.address, world.ctf.address, ZERO, code
        )


def test_l_11_the_largest_event_is_converted_in_one_transaction(neg_risk: NegRisk) -> None:
    """The dearest conversion gives one No, and fits what EIP-7825 lets a transaction use."""
    neg_risk.open_sealed_event(QUESTIONS_MAX)
    holder = neg_risk.holder("holder", UNIT)
    neg_risk.split(holder, 0, UNIT)
    receipt = neg_risk.adapter.send("convertPositions", neg_risk.market(), 1, UNIT, sender=holder)
    held = [neg_risk.held(holder, index)[0] for index in range(QUESTIONS_MAX)]
    assert held == [UNIT] * QUESTIONS_MAX
    assert receipt.gas_used < TX_GAS_MAX
