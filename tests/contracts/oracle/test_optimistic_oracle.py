import pytest
from tests.contracts.evm import own_artifact, reverts
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.optimistic import (
    ARBITRATION_S,
    BOND,
    DISPUTED,
    EXPIRED,
    IGNORE,
    LIVENESS_S,
    PROPOSED,
    RELEASE_S,
    REQUESTED,
    REWARD,
    SETTLED,
    STARTING_UNITS,
    Optimistic,
    deploy_optimistic_event,
)
from tests.contracts.resolution import PRICE_NO, PRICE_UNKNOWN, PRICE_YES, YES_OR_NO_QUERY
from tests.contracts.signing import ZERO

REQUEST = "RequestPrice(address,bytes32,uint256,bytes,address,uint256,uint256)"
PROPOSE = "ProposePrice(address,address,bytes32,uint256,bytes,int256,uint256,address)"
DISPUTE = "DisputePrice(address,address,address,bytes32,uint256,bytes,int256)"
SETTLE = "Settle(address,address,address,bytes32,uint256,bytes,int256,uint256)"
INVALID = 0


@pytest.fixture
def asked(optimistic: Optimistic) -> Optimistic:
    optimistic.ask()
    return optimistic


@pytest.fixture
def outsider(optimistic: Optimistic) -> str:
    return optimistic.world.evm.actor("outsider").address


def test_request_price_takes_the_reward_and_logs_the_request(optimistic: Optimistic) -> None:
    receipt = optimistic.ask()
    assert (optimistic.state(), optimistic.held) == (REQUESTED, REWARD)
    assert optimistic.oracle.logs(receipt, REQUEST) == [
        {
            "requester": optimistic.adapter.address,
            "identifier": YES_OR_NO_QUERY,
            "timestamp": optimistic.asked_at,
            "ancillaryData": optimistic.signed_text,
            "currency": optimistic.world.collateral.address,
            "reward": REWARD,
            "finalFee": 0,
        }
    ]


def test_request_price_is_for_adapters_alone(optimistic: Optimistic, outsider: str) -> None:
    terms = (0, BOND, LIVENESS_S, outsider, True)
    with reverts("NotAdapter"):
        optimistic.oracle.send("requestPrice", YES_OR_NO_QUERY, 1, b"text", *terms, sender=outsider)


@pytest.mark.parametrize(
    ("identifier", "again", "error"),
    [(b"\1" * 32, 0, "InvalidIdentifier"), (YES_OR_NO_QUERY, 1, "InvalidState")],
)
def test_request_price_accepts_one_request_of_the_supported_identifier(
    optimistic: Optimistic, outsider: str, identifier: bytes, again: int, error: str
) -> None:
    oracle = optimistic.oracle
    oracle.send("addAdapter", outsider, sender=optimistic.admin)
    arguments = (identifier, 1, b"text", 0, BOND, LIVENESS_S, outsider, True)
    for _ in range(again):
        oracle.send("requestPrice", *arguments, sender=outsider)
    with reverts(error):
        oracle.send("requestPrice", *arguments, sender=outsider)


@pytest.mark.parametrize("price", [PRICE_YES, PRICE_NO, PRICE_UNKNOWN])
def test_propose_price_takes_the_bond_and_starts_the_liveness(
    asked: Optimistic, price: int
) -> None:
    receipt = asked.propose(price)
    assert (asked.state(), asked.held) == (PROPOSED, REWARD + BOND)
    assert asked.oracle.logs(receipt, PROPOSE) == [
        {
            "requester": asked.adapter.address,
            "proposer": asked.proposer,
            "identifier": YES_OR_NO_QUERY,
            "timestamp": asked.asked_at,
            "ancillaryData": asked.signed_text,
            "proposedPrice": price,
            "expirationTimestamp": asked.world.evm.now() + LIVENESS_S,
            "currency": asked.world.collateral.address,
        }
    ]


@pytest.mark.parametrize("price", [1, -1, 2 * PRICE_YES, IGNORE])
def test_propose_price_refuses_other_prices(asked: Optimistic, price: int) -> None:
    with reverts("InvalidPrice"):
        asked.propose(price)


