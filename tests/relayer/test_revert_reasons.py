from dataclasses import replace
from typing import Any, Final

import pytest
from tests.relayer.rig import OwnerClient, RelayerRig, an_approval
from tests.rigs.fault_proxy import FaultProxy, lose_request
from tests.rigs.sandbox import SandboxMarket

from foretell.domain.contracts.calldata import RedeemPositions
from foretell.domain.contracts.safe import OPERATION_DELEGATECALL
from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.relay.request import RelayKind, RelayRequest
from foretell.domain.values.hexadecimal import keccak256
from foretell.relayer.revert_reasons import find_revert_reason, reason_text


@pytest.mark.spec(95)
def test_the_address_of_a_node_is_not_published() -> None:
    said = "POST https://u:p@node.example/v3/key failed"
    assert reason_text(RpcRefused("eth_call", -32000, said)) == "POST (address) failed"


def test_the_name_of_a_typed_error_comes_before_the_node_s_message() -> None:
    data = "0x" + keccak256(b"InsufficientBalance()")[:4].hex()
    reverted = ExecutionReverted("eth_call", 3, "execution reverted", data)
    assert reason_text(reverted) == "InsufficientBalance: execution reverted"


GS013: Final = ExecutionReverted("eth_call", 3, "execution reverted: GS013")


async def request_of(rig: RelayerRig, owner: OwnerClient, **fields: Any) -> RelayRequest:
    """Return a request of an approval, with some fields changed."""
    collateral = rig.sandbox.deployment.collateral
    body = await owner.call_body(collateral, an_approval(rig))
    return replace(await rig.relay(await owner.submitted(body)), **fields)


@pytest.mark.anyio
async def test_the_wallets_call_is_tried_alone_for_its_own_reason(
    rig: RelayerRig, owner: OwnerClient, market: SandboxMarket
) -> None:
    deployment = rig.sandbox.deployment
    redeem = RedeemPositions(deployment.collateral, market.condition_id).encode()
    request = await request_of(rig, owner, target=deployment.conditional_tokens, calldata=redeem)
    assert await find_revert_reason(rig.context, request, GS013) == (
        "the wallet's call would revert (execution reverted: GS013), and was not sent:"
        " execution reverted: result for condition not received yet"
    )


@pytest.mark.anyio
async def test_a_call_that_succeeds_alone_is_not_the_reason(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    cause = await find_revert_reason(rig.context, await request_of(rig, owner), GS013)
    assert cause == "the transaction would revert, and was not sent: execution reverted: GS013"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "fields", [{"operation": OPERATION_DELEGATECALL}, {"kind": RelayKind.SAFE_CREATE}]
)
async def test_only_a_single_call_is_tried_alone(
    rig: RelayerRig, owner: OwnerClient, fields: dict[str, Any]
) -> None:
    request = await request_of(rig, owner, calldata=b"\xff", **fields)
    assert (await find_revert_reason(rig.context, request, GS013)).endswith("GS013")


@pytest.mark.anyio
async def test_without_a_node_the_outer_reason_is_enough(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    owner = await shaky_rig.owner("an owner")
    await owner.deploy()
    request = await request_of(shaky_rig, owner, calldata=b"\xff")
    proxy.fail_always("eth_call", lose_request)
    assert (await find_revert_reason(shaky_rig.context, request, GS013)).endswith("GS013")
