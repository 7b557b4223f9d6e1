"""Requesters that call the oracle again, and bonds that do not divide by two."""

import pytest
from tests.contracts.market import ALLOWANCE_MAX
from tests.contracts.optimistic import BOND, LIVENESS_S, REWARD, Optimistic
from tests.contracts.resolution import PRICE_NO, PRICE_YES, YES_OR_NO_QUERY
from tests.contracts.wallets import answer_receipts, call_of

TEXT = b"asked by a contract"


def test_a_requester_cannot_withdraw_while_it_handles_a_dispute(optimistic: Optimistic) -> None:
    world, oracle = optimistic.world, optimistic.oracle
    requester = world.evm.actor("requester").address
    world.collateral.send("mint", requester, BOND, sender=world.minter)
    world.collateral.send("approve", oracle.address, ALLOWANCE_MAX, sender=requester)
    optimistic.ask()
    oracle.send("proposePrice", *optimistic.request(), PRICE_YES, sender=requester)
    optimistic.wait(LIVENESS_S)
    optimistic.settle()
    assert optimistic.owed(requester) == (BOND + REWARD,)
    oracle.send("addAdapter", requester, sender=optimistic.admin)
    now = world.evm.now()
    terms = (YES_OR_NO_QUERY, now, TEXT, 0, BOND, LIVENESS_S, requester, True)
    oracle.send("requestPrice", *terms, sender=requester)
    request = (requester, YES_OR_NO_QUERY, now, TEXT)
    oracle.send("proposePrice", *request, PRICE_NO, sender=optimistic.proposer)
    calldata = oracle.calldata("withdraw")
    code = call_of(oracle.address, calldata) + answer_receipts() + calldata
    world.evm.rpc("anvil_setCode", requester, "0x" + code.hex())
    oracle.send("disputePrice", *request, sender=optimistic.disputer)
    assert optimistic.owed(requester) == (BOND + REWARD,)
    oracle.send("withdraw", sender=requester)


@pytest.mark.parametrize("bond", [BOND + 1, BOND + 2])
def test_an_odd_bond_is_paid_out_to_the_last_unit(optimistic: Optimistic, bond: int) -> None:
    """The winner's half is rounded down, and the treasury gets the rest."""
    optimistic.ask(reward=0, bond=bond)
    asked_at = optimistic.asked_at
    for _ in range(2):
        optimistic.propose(PRICE_NO)
        optimistic.dispute()
    optimistic.decide(PRICE_YES)
    optimistic.settle(asked_at)
    winner, treasury = optimistic.owed(optimistic.disputer, optimistic.treasury)
    assert winner == 2 * (bond + bond // 2)
    assert treasury == 2 * (bond - bond // 2)
    assert optimistic.held == winner + treasury
