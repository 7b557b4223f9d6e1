import asyncio

import pytest
from structlog.testing import capture_logs
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval

from foretell.store.trading.api_keys import revoke_key

pytestmark = pytest.mark.anyio

PASSES_MAX = 250
LOOK_S = 0.02


async def approval_body(owner: OwnerClient, units: int) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig, units))


async def until_state(rig: RelayerRig, transaction_id: str, state: str) -> None:
    for _ in range(PASSES_MAX):
        if (await rig.transaction(transaction_id))["state"] == state:
            return
        await asyncio.sleep(LOOK_S)
    raise AssertionError(f"{transaction_id} does not come to {state}")


async def test_the_loops_finish_every_request(rig: RelayerRig, owner: OwnerClient) -> None:
    await rig.automine(is_on=False)
    async with rig.working():
        ids = [await owner.submitted(await approval_body(owner, units)) for units in (1, 2)]
        for transaction_id in ids:
            await until_state(rig, transaction_id, "STATE_EXECUTED")
            await rig.sandbox.mine()
            await until_state(rig, transaction_id, "STATE_MINED")
        await rig.sandbox.mine(2)
        for transaction_id in ids:
            await until_state(rig, transaction_id, "STATE_CONFIRMED")


async def test_the_loops_resume_requests_of_an_earlier_process(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    transaction_id = await owner.submitted(await approval_body(owner, 1))
    await rig.restart()
    await rig.sandbox.mine(2)
    async with rig.working():
        await until_state(rig, transaction_id, "STATE_CONFIRMED")


@pytest.mark.spec(53)
async def test_a_key_that_another_process_revoked_is_forgotten(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    async with rig.working():
        assert (await newcomer.get("/transactions")).status_code == 200
        async with rig.database.writing() as tx:
            await revoke_key(tx, newcomer.credentials.key_id, rig.clock.at_ms)
        await asyncio.sleep(LOOK_S)
        assert (await newcomer.get("/transactions")).status_code == 401


async def test_a_failed_pass_is_logged_and_the_next_one_follows(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    transaction_id = await owner.submitted(await approval_body(owner, 1))
    await rig.context.sender.run_once()
    rig.clock.is_broken = True
    with capture_logs() as logs:
        async with rig.working():
            await asyncio.sleep(0.4)
            rig.clock.is_broken = False
            await rig.sandbox.mine(2)
            await until_state(rig, transaction_id, "STATE_CONFIRMED")
    assert ("step failed and is repeated", "relay requests") in [
        (log["event"], log.get("loop")) for log in logs
    ]
