from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.evm import own_artifact, reverts
from tests.contracts.resolution import (
    PRICE_YES,
    TEXT,
    YES_OR_NO_QUERY,
    Resolution,
    with_initializer,
)
from tests.contracts.signing import ZERO

PROPOSED = "DirectResolution(address,bytes32,address,int256)"


def proposal(resolution: Resolution, **changed: Any) -> tuple[Any, ...]:
    fields = {
        "adapter": resolution.adapter.address,
        "questionId": resolution.question_id(),
        "identifier": YES_OR_NO_QUERY,
        "timestamp": resolution.asked_at(),
        "ancillaryData": with_initializer(TEXT, resolution.creator),
        "proposedPrice": PRICE_YES,
    }
    return tuple((fields | changed).values())


def test_propose_and_resolve_is_final_at_once(resolution: Resolution) -> None:
    resolution.ask()
    receipt = resolution.answer(PRICE_YES)
    assert resolution.payouts() == (1, 0, 1)
    assert resolution.oracle.logs(receipt, PROPOSED) == [
        {
            "adapter": resolution.adapter.address,
            "questionId": resolution.question_id(),
            "proposer": resolution.proposer,
            "proposedPrice": PRICE_YES,
        }
    ]
    with reverts("AlreadyResolved"):
        resolution.answer(PRICE_YES)


def test_propose_and_resolve_takes_no_bond(resolution: Resolution) -> None:
    resolution.ask()
    bond = resolution.oracle.call(
        "proposeAndResolve", *proposal(resolution), sender=resolution.proposer
    )
    assert bond == 0


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"identifier": bytes(32)}, "InvalidIdentifier"),
        ({"timestamp": 1}, "InvalidTimestamp"),
        ({"ancillaryData": TEXT}, "InvalidAncillaryData"),
        ({"questionId": bytes(32)}, "NotInitialized"),
        ({"adapter": "0x" + "11" * 20}, "NotAdapter"),
    ],
)
def test_propose_and_resolve_requires_the_question_as_asked(
    resolution: Resolution, changed: dict[str, Any], error: str
) -> None:
    resolution.ask()
    with reverts(error):
        resolution.oracle.send(
            "proposeAndResolve", *proposal(resolution, **changed), sender=resolution.proposer
        )


@pytest.mark.case("J-04")
@pytest.mark.parametrize("role", ["creator", "admin", "operator"])
def test_propose_and_resolve_is_for_whitelisted_proposers_alone(
    resolution: Resolution, role: str
) -> None:
    resolution.ask()
    with reverts("NotProposer"):
        replace(resolution, proposer=getattr(resolution, role)).answer(PRICE_YES)


def test_propose_and_resolve_reads_the_current_whitelist(resolution: Resolution) -> None:
    resolution.ask()
    resolution.whitelist.send("removeProposers", [resolution.proposer], sender=resolution.creator)
    with reverts("NotProposer"):
        resolution.answer(PRICE_YES)


def test_propose_and_resolve_reads_the_whitelist_of_the_creator(resolution: Resolution) -> None:
    other = resolution.world.evm.actor("another creator").address
    theirs = resolution.world.evm.deploy(own_artifact("ProposerWhitelist"), other, [other])
    resolution.registry.send("registerWhitelist", theirs.address, sender=other)
    resolution.ask()
    with reverts("NotProposer"):
        replace(resolution, proposer=other).answer(PRICE_YES)


def test_propose_and_resolve_requires_a_creator_with_a_whitelist(resolution: Resolution) -> None:
    resolution.adapter.send("setCreationFee", 0, 0, sender=resolution.admin)
    lonely = replace(resolution, creator=resolution.world.evm.actor("lonely creator").address)
    lonely.ask()
    with reverts("NotProposer"):
        lonely.answer(PRICE_YES)


def test_only_the_admin_adds_and_removes_adapters(resolution: Resolution) -> None:
    oracle, adapter = resolution.oracle, resolution.adapter.address
    with reverts("NotAdmin"):
        oracle.send("addAdapter", ZERO, sender=resolution.creator)
    with reverts("NotAdmin"):
        oracle.send("removeAdapter", adapter, sender=resolution.creator)
    removed = oracle.send("removeAdapter", adapter, sender=resolution.admin)
    assert not oracle.call("isAdapter", adapter)
    assert oracle.logs(removed, "AdapterRemoved(address)") == [{"adapter": adapter}]
    added = oracle.send("addAdapter", adapter, sender=resolution.admin)
    assert oracle.call("isAdapter", adapter)
    assert oracle.logs(added, "AdapterAdded(address)") == [{"adapter": adapter}]


def test_the_whitelist_registry_can_be_read(resolution: Resolution) -> None:
    assert resolution.oracle.call("whitelistRegistry") == resolution.registry.address
