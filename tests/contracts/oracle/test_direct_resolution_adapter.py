import pytest
from eth_abi.abi import encode
from tests.contracts.evm import reverts
from tests.contracts.resolution import (
    COMMUNITY_SHARE_BPS,
    CREATION_FEE,
    INITIALIZED,
    PRICE_NO,
    PRICE_UNKNOWN,
    PRICE_YES,
    RESOLVED,
    TEXT,
    Resolution,
    with_initializer,
)
from tests.contracts.signing import UNIT, ZERO

from foretell.domain.values.hexadecimal import keccak256

ANCILLARY_BYTES_MAX = 8139
SUFFIX_BYTES = 53
CREATION_FEE_MAX = 1_000 * UNIT
END_S_MAX = 10 * 365 * 24 * 3_600

NOTHING = (0, 0, 0, 0, 0, False, False, False, False, ZERO, ZERO, b"")


def balances(resolution: Resolution) -> tuple[int, int, int]:
    holders = (resolution.creator, resolution.community_pool, resolution.operator)
    first, second, third = (resolution.world.collateral.call("balanceOf", who) for who in holders)
    return first, second, third


def test_initialize_asks_a_question_and_prepares_its_condition(resolution: Resolution) -> None:
    receipt = resolution.ask()
    text = with_initializer(TEXT, resolution.creator)
    question = resolution.question_id()
    asked_at = resolution.world.evm.now()
    assert resolution.adapter.logs(receipt, INITIALIZED) == [
        {
            "questionID": question,
            "requestTimestamp": asked_at,
            "creator": resolution.creator,
            "ancillaryData": text,
            "rewardToken": ZERO,
            "reward": 0,
            "proposalBond": 0,
        }
    ]
    assert resolution.adapter.call("getQuestion", question) == (
        *(asked_at, 0, 0, 0, 0),
        *(False, False, False, False),
        *(ZERO, resolution.creator, text),
    )
    assert resolution.adapter.call("conditionIdOf", question) == resolution.condition_id()
    assert resolution.world.ctf.call("getOutcomeSlotCount", resolution.condition_id()) == 2
    assert resolution.markets.call("creatorOf", resolution.condition_id()) == resolution.creator


def test_initialize_has_the_selector_of_clients(resolution: Resolution) -> None:
    calldata = resolution.adapter.calldata("initialize", TEXT, ZERO, 0, 0, 0)
    assert calldata[:4].hex() == "185d1646"


def test_initialize_returns_the_expected_id(resolution: Resolution) -> None:
    terms = (TEXT, ZERO, 0, 0, 0)
    returned = resolution.adapter.call("initialize", *terms, sender=resolution.creator)
    assert returned == resolution.adapter.call("questionIdOf", TEXT, resolution.creator)
    assert returned == resolution.question_id()


@pytest.mark.parametrize(
    "initializer",
    ["0x" + "00" * 19 + "01", "0x" + "ff" * 20, "0x0123456789abcdef0123456789abcdef01234567"],
)
def test_the_initializer_is_written_in_lower_case_hex(
    resolution: Resolution, initializer: str
) -> None:
    expected = keccak256(with_initializer(b"?", initializer))
    assert resolution.adapter.call("questionIdOf", b"?", initializer) == expected


def test_initialize_splits_the_creation_fee(resolution: Resolution) -> None:
    before = balances(resolution)
    receipt = resolution.ask()
    community = CREATION_FEE * COMMUNITY_SHARE_BPS // 10_000
    paid, pool, operator = (
        now - was for now, was in zip(balances(resolution), before, strict=True)
    )
    assert (paid, pool, operator) == (-CREATION_FEE, community, CREATION_FEE - community)
    assert resolution.adapter.logs(receipt, "CreationFeePaid(address,uint256,uint256)") == [
        {
            "payer": resolution.creator,
            "communityAmount": community,
            "operatorAmount": CREATION_FEE - community,
        }
    ]


@pytest.mark.case("B-11")
@pytest.mark.parametrize(
    ("fee", "share_bps", "community"), [(7, 3_333, 2), (7, 0, 0), (7, 10_000, 7), (0, 5_000, 0)]
)
def test_initialize_pays_out_every_unit_of_the_fee(
    resolution: Resolution, fee: int, share_bps: int, community: int
) -> None:
    resolution.adapter.send("setCreationFee", fee, share_bps, sender=resolution.admin)
    before = balances(resolution)
    resolution.ask()
    after = balances(resolution)
    moved = tuple(now - was for now, was in zip(after, before, strict=True))
    assert moved == (-fee, community, fee - community)