def test_propose_price_accepts_one_proposal(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    with reverts("InvalidState"):
        asked.propose(PRICE_NO)


def test_propose_price_needs_a_request(asked: Optimistic) -> None:
    request = asked.request(asked.asked_at + 1)
    with reverts("InvalidState"):
        asked.oracle.send("proposePrice", *request, PRICE_YES, sender=asked.proposer)
    assert asked.oracle.call("getState", *request) == INVALID


def test_a_proposal_needs_its_bond(asked: Optimistic, outsider: str) -> None:
    with reverts("InsufficientAllowance"):
        asked.oracle.send("proposePrice", *asked.request(), PRICE_YES, sender=outsider)


def test_dispute_price_takes_the_same_bond_and_notifies_the_requester(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    asked_at = asked.asked_at
    receipt = asked.dispute()
    assert (asked.state(asked_at), asked.held) == (DISPUTED, REWARD + 2 * BOND)
    assert asked.oracle.logs(receipt, DISPUTE) == [
        {
            "requester": asked.adapter.address,
            "proposer": asked.proposer,
            "disputer": asked.disputer,
            "identifier": YES_OR_NO_QUERY,
            "timestamp": asked_at,
            "ancillaryData": asked.signed_text,
            "proposedPrice": PRICE_YES,
        }
    ]


def test_dispute_price_is_accepted_until_the_liveness_ends(asked: Optimistic) -> None:
    with reverts("InvalidState"):
        asked.dispute()
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    with reverts("InvalidState"):
        asked.dispute()


def test_settle_pays_an_undisputed_proposer_its_bond_and_the_reward(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    assert not asked.oracle.call("hasPrice", *asked.request())
    with reverts("NotSettleable"):
        asked.settle()
    asked.wait(LIVENESS_S)
    asked.world.evm.rpc("evm_mine")
    assert asked.state() == EXPIRED
    assert asked.oracle.call("hasPrice", *asked.request())
    receipt = asked.settle()
    assert asked.state() == SETTLED
    assert asked.owed(asked.proposer) == (BOND + REWARD,)
    assert asked.oracle.logs(receipt, SETTLE) == [
        {
            "requester": asked.adapter.address,
            "proposer": asked.proposer,
            "disputer": ZERO,
            "identifier": YES_OR_NO_QUERY,
            "timestamp": asked.asked_at,
            "ancillaryData": asked.signed_text,
            "price": PRICE_YES,
            "payout": REWARD,
        }
    ]


def test_settle_pays_once(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    asked.settle()
    asked.settle()
    assert asked.owed(asked.proposer) == (BOND + REWARD,)


@pytest.mark.parametrize(
    ("decided", "proposer", "disputer"),
    [
        (PRICE_YES, 2 * (BOND + BOND // 2) + REWARD, 0),
        (PRICE_NO, 0, 2 * (BOND + BOND // 2) + REWARD),
    ],
)
def test_arbitrate_decides_both_disputes_and_pays_the_winners(
    optimistic: Optimistic, decided: int, proposer: int, disputer: int
) -> None:
    asked_at = optimistic.escalate(PRICE_YES, PRICE_YES)
    optimistic.decide(decided)
    optimistic.settle(asked_at)
    accounts = (optimistic.proposer, optimistic.disputer, optimistic.treasury)
    assert optimistic.owed(*accounts) == (proposer, disputer, BOND)
    assert optimistic.held == 4 * BOND + REWARD == sum(optimistic.owed(*accounts))


def test_the_answer_to_the_second_request_decides_the_first_dispute(asked: Optimistic) -> None:
    asked_at = asked.asked_at
    asked.propose(PRICE_YES)
    asked.dispute()
    with reverts("NotSettleable"):
        asked.settle(asked_at)
    asked.propose(PRICE_NO)
    asked.wait(LIVENESS_S)
    asked.settle()
    asked.settle(asked_at)
    assert asked.owed(asked.proposer, asked.disputer, asked.treasury) == (
        BOND + REWARD,
        BOND + BOND // 2,
        BOND // 2,
    )


def test_the_arbiter_cannot_decide_a_replaced_request(asked: Optimistic) -> None:
    request = asked.request()
    asked.propose(PRICE_YES)
    asked.dispute()
    with reverts("AlreadyReplaced"):
        asked.oracle.send("arbitrate", *request, PRICE_YES, sender=asked.arbiter)


def test_all_bonds_are_returned_when_the_answer_was_too_early(optimistic: Optimistic) -> None:
    asked_at = optimistic.escalate(PRICE_YES, PRICE_NO)
    optimistic.decide(IGNORE)
    optimistic.settle(asked_at)
    accounts = (optimistic.proposer, optimistic.disputer, optimistic.treasury)
    assert optimistic.owed(*accounts) == (2 * BOND, 2 * BOND, 0)
    assert optimistic.held == 4 * BOND + REWARD


@pytest.mark.parametrize("first", [PRICE_YES, PRICE_NO, PRICE_UNKNOWN])
def test_m_01_a_silent_arbiter_leads_to_the_fallback_and_all_money_is_returned(
    optimistic: Optimistic, first: int
) -> None:
    """Also the bonds of the first dispute, whatever was proposed there."""
    asked_at = optimistic.escalate(first, PRICE_YES)
    optimistic.wait(ARBITRATION_S)
    with reverts("ArbitrationOver"):
        optimistic.decide(PRICE_YES)
    optimistic.settle()
    assert optimistic.oracle.call("answer", *optimistic.request())[:2] == (True, PRICE_UNKNOWN)
    optimistic.settle(asked_at)
    assert optimistic.owed(*everybody(optimistic)) == (2 * BOND, 2 * BOND, REWARD, 0)


@pytest.mark.parametrize("price", [PRICE_YES, PRICE_NO])
def test_m_01_in_an_event_a_silent_arbiter_slashes_nobody(
    neg_risk: NegRisk, optimistic: Optimistic, price: int
) -> None:
    """The fall-back is No there, and does not pay those who said No twice."""
    asked, _ = deploy_optimistic_event(neg_risk, optimistic)
    asked_at = asked.escalate(price, price)
    asked.wait(ARBITRATION_S)
    asked.settle()
    assert asked.oracle.call("answer", *asked.request())[:2] == (True, PRICE_NO)
    asked.settle(asked_at)
    assert asked.owed(*everybody(asked)) == (2 * BOND, 2 * BOND, REWARD, 0)


@pytest.mark.parametrize(("decided", "is_fallback"), [(PRICE_NO, False), (None, True)])
def test_m_01_a_request_says_whether_the_fallback_ended_it(
    optimistic: Optimistic, decided: int | None, *, is_fallback: bool
) -> None:
    asked_at = optimistic.escalate(PRICE_YES, PRICE_YES)
    if decided is not None:
        optimistic.decide(decided)
    optimistic.wait(ARBITRATION_S)
    for when in (optimistic.asked_at, asked_at):
        optimistic.settle(when)
        assert optimistic.oracle.call("getRequest", *optimistic.request(when))[-1] is is_fallback


def test_m_02_bonds_of_a_first_dispute_are_returned_a_week_later(asked: Optimistic) -> None:
    asked_at = asked.asked_at
    asked.propose(PRICE_NO)
    asked.dispute()
    asked.wait(RELEASE_S - 60)
    with reverts("NotSettleable"):
        asked.settle(asked_at)
    asked.wait(60)
    asked.settle(asked_at)
    assert asked.owed(*everybody(asked)) == (BOND, BOND, 0, 0)
    assert asked.held == 2 * BOND + REWARD


def test_m_02_the_question_goes_on_after_its_first_bonds_are_returned(asked: Optimistic) -> None:
    asked_at = asked.asked_at
    asked.propose(PRICE_NO)
    asked.dispute()
    asked.wait(RELEASE_S)
    asked.settle(asked_at)
    asked.propose(PRICE_YES)
    asked.dispute()
    asked.decide(PRICE_YES)
    asked.resolve()
    assert asked.payouts == (1, 0, 1)
    asked.settle(asked_at)  # changes nothing
    half = BOND // 2
    assert asked.owed(*everybody(asked)) == (2 * BOND + half + REWARD, BOND, 0, half)
    assert asked.held == sum(asked.owed(*everybody(asked)))


def test_m_02_a_new_proposal_keeps_the_bonds_until_it_is_decided(asked: Optimistic) -> None:
    asked_at = asked.asked_at
    asked.propose(PRICE_NO)
    asked.dispute()
    asked.propose(PRICE_YES)
    asked.dispute()
    asked.wait(RELEASE_S)
    with reverts("NotSettleable"):
        asked.settle(asked_at)


def everybody(optimistic: Optimistic) -> tuple[str, str, str, str]:
    """Return all accounts that the oracle can owe money to."""
    return optimistic.proposer, optimistic.disputer, optimistic.creator, optimistic.treasury


def test_the_fallback_waits_for_the_arbiters_whole_week(optimistic: Optimistic) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    optimistic.wait(ARBITRATION_S - 60)
    with reverts("NotSettleable"):
        optimistic.settle()
    optimistic.decide(PRICE_YES)


@pytest.mark.parametrize("price", [1, PRICE_YES + 1])
def test_arbitrate_refuses_other_prices(optimistic: Optimistic, price: int) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    with reverts("InvalidPrice"):
        optimistic.decide(price)


def test_arbitrate_is_for_the_arbiter_alone_and_needs_a_dispute(
    asked: Optimistic, outsider: str
) -> None:
    with reverts("InvalidState"):
        asked.decide(PRICE_YES)
    with reverts("NotArbiter"):
        asked.oracle.send("arbitrate", *asked.request(), PRICE_YES, sender=outsider)


def test_withdraw_pays_the_owed_amount_once(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    asked.settle()
    asked.oracle.send("withdraw", sender=asked.proposer)
    assert asked.world.collateral.call("balanceOf", asked.proposer) == STARTING_UNITS + REWARD
    with reverts("NothingOwed"):
        asked.oracle.send("withdraw", sender=asked.proposer)
    assert asked.held == 0


def test_only_the_requester_replaces_a_request(asked: Optimistic, outsider: str) -> None:
    with reverts("InvalidState"):
        asked.oracle.send(
            "replaceRequest", *asked.request()[1:], asked.asked_at + 1, sender=outsider
        )


def test_only_the_requester_abandons_a_request(asked: Optimistic, outsider: str) -> None:
    asked.oracle.send("abandonRequest", *asked.request()[1:], sender=outsider)
    assert asked.state() == REQUESTED


@pytest.mark.parametrize(("name", "view"), [("setArbiter", "arbiter"), ("setTreasury", "treasury")])
def test_only_the_admin_sets_arbiter_and_treasury(
    optimistic: Optimistic, outsider: str, name: str, view: str
) -> None:
    with reverts("NotAdmin"):
        optimistic.oracle.send(name, outsider, sender=outsider)
    with reverts("ZeroAddress"):
        optimistic.oracle.send(name, ZERO, sender=optimistic.admin)
    optimistic.oracle.send(name, outsider, sender=optimistic.admin)
    assert optimistic.oracle.call(view) == outsider


def test_only_the_admin_adds_and_removes_adapters(optimistic: Optimistic, outsider: str) -> None:
    for name in ("addAdapter", "removeAdapter"):
        with reverts("NotAdmin"):
            optimistic.oracle.send(name, outsider, sender=outsider)
    optimistic.oracle.send("addAdapter", outsider, sender=optimistic.admin)
    assert optimistic.oracle.call("isAdapter", outsider)
    optimistic.oracle.send("removeAdapter", outsider, sender=optimistic.admin)
    assert not optimistic.oracle.call("isAdapter", outsider)


def test_requests_of_a_removed_adapter_are_completed(asked: Optimistic) -> None:
    asked.oracle.send("removeAdapter", asked.adapter.address, sender=asked.admin)
    asked.propose(PRICE_YES)
    asked.dispute()
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    asked.resolve()
    assert asked.payouts == (1, 0, 1)


def test_a_request_can_be_read(asked: Optimistic) -> None:
    request = asked.oracle.call("getRequest", *asked.request())
    assert request[2:6] == (asked.creator, REWARD, BOND, LIVENESS_S)
    assert asked.oracle.call("currency") == asked.world.collateral.address


def test_a_collateral_that_returns_false_is_a_failure(
    optimistic: Optimistic, outsider: str
) -> None:
    evm = optimistic.world.evm
    refusing = evm.actor("refusing collateral").address
    evm.rpc("anvil_setCode", refusing, "0x5f5f5260205ff3")
    oracle = evm.deploy(own_artifact("OptimisticOracle"), refusing, outsider, outsider, outsider)
    oracle.send("addAdapter", outsider, sender=outsider)
    with reverts("TransferFailed"):
        oracle.send(
            "requestPrice",
            *(YES_OR_NO_QUERY, 1, b"text", 1, BOND, LIVENESS_S, outsider, True),
            sender=outsider,
        )
