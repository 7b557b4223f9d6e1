import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval

from foretell.store.trading.api_keys import revoke_key

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
LOOK_S = 0.02
FAILED = ("step failed and is repeated", "relay requests")


async def approval_body(owner: OwnerClient, units: int) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig, units))


async def until_state(rig: RelayerRig, transaction_id: str, state: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        while (await rig.transaction(transaction_id))["state"] != state:  # noqa: ASYNC110 - as a client
            await asyncio.sleep(LOOK_S)


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
        async with asyncio.timeout(WITHIN_S):
            while (answer := await newcomer.get("/transactions")).status_code == 200:  # noqa: ASYNC110 - as a client
                await asyncio.sleep(LOOK_S)
        assert answer.status_code == 401


def steps_of(logs: Iterable[Mapping[str, Any]]) -> list[tuple[str, object]]:
    """Return the events of a log, each with the loop that it is about."""
    return [(each["event"], each.get("loop")) for each in logs]


async def test_a_failed_pass_is_logged_and_the_next_one_follows(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    transaction_id = await owner.submitted(await approval_body(owner, 1))
    await rig.run_until_mined(transaction_id)
    rig.clock.is_broken = True
    with capture_logs() as logs:
        async with rig.working():
            async with asyncio.timeout(WITHIN_S):
                while FAILED not in steps_of(logs):  # noqa: ASYNC110 - a log
                    await asyncio.sleep(LOOK_S)
            rig.clock.is_broken = False
            await rig.sandbox.mine(2)
            await until_state(rig, transaction_id, "STATE_CONFIRMED")