def test_initialize_without_the_fee_is_refused(resolution: Resolution) -> None:
    resolution.world.collateral.send(
        "approve", resolution.adapter.address, CREATION_FEE - 1, sender=resolution.creator
    )
    with reverts("InsufficientAllowance"):
        resolution.ask()


def test_initialize_is_refused_a_second_time(resolution: Resolution) -> None:
    resolution.ask()
    with reverts("AlreadyInitialized"):
        resolution.ask()


def test_initialize_of_the_same_text_by_another_is_another_question(
    resolution: Resolution,
) -> None:
    resolution.ask()
    other = resolution.world.evm.actor("another creator").address
    resolution.adapter.send("setCreationFee", 0, 0, sender=resolution.admin)
    resolution.adapter.send("initialize", TEXT, ZERO, 0, 0, 0, sender=other)
    theirs = resolution.adapter.call("questionIdOf", TEXT, other)
    assert resolution.adapter.call("isInitialized", theirs)
    assert theirs != resolution.question_id()


@pytest.mark.case("F-07")
def test_initialize_survives_a_front_run_prepare_condition(resolution: Resolution) -> None:
    """OpenZeppelin, neg-risk adapter, H-01: any account may prepare the condition first."""
    attacker = resolution.world.evm.actor("attacker").address
    question = resolution.question_id()
    resolution.world.ctf.send(
        "prepareCondition", resolution.adapter.address, question, 2, sender=attacker
    )
    resolution.ask()
    resolution.answer(PRICE_YES)
    assert resolution.payouts() == (1, 0, 1)


@pytest.mark.parametrize(
    ("reward", "bond", "liveness"), [(1, 0, 0), (0, 1, 0), (0, 0, END_S_MAX + 1)]
)
def test_initialize_refuses_reward_bond_and_an_end_after_ten_years(
    resolution: Resolution, reward: int, bond: int, liveness: int
) -> None:
    with reverts("TermsNotSupported"):
        resolution.adapter.send(
            "initialize", TEXT, ZERO, reward, bond, liveness, sender=resolution.creator
        )


def test_initialize_accepts_a_text_of_the_greatest_length(resolution: Resolution) -> None:
    text = b"x" * (ANCILLARY_BYTES_MAX - SUFFIX_BYTES)
    resolution.ask(text)
    stored = resolution.adapter.call("getQuestion", resolution.question_id(text))[-1]
    assert len(stored) == ANCILLARY_BYTES_MAX
    resolution.answer(PRICE_NO, text)
    assert resolution.payouts(text) == (0, 1, 1)


@pytest.mark.parametrize("text", [b"", b"x" * (ANCILLARY_BYTES_MAX - SUFFIX_BYTES + 1)])
def test_initialize_refuses_an_empty_and_a_too_long_text(
    resolution: Resolution, text: bytes
) -> None:
    with reverts("InvalidAncillaryData"):
        resolution.ask(text)


def test_get_question_of_an_unknown_question_is_all_zero(resolution: Resolution) -> None:
    assert resolution.adapter.call("getQuestion", bytes(32)) == NOTHING
    assert not resolution.adapter.call("isInitialized", bytes(32))


@pytest.mark.parametrize(
    ("price", "payouts"),
    [(PRICE_YES, (1, 0)), (PRICE_NO, (0, 1)), (PRICE_UNKNOWN, (1, 1))],
)
def test_resolve_reports_the_payouts_once_and_finally(
    resolution: Resolution, price: int, payouts: tuple[int, int]
) -> None:
    resolution.ask()
    receipt = resolution.answer(price)
    question = resolution.question_id()
    assert resolution.payouts() == (*payouts, sum(payouts))
    assert resolution.adapter.call("questionState", question)[1]
    assert resolution.adapter.logs(receipt, RESOLVED) == [
        {"questionID": question, "settledPrice": price, "payouts": payouts}
    ]
    with reverts("AlreadyResolved"):
        resolution.adapter.send("resolve", question, price, sender=resolution.oracle.address)


def test_resolve_is_for_the_oracle_alone(resolution: Resolution) -> None:
    resolution.ask()
    with reverts("NotOracle"):
        resolution.adapter.send(
            "resolve", resolution.question_id(), PRICE_YES, sender=resolution.admin
        )


