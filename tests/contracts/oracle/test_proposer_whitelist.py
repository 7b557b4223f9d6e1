import pytest
from tests.contracts.evm import Contract, an_actor, own_artifact, reverts
from tests.contracts.market import World
from tests.contracts.signing import ZERO

PROPOSERS_MAX = 100
FIRST, SECOND, THIRD, FOURTH = (an_actor(f"proposer {index}").address for index in range(4))


@pytest.fixture
def creator(world: World) -> str:
    return world.evm.actor("creator").address


@pytest.fixture
def whitelist(world: World, creator: str) -> Contract:
    return world.evm.deploy(own_artifact("ProposerWhitelist"), creator, [FIRST, SECOND, THIRD])


def test_it_starts_with_its_creator_and_the_first_proposers(
    whitelist: Contract, creator: str
) -> None:
    assert whitelist.call("creator") == creator
    assert whitelist.call("getProposers") == (FIRST, SECOND, THIRD)
    assert whitelist.call("getProposerCount") == 3
    assert whitelist.call("isProposer", SECOND)
    assert not whitelist.call("isProposer", FOURTH)
    assert not whitelist.call("isProposer", creator)


def test_it_may_start_empty(world: World, creator: str) -> None:
    whitelist = world.evm.deploy(own_artifact("ProposerWhitelist"), creator, [])
    assert whitelist.call("getProposers") == ()


def test_it_needs_a_creator(world: World) -> None:
    with reverts("ZeroAddress"):
        world.evm.deploy(own_artifact("ProposerWhitelist"), ZERO, [FIRST])


def test_add_proposers_adds_them_and_logs_it(whitelist: Contract, creator: str) -> None:
    receipt = whitelist.send("addProposers", [FOURTH], sender=creator)
    assert whitelist.call("getProposers") == (FIRST, SECOND, THIRD, FOURTH)
    assert whitelist.logs(receipt, "ProposerAdded(address)") == [{"proposer": FOURTH}]


@pytest.mark.parametrize(
    ("added", "error"),
    [
        ([FOURTH, FIRST], "AlreadyProposer"),
        ([FOURTH, FOURTH], "AlreadyProposer"),
        ([ZERO], "ZeroAddress"),
    ],
)
def test_add_proposers_adds_all_or_none(
    whitelist: Contract, creator: str, added: list[str], error: str
) -> None:
    with reverts(error):
        whitelist.send("addProposers", added, sender=creator)
    assert whitelist.call("getProposerCount") == 3


def test_add_proposers_stops_at_the_greatest_number(whitelist: Contract, creator: str) -> None:
    more = [an_actor(f"one more {index}").address for index in range(PROPOSERS_MAX - 3)]
    whitelist.send("addProposers", more, sender=creator)
    assert whitelist.call("getProposerCount") == PROPOSERS_MAX
    with reverts("TooManyProposers"):
        whitelist.send("addProposers", [FOURTH], sender=creator)


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        ([FIRST], {SECOND, THIRD}),
        ([THIRD], {FIRST, SECOND}),
        ([FIRST, THIRD], {SECOND}),
        ([SECOND, FIRST, THIRD], set()),
    ],
)
def test_remove_proposers_leaves_the_others(
    whitelist: Contract, creator: str, removed: list[str], left: set[str]
) -> None:
    receipt = whitelist.send("removeProposers", removed, sender=creator)
    assert set(whitelist.call("getProposers")) == left
    assert whitelist.call("getProposerCount") == len(left)
    assert {who for who in (FIRST, SECOND, THIRD) if whitelist.call("isProposer", who)} == left
    assert whitelist.logs(receipt, "ProposerRemoved(address)") == [
        {"proposer": who} for who in removed
    ]


def test_a_removed_proposer_may_be_added_again(whitelist: Contract, creator: str) -> None:
    whitelist.send("removeProposers", [FIRST], sender=creator)
    whitelist.send("addProposers", [FIRST], sender=creator)
    assert whitelist.call("isProposer", FIRST)


def test_remove_proposers_refuses_an_unknown_proposer(whitelist: Contract, creator: str) -> None:
    with reverts("NotProposer"):
        whitelist.send("removeProposers", [FIRST, FOURTH], sender=creator)
    assert whitelist.call("isProposer", FIRST)


@pytest.mark.parametrize("name", ["addProposers", "removeProposers"])
def test_only_the_creator_changes_the_list(world: World, whitelist: Contract, name: str) -> None:
    outsider = world.evm.actor("outsider").address
    with reverts("NotCreator"):
        whitelist.send(name, [FIRST], sender=outsider)
