import pytest
from tests.contracts.evm import own_artifact, reverts
from tests.contracts.optimistic import (
    ARBITRATION_S,
    BOND,
    DISPUTED,
    EXPIRED,
    IGNORE,
    LIVENESS_S,
    PROPOSED,
    PURSE,
    REQUESTED,
    REWARD,
    SETTLED,
    Optimistic,
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
def stranger(optimistic: Optimistic) -> str:
    return optimistic.world.evm.actor("stranger").address


def test_request_price_takes_the_reward_and_says_what_is_asked(optimistic: Optimistic) -> None:
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


def test_request_price_is_for_adapters_alone(optimistic: Optimistic, stranger: str) -> None:
    terms = (0, BOND, LIVENESS_S, stranger, True)
    with reverts("NotAdapter"):
        optimistic.oracle.send("requestPrice", YES_OR_NO_QUERY, 1, b"text", *terms, sender=stranger)


@pytest.mark.parametrize(
    ("identifier", "again", "error"),
    [(b"\1" * 32, 0, "InvalidIdentifier"), (YES_OR_NO_QUERY, 1, "InvalidState")],
)
def test_request_price_takes_one_request_of_the_known_kind(
    optimistic: Optimistic, stranger: str, identifier: bytes, again: int, error: str
) -> None:
    oracle = optimistic.oracle
    oracle.send("addAdapter", stranger, sender=optimistic.admin)
    arguments = (identifier, 1, b"text", 0, BOND, LIVENESS_S, stranger, True)
    for _ in range(again):
        oracle.send("requestPrice", *arguments, sender=stranger)
    with reverts(error):
        oracle.send("requestPrice", *arguments, sender=stranger)


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
def test_propose_price_takes_no_other_price(asked: Optimistic, price: int) -> None:
    with reverts("InvalidPrice"):
        asked.propose(price)


def test_propose_price_takes_one_proposal(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    with reverts("InvalidState"):
        asked.propose(PRICE_NO)


def test_propose_price_needs_a_request(asked: Optimistic) -> None:
    request = asked.request(asked.asked_at + 1)
    with reverts("InvalidState"):
        asked.oracle.send("proposePrice", *request, PRICE_YES, sender=asked.proposer)
    assert asked.oracle.call("getState", *request) == INVALID


def test_a_proposal_needs_its_bond(asked: Optimistic, stranger: str) -> None:
    with reverts("InsufficientAllowance"):
        asked.oracle.send("proposePrice", *asked.request(), PRICE_YES, sender=stranger)


def test_dispute_price_takes_the_same_bond_and_tells_the_requester(asked: Optimistic) -> None:
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


def test_dispute_price_is_in_time_until_the_liveness_ends(asked: Optimistic) -> None:
    with reverts("InvalidState"):
        asked.dispute()
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    with reverts("InvalidState"):
        asked.dispute()


def test_settle_gives_an_undisputed_proposer_its_bond_and_the_reward(asked: Optimistic) -> None:
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
def test_arbitrate_decides_both_disputes_and_pays_who_was_right(
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


def test_a_replaced_request_is_not_the_arbiters(asked: Optimistic) -> None:
    request = asked.request()
    asked.propose(PRICE_YES)
    asked.dispute()
    with reverts("AlreadyReplaced"):
        asked.oracle.send("arbitrate", *request, PRICE_YES, sender=asked.arbiter)


def test_where_it_was_too_early_all_bonds_go_back(optimistic: Optimistic) -> None:
    asked_at = optimistic.escalate(PRICE_YES, PRICE_NO)
    optimistic.decide(IGNORE)
    optimistic.settle(asked_at)
    accounts = (optimistic.proposer, optimistic.disputer, optimistic.treasury)
    assert optimistic.owed(*accounts) == (2 * BOND, 2 * BOND, 0)
    assert optimistic.held == 4 * BOND + REWARD


def test_an_arbiter_that_says_nothing_leaves_the_fall_back_and_all_money_goes_back(
    optimistic: Optimistic,
) -> None:
    asked_at = optimistic.escalate(PRICE_YES, PRICE_YES)
    optimistic.wait(ARBITRATION_S)
    with reverts("ArbitrationOver"):
        optimistic.decide(PRICE_YES)
    optimistic.settle()
    assert optimistic.oracle.call("answer", *optimistic.request())[:2] == (True, PRICE_UNKNOWN)
    optimistic.settle(asked_at)
    accounts = (optimistic.proposer, optimistic.creator)
    assert optimistic.owed(*accounts) == (BOND, REWARD)
    assert optimistic.owed(optimistic.disputer) == (2 * BOND + BOND // 2,)


def test_the_arbiters_week_is_not_over_before_it_is(optimistic: Optimistic) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    optimistic.wait(ARBITRATION_S - 60)
    with reverts("NotSettleable"):
        optimistic.settle()
    optimistic.decide(PRICE_YES)


@pytest.mark.parametrize("price", [1, PRICE_YES + 1])
def test_arbitrate_takes_no_other_price(optimistic: Optimistic, price: int) -> None:
    optimistic.escalate(PRICE_YES, PRICE_YES)
    with reverts("InvalidPrice"):
        optimistic.decide(price)


def test_arbitrate_is_the_arbiters_and_needs_a_dispute(asked: Optimistic, stranger: str) -> None:
    with reverts("InvalidState"):
        asked.decide(PRICE_YES)
    with reverts("NotArbiter"):
        asked.oracle.send("arbitrate", *asked.request(), PRICE_YES, sender=stranger)


def test_withdraw_pays_what_is_owed_once(asked: Optimistic) -> None:
    asked.propose(PRICE_YES)
    asked.wait(LIVENESS_S)
    asked.settle()
    asked.oracle.send("withdraw", sender=asked.proposer)
    assert asked.world.collateral.call("balanceOf", asked.proposer) == PURSE + REWARD
    with reverts("NothingOwed"):
        asked.oracle.send("withdraw", sender=asked.proposer)
    assert asked.held == 0


def test_a_request_is_its_requesters_to_replace(asked: Optimistic, stranger: str) -> None:
    with reverts("InvalidState"):
        asked.oracle.send(
            "replaceRequest", *asked.request()[1:], asked.asked_at + 1, sender=stranger
        )


def test_a_request_is_its_requesters_to_abandon(asked: Optimistic, stranger: str) -> None:
    asked.oracle.send("abandonRequest", *asked.request()[1:], sender=stranger)
    assert asked.state() == REQUESTED


@pytest.mark.parametrize(("name", "view"), [("setArbiter", "arbiter"), ("setTreasury", "treasury")])
def test_arbiter_and_treasury_are_the_admins_to_name(
    optimistic: Optimistic, stranger: str, name: str, view: str
) -> None:
    with reverts("NotAdmin"):
        optimistic.oracle.send(name, stranger, sender=stranger)
    with reverts("ZeroAddress"):
        optimistic.oracle.send(name, ZERO, sender=optimistic.admin)
    optimistic.oracle.send(name, stranger, sender=optimistic.admin)
    assert optimistic.oracle.call(view) == stranger


def test_adapters_are_the_admins_to_name(optimistic: Optimistic, stranger: str) -> None:
    for name in ("addAdapter", "removeAdapter"):
        with reverts("NotAdmin"):
            optimistic.oracle.send(name, stranger, sender=stranger)
    optimistic.oracle.send("addAdapter", stranger, sender=optimistic.admin)
    assert optimistic.oracle.call("isAdapter", stranger)
    optimistic.oracle.send("removeAdapter", stranger, sender=optimistic.admin)
    assert not optimistic.oracle.call("isAdapter", stranger)


def test_what_a_removed_adapter_has_asked_goes_on_to_its_end(asked: Optimistic) -> None:
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


def test_a_collateral_that_says_no_is_believed(optimistic: Optimistic, stranger: str) -> None:
    evm = optimistic.world.evm
    refusing = evm.actor("refusing collateral").address
    evm.rpc("anvil_setCode", refusing, "0x5f5f5260205ff3")
    oracle = evm.deploy(own_artifact("OptimisticOracle"), refusing, stranger, stranger, stranger)
    oracle.send("addAdapter", stranger, sender=stranger)
    with reverts("TransferFailed"):
        oracle.send(
            "requestPrice",
            *(YES_OR_NO_QUERY, 1, b"text", 1, BOND, LIVENESS_S, stranger, True),
            sender=stranger,
        )
