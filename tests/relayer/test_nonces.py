from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from tests.relayer.rig import OwnerClient, RelayerRig, an_approval
from tests.relayer.strange_safes import (
    LOOPS,
    NONCE,
    OWNERS,
    THRESHOLD,
    answer,
    answer_list,
    by_selector,
    make_strange,
)
from tests.relayer.test_checks import refusal
from tests.rigs.values import an_address

from foretell.chain.connections.node_connections import HttpAnswer, NodeConnections
from foretell.chain.views import SIGNATURE_ANSWER_BYTES_MAX, SIGNATURE_GAS_MAX
from foretell.domain.values.hexadecimal import Address, checksum_address

pytestmark = pytest.mark.anyio


async def nonce_of(rig: RelayerRig, address: str) -> str:
    answer = await rig.http.get("/nonce", params={"address": address, "type": "SAFE"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["nonce"])


@pytest.mark.spec(110)
async def test_the_nonce_of_a_wallet_that_is_not_deployed_is_zero(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    assert await nonce_of(rig, checksum_address(newcomer.address)) == "0"
    await newcomer.submitted(newcomer.create_body())
    assert await nonce_of(rig, newcomer.address) == "0"


@pytest.mark.spec(110)
async def test_a_nonce_is_found_by_the_wallet_s_own_address(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    collateral = rig.sandbox.deployment.collateral
    await rig.automine(is_on=False)
    await owner.submitted(await owner.call_body(collateral, an_approval(rig)))
    assert await nonce_of(rig, owner.safe) == "1"
    await rig.sandbox.mine()
    assert await nonce_of(rig, owner.safe) == "1"
    assert await nonce_of(rig, owner.address) == "1"


@pytest.mark.case("E-04")
async def test_transactions_that_bypass_the_relayer_count(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    collateral = rig.sandbox.deployment.collateral
    await owner.execute_alone(collateral, an_approval(rig).encode())
    assert await nonce_of(rig, owner.address) == "1"
    await owner.submitted(await owner.call_body(collateral, an_approval(rig)))
    await rig.settle()
    assert await nonce_of(rig, owner.address) == "2"


async def test_refused_requests_do_not_count(rig: RelayerRig, owner: OwnerClient) -> None:
    collateral = rig.sandbox.deployment.collateral
    await rig.automine(is_on=False)
    await owner.submitted(await owner.call_body(collateral, an_approval(rig)))
    await make_strange(rig.sandbox, owner.safe, b"\xfe")
    await rig.settle()
    assert await nonce_of(rig, owner.address) == "0"


async def test_a_contract_that_is_no_wallet_has_none(rig: RelayerRig) -> None:
    assert await nonce_of(rig, rig.sandbox.deployment.collateral) == "0"
    assert await nonce_of(rig, an_address("nobody")) == "0"


STRANGE: Final = an_address("strange")
OWNERS_MANY: Final = 110_000
WALLETS: Final[Mapping[str, tuple[bytes, str]]] = {
    "many owners": (
        by_selector(
            {NONCE: answer(b"\x07"), THRESHOLD: answer(b"\x01"), OWNERS: answer_list(OWNERS_MANY)},
            LOOPS,
        ),
        "7",
    ),
    "owners that run on": (
        by_selector({NONCE: answer(b"\x07"), THRESHOLD: answer(b"\x01")}, LOOPS),
        "7",
    ),
    "a long nonce": (by_selector({NONCE: answer_list(1_000)}, LOOPS), "0"),
    "everything runs on": (LOOPS, "0"),
}


class NodeCalls:
    """The calls of contracts that the node was asked to run, and the most bytes that it answered."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self.bytes_by_target: dict[str, int] = {}

    def check_bounded(self, wallet: Address) -> set[str]:
        """Fail for a call of a wallet without bounds, and return the data of the calls."""
        calls = [call for call in self.calls if call["to"] == wallet]
        assert calls
        assert all(int(call.get("gas", "0xffffffff"), 16) <= SIGNATURE_GAS_MAX for call in calls)
        assert self.bytes_by_target.get(wallet, 0) <= SIGNATURE_ANSWER_BYTES_MAX
        return {call["data"] for call in calls}


@pytest.fixture
def node_calls(monkeypatch: pytest.MonkeyPatch) -> NodeCalls:
    seen, post = NodeCalls(), NodeConnections.post

    async def recorded(
        connections: NodeConnections, method: str, body: bytes, bytes_max: int, **options: Any
    ) -> HttpAnswer:
        sent = msgspec.json.decode(body)
        requests = sent if isinstance(sent, list) else [sent]
        calls = [each["params"][0] for each in requests if each["method"] == "eth_call"]
        seen.calls += calls
        received = await post(connections, method, body, bytes_max, **options)
        for call in calls:
            before = seen.bytes_by_target.get(call["to"], 0)
            seen.bytes_by_target[call["to"]] = max(before, len(received.body))
        return received

    monkeypatch.setattr(NodeConnections, "post", recorded)
    return seen


@pytest.mark.parametrize("name", WALLETS)
async def test_guard_a_strangers_contract_is_asked_for_its_nonce_alone_and_within_bounds(
    rig: RelayerRig, node_calls: NodeCalls, name: str
) -> None:
    code, nonce = WALLETS[name]
    await make_strange(rig.sandbox, STRANGE, code)
    reply = await rig.http.get("/nonce", params={"address": STRANGE, "type": "SAFE"})
    assert (reply.status_code, reply.json()["nonce"]) == (200, nonce)
    assert node_calls.check_bounded(STRANGE) == {"0x" + NONCE.hex()}


@pytest.mark.parametrize("name", WALLETS)
async def test_guard_a_submission_asks_its_wallet_within_bounds(
    rig: RelayerRig, owner: OwnerClient, node_calls: NodeCalls, name: str
) -> None:
    body = await owner.call_body(rig.sandbox.deployment.collateral, an_approval(rig))
    await make_strange(rig.sandbox, owner.safe, WALLETS[name][0])
    node_calls.calls.clear()
    node_calls.bytes_by_target.clear()
    assert await refusal(owner, body) == (400, "invalid_field proxyWallet")
    node_calls.check_bounded(owner.safe)
