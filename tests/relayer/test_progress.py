import pytest
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval
from tests.relayer.strange_safes import FAILS_QUIETLY, SAYS_NOTHING, a_strange_safe, make_strange
from tests.rigs.chain_snapshots import wait_until_mined
from tests.rigs.fault_proxy import FaultProxy, change

from foretell.domain.relay.request import RelayState, RelayTrigger
from foretell.relayer import resume
from foretell.relayer.progress import EXECUTION_SUCCESS, move

pytestmark = pytest.mark.anyio


async def approval_body(owner: OwnerClient, units: int = 7) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig, units))


async def state_of(rig: RelayerRig, transaction_id: str) -> RelayState:
    return (await rig.relay(transaction_id)).state


def test_the_success_log_is_the_one_that_safes_emit() -> None:
    known = "0x442e715f626346e8c54381002da614f62bee8d27386535b2521ec8540898556e"
    assert known == EXECUTION_SUCCESS


async def test_a_request_goes_through_all_states(rig: RelayerRig, owner: OwnerClient) -> None:
    await rig.automine(is_on=False)
    transaction_id = await owner.submitted(await approval_body(owner))
    seen = [await state_of(rig, transaction_id)]
    for _ in range(2):
        await rig.sandbox.mine()
        await rig.run_once()
        seen.append(await state_of(rig, transaction_id))
    assert seen == [RelayState.EXECUTED, RelayState.MINED, RelayState.CONFIRMED]


@pytest.mark.case("D-08")
async def test_a_reorg_moves_a_request_back_and_it_is_mined_again(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    rig.confirmations = 5
    await rig.restart()
    body = await approval_body(owner)
    before = await rig.sandbox.rpc.send("evm_snapshot")
    transaction_id = await owner.submitted(body)
    await rig.run_until_mined(transaction_id)
    await resume.run_once(rig.context)
    assert await state_of(rig, transaction_id) is RelayState.MINED
    await wait_until_mined(rig.sandbox.rpc)
    assert await rig.sandbox.rpc.send("evm_revert", before)
    await rig.automine(is_on=False)
    await rig.run_once()
    assert await state_of(rig, transaction_id) is RelayState.EXECUTED
    assert await owner.next_nonce() == "1"
    await rig.automine(is_on=True)
    for _ in range(6):
        await rig.run_once()
        await rig.sandbox.mine()
    await rig.run_once()
    assert await state_of(rig, transaction_id) is RelayState.CONFIRMED
    assert await owner.safe_nonce() == 1


async def test_a_block_that_a_reorg_removes_during_the_check_changes_nothing(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    transaction_id = await owner.submitted(await approval_body(owner))
    await rig.run_until_mined(transaction_id)
    proxy.fail("eth_getTransactionReceipt", change(lambda _: None))
    await resume.run_once(rig.context)
    assert await state_of(rig, transaction_id) is RelayState.EXECUTED
    await rig.run_once()
    assert await state_of(rig, transaction_id) is RelayState.MINED


@pytest.mark.spec(95)
@pytest.mark.parametrize("execution", [FAILS_QUIETLY, SAYS_NOTHING], ids=["fails", "silent"])
async def test_a_mined_transaction_counts_only_with_the_wallet_s_success_log(
    rig: RelayerRig, owner: OwnerClient, execution: bytes
) -> None:
    body = await approval_body(owner)
    await make_strange(rig.sandbox, owner.safe, a_strange_safe(owner.address, execution))
    transaction_id = await owner.submitted(body)
    await rig.run_until_mined(transaction_id)
    await resume.run_once(rig.context)
    assert await state_of(rig, transaction_id) is RelayState.EXECUTED
    await rig.settle()
    request = await rig.relay(transaction_id)
    assert (request.state, request.failure) == (
        RelayState.FAILED,
        "the transaction was mined, and the wallet's own call in it failed",
    )


async def test_attack_h1_logs_of_whom_a_wallet_calls_are_not_decoded(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    transaction_id = await owner.submitted(await approval_body(owner))
    await rig.run_until_mined(transaction_id)
    strange = {"address": 7, "topics": None, "data": "0x"}
    proxy.fail_always(
        "eth_getTransactionReceipt",
        change(lambda receipt: receipt | {"logs": [strange, *receipt["logs"], strange]}),
    )
    await rig.settle()
    assert await state_of(rig, transaction_id) is RelayState.CONFIRMED


async def test_a_request_that_another_process_moved_is_read_again(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    transaction_id = await owner.submitted(await approval_body(owner))
    seen = await rig.relay(transaction_id)
    await rig.settle()
    moved = await move(rig.context, seen, RelayTrigger.FAIL, "stale")
    assert moved.state is RelayState.CONFIRMED
    assert await state_of(rig, transaction_id) is RelayState.CONFIRMED
