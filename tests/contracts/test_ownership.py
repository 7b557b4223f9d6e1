from collections.abc import Callable
from typing import Final

import pytest
from tests.contracts.evm import Contract, own_artifact, reverts
from tests.contracts.market import World
from tests.contracts.resolution import Resolution, adapter_args
from tests.contracts.signing import ZERO

OWNED: Final[dict[str, Callable[[Resolution], Contract]]] = {
    "Exchange": lambda resolution: resolution.world.exchange,
    "MarketRegistry": lambda resolution: resolution.markets,
    "DirectResolutionOracle": lambda resolution: resolution.oracle,
    "DirectResolutionAdapter": lambda resolution: resolution.adapter,
}


@pytest.fixture(params=list(OWNED.values()), ids=list(OWNED))
def owned(request: pytest.FixtureRequest, resolution: Resolution) -> Contract:
    contract: Contract = request.param(resolution)
    return contract


@pytest.fixture
def successor(world: World) -> str:
    return world.evm.actor("successor").address


@pytest.mark.case("J-04")
def test_the_admin_passes_the_role_in_two_steps(owned: Contract, successor: str) -> None:
    admin = owned.call("admin")
    offered = owned.send("transferAdmin", successor, sender=admin)
    assert owned.logs(offered, "AdminTransferStarted(address,address)") == [
        {"pendingAdmin": successor, "admin": admin}
    ]
    assert owned.call("pendingAdmin") == successor
    assert owned.call("isAdmin", admin)
    assert not owned.call("isAdmin", successor)
    taken = owned.send("acceptAdmin", sender=successor)
    assert owned.logs(taken, "NewAdmin(address,address)") == [
        {"newAdminAddress": successor, "admin": admin}
    ]
    assert owned.logs(taken, "RemovedAdmin(address,address)") == [
        {"removedAdmin": admin, "admin": successor}
    ]
    assert owned.call("admin") == successor
    assert owned.call("pendingAdmin") == ZERO
    assert not owned.call("isAdmin", admin)


def test_only_the_admin_offers_the_role(owned: Contract, successor: str) -> None:
    with reverts("NotAdmin"):
        owned.send("transferAdmin", successor, sender=successor)


@pytest.mark.case("J-04")
def test_a_role_that_was_not_offered_cannot_be_accepted(owned: Contract, successor: str) -> None:
    with reverts("NotPendingAdmin"):
        owned.send("acceptAdmin", sender=successor)


def test_an_offer_can_be_withdrawn(owned: Contract, successor: str) -> None:
    admin = owned.call("admin")
    owned.send("transferAdmin", successor, sender=admin)
    owned.send("transferAdmin", ZERO, sender=admin)
    with reverts("NotPendingAdmin"):
        owned.send("acceptAdmin", sender=successor)


def test_a_contract_is_not_deployed_without_an_admin(resolution: Resolution) -> None:
    evm = resolution.world.evm
    with reverts("ZeroAddress"):
        evm.deploy(own_artifact("MarketRegistry"), ZERO)
    with reverts("ZeroAddress"):
        evm.deploy(own_artifact("DirectResolutionOracle"), resolution.registry.address, ZERO)
    args = adapter_args(resolution.world, resolution.oracle, resolution.markets, ZERO)
    with reverts("ZeroAddress"):
        evm.deploy(own_artifact("DirectResolutionAdapter"), *args)