def test_resolve_refuses_an_unknown_question(resolution: Resolution) -> None:
    with reverts("NotInitialized"):
        resolution.adapter.send("resolve", bytes(32), PRICE_YES, sender=resolution.oracle.address)


@pytest.mark.parametrize("price", [1, -1, PRICE_YES + 1, -(2**255), 69])
def test_resolve_refuses_an_answer_without_a_payout(resolution: Resolution, price: int) -> None:
    resolution.ask()
    with reverts("InvalidPrice"):
        resolution.answer(price)
    assert resolution.payouts()[2] == 0


def test_winners_redeem_after_the_answer(resolution: Resolution) -> None:
    resolution.ask()
    world, holder = resolution.world, resolution.world.makers[0].address
    collateral, condition = world.collateral.address, resolution.condition_id()
    world.collateral.send("approve", world.ctf.address, UNIT, sender=holder)
    sets = (collateral, bytes(32), condition, [1, 2], UNIT)
    world.ctf.send("splitPosition", *sets, sender=holder)
    before = world.collateral.call("balanceOf", holder)
    resolution.answer(PRICE_YES)
    world.ctf.send("redeemPositions", collateral, bytes(32), condition, [1, 2], sender=holder)
    assert world.collateral.call("balanceOf", holder) - before == UNIT


def test_set_creation_fee_changes_it_and_logs_it(resolution: Resolution) -> None:
    receipt = resolution.adapter.send("setCreationFee", 1, 2, sender=resolution.admin)
    assert resolution.adapter.call("creationFee") == 1
    assert resolution.adapter.call("communityShareBps") == 2
    assert resolution.adapter.logs(receipt, "CreationFeeChanged(uint256,uint256)") == [
        {"fee": 1, "communityShareBps": 2}
    ]


@pytest.mark.parametrize(("fee", "share_bps"), [(CREATION_FEE_MAX + 1, 0), (0, 10_001)])
def test_set_creation_fee_has_limits(resolution: Resolution, fee: int, share_bps: int) -> None:
    with reverts("FeeTooHigh"):
        resolution.adapter.send("setCreationFee", fee, share_bps, sender=resolution.admin)


def test_set_creation_fee_receivers_changes_them_and_logs_it(resolution: Resolution) -> None:
    first, second = "0x" + "11" * 20, "0x" + "22" * 20
    receipt = resolution.adapter.send(
        "setCreationFeeReceivers", first, second, sender=resolution.admin
    )
    assert resolution.adapter.call("communityPool") == first
    assert resolution.adapter.call("feeOperator") == second
    assert resolution.adapter.logs(receipt, "CreationFeeReceiversChanged(address,address)") == [
        {"communityPool": first, "operator": second}
    ]


@pytest.mark.parametrize("receivers", [(ZERO, "0x" + "11" * 20), ("0x" + "11" * 20, ZERO)])
def test_set_creation_fee_receivers_refuses_the_zero_address(
    resolution: Resolution, receivers: tuple[str, str]
) -> None:
    with reverts("ZeroAddress"):
        resolution.adapter.send("setCreationFeeReceivers", *receivers, sender=resolution.admin)


@pytest.mark.parametrize(
    ("name", "args"), [("setCreationFee", (1, 1)), ("setCreationFeeReceivers", (ZERO, ZERO))]
)
def test_only_the_admin_changes_the_fee(
    resolution: Resolution, name: str, args: tuple[object, ...]
) -> None:
    with reverts("NotAdmin"):
        resolution.adapter.send(name, *args, sender=resolution.creator)


def test_its_constructor_arguments_can_be_read(resolution: Resolution) -> None:
    adapter = resolution.adapter
    assert adapter.call("ctf") == resolution.world.ctf.address
    assert adapter.call("oracle") == resolution.oracle.address
    assert adapter.call("marketRegistry") == resolution.markets.address
    assert adapter.call("feeCollateral") == resolution.world.collateral.address


def test_condition_ids_are_those_of_conditional_tokens(resolution: Resolution) -> None:
    question = keccak256(encode(["string"], ["any question"]))
    ours = resolution.adapter.call("conditionIdOf", question)
    theirs = resolution.world.ctf.call("getConditionId", resolution.adapter.address, question, 2)
    assert ours == theirs
