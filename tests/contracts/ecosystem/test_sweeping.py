"""Tokens that were sent to the exchange or the adapter by mistake (L-12)."""

import pytest
from tests.contracts.evm import Contract, own_artifact
from tests.contracts.market import World
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.signing import UNIT

SWEPT = "Swept(address,address,uint256)"
PLACES = pytest.mark.parametrize("place", ["exchange", "adapter"])


def contract_and_receiver(neg_risk: NegRisk, place: str) -> tuple[Contract, str]:
    if place == "exchange":
        return neg_risk.world.exchange, neg_risk.world.fee_receiver
    return neg_risk.adapter, neg_risk.vault


def a_token(world: World) -> Contract:
    return world.evm.deploy(own_artifact("CollateralToken"), "Other", "OTHER", world.minter)


@PLACES
@pytest.mark.parametrize("kind", ["collateral", "wrapped", "other"])
def test_l12_tokens_sent_by_mistake_go_where_the_fees_go(
    neg_risk: NegRisk, place: str, kind: str
) -> None:
    world = neg_risk.world
    contract, receiver = contract_and_receiver(neg_risk, place)
    token = {"collateral": world.collateral, "wrapped": neg_risk.wrapped}.get(kind)
    if token is None:
        token = a_token(world)
        token.send("mint", contract.address, UNIT, sender=world.minter)
    elif kind == "collateral":
        token.send("mint", contract.address, UNIT, sender=world.minter)
    else:
        world.collateral.send("mint", neg_risk.adapter.address, UNIT, sender=world.minter)
        token.send("wrap", contract.address, UNIT, sender=neg_risk.adapter.address)
    before = token.call("balanceOf", receiver)
    anybody = world.evm.actor("anybody").address
    receipt = contract.send("sweep", token.address, sender=anybody)
    assert contract.logs(receipt, SWEPT) == [
        {"token": token.address.lower(), "receiver": receiver.lower(), "amount": UNIT}
    ]
    assert token.call("balanceOf", receiver) == before + UNIT
    assert token.call("balanceOf", contract.address) == 0
    assert contract.logs(contract.send("sweep", token.address, sender=anybody), SWEPT) == []
