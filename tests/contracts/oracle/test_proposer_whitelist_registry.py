import pytest
from tests.contracts.evm import own_artifact, reverts
from tests.contracts.resolution import Resolution
from tests.contracts.signing import ZERO


def test_register_whitelist_registers_the_callers_and_logs_it(resolution: Resolution) -> None:
    evm = resolution.world.evm
    creator = evm.actor("another creator").address
    whitelist = evm.deploy(own_artifact("ProposerWhitelist"), creator, [])
    assert resolution.registry.call("whitelistOf", creator) == ZERO
    receipt = resolution.registry.send("registerWhitelist", whitelist.address, sender=creator)
    assert resolution.registry.call("whitelistOf", creator) == whitelist.address
    assert resolution.registry.logs(receipt, "WhitelistRegistered(address,address)") == [
        {"creator": creator, "whitelist": whitelist.address}
    ]


def test_register_whitelist_replaces_an_earlier_one(resolution: Resolution) -> None:
    creator = resolution.creator
    other = resolution.world.evm.deploy(own_artifact("ProposerWhitelist"), creator, [])
    resolution.registry.send("registerWhitelist", other.address, sender=creator)
    assert resolution.registry.call("whitelistOf", creator) == other.address


def test_register_whitelist_refuses_that_of_another_creator(resolution: Resolution) -> None:
    outsider = resolution.world.evm.actor("outsider").address
    with reverts("NotCreator"):
        resolution.registry.send("registerWhitelist", resolution.whitelist.address, sender=outsider)


@pytest.mark.parametrize("address", [ZERO, "0x" + "11" * 20])
def test_register_whitelist_refuses_an_address_without_code(
    resolution: Resolution, address: str
) -> None:
    with reverts("InvalidWhitelist"):
        resolution.registry.send("registerWhitelist", address, sender=resolution.creator)
