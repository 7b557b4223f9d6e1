import pytest
from tests.contracts.evm import Contract, own_artifact, reverts
from tests.contracts.market import World
from tests.contracts.signing import ZERO

CONDITION = b"\x11" * 32
METADATA_ID = "k" * 43
METADATA_ID_BYTES_MAX = 128


@pytest.fixture
def adapter(world: World) -> str:
    return world.evm.actor("adapter").address


@pytest.fixture
def creator(world: World) -> str:
    return world.evm.actor("creator").address


@pytest.fixture
def registry(world: World, adapter: str) -> Contract:
    registry = world.evm.deploy(own_artifact("MarketRegistry"), world.admin)
    registry.send("addAdapter", adapter, sender=world.admin)
    return registry


@pytest.fixture
def recorded(registry: Contract, adapter: str, creator: str) -> Contract:
    registry.send("recordCreator", CONDITION, creator, sender=adapter)
    return registry


def test_record_creator_records_the_creator_of_a_condition(
    registry: Contract, adapter: str, creator: str
) -> None:
    assert registry.call("creatorOf", CONDITION) == ZERO
    receipt = registry.send("recordCreator", CONDITION, creator, sender=adapter)
    assert registry.call("creatorOf", CONDITION) == creator
    assert registry.logs(receipt, "CreatorRecorded(bytes32,address,address)") == [
        {"conditionId": CONDITION, "creator": creator, "adapter": adapter}
    ]


def test_record_creator_is_for_adapters_alone(registry: Contract, creator: str) -> None:
    with reverts("NotAdapter"):
        registry.send("recordCreator", CONDITION, creator, sender=creator)


def test_record_creator_happens_once(recorded: Contract, adapter: str) -> None:
    with reverts("AlreadyRecorded"):
        recorded.send("recordCreator", CONDITION, adapter, sender=adapter)


def test_record_creator_refuses_the_zero_address(registry: Contract, adapter: str) -> None:
    with reverts("ZeroAddress"):
        registry.send("recordCreator", CONDITION, ZERO, sender=adapter)


def test_set_metadata_sets_the_id_and_logs_it(recorded: Contract, creator: str) -> None:
    receipt = recorded.send("setMetadata", CONDITION, METADATA_ID, sender=creator)
    assert recorded.call("metadataOf", CONDITION) == METADATA_ID
    assert recorded.logs(receipt, "MetadataSet(bytes32,address,string)") == [
        {"conditionId": CONDITION, "creator": creator, "metadataId": METADATA_ID}
    ]


@pytest.mark.parametrize("later", ["x", "y" * METADATA_ID_BYTES_MAX])
def test_set_metadata_replaces_an_earlier_id(recorded: Contract, creator: str, later: str) -> None:
    recorded.send("setMetadata", CONDITION, METADATA_ID, sender=creator)
    recorded.send("setMetadata", CONDITION, later, sender=creator)
    assert recorded.call("metadataOf", CONDITION) == later


@pytest.mark.parametrize("role", ["adapter", "admin"])
def test_set_metadata_is_for_the_creator_alone(world: World, recorded: Contract, role: str) -> None:
    with reverts("NotCreator"):
        recorded.send("setMetadata", CONDITION, METADATA_ID, sender=world.evm.actor(role).address)


def test_set_metadata_requires_a_recorded_condition(registry: Contract, creator: str) -> None:
    with reverts("NotCreator"):
        registry.send("setMetadata", CONDITION, METADATA_ID, sender=creator)


def test_set_metadata_requires_an_id(recorded: Contract, creator: str) -> None:
    with reverts("EmptyMetadataId"):
        recorded.send("setMetadata", CONDITION, "", sender=creator)


def test_only_the_admin_adds_and_removes_adapters(
    world: World, registry: Contract, adapter: str
) -> None:
    with reverts("NotAdmin"):
        registry.send("addAdapter", adapter, sender=adapter)
    with reverts("NotAdmin"):
        registry.send("removeAdapter", adapter, sender=adapter)
    removed = registry.send("removeAdapter", adapter, sender=world.admin)
    assert not registry.call("isAdapter", adapter)
    assert registry.logs(removed, "AdapterRemoved(address)") == [{"adapter": adapter}]
    added = registry.send("addAdapter", adapter, sender=world.admin)
    assert registry.call("isAdapter", adapter)
    assert registry.logs(added, "AdapterAdded(address)") == [{"adapter": adapter}]
