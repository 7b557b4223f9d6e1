import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval
from tests.relayer.strange_safes import make_strange
from tests.rigs.fault_proxy import FaultProxy, honest, lose_request, refuse
from tests.rigs.killing import Killer
from tests.rigs.values import an_address

from foretell.domain.contracts.calldata import Transfer
from foretell.domain.evm.abi import contract_function
from foretell.domain.relay.request import RelayState
from foretell.relayer import resume
from foretell.relayer.resume import advance

pytestmark = pytest.mark.anyio

CALLS_OF_A_SUBMISSION: Final = 14
TRIAL_RUN: Final = 5
"""The first call after the row is stored; earlier calls read the wallet."""

Work = Callable[[], Coroutine[Any, Any, object]]

TEN_MINUTES_MS: Final = 10 * 60 * 1000
SWAP_OWNER: Final = contract_function("swapOwner(address,address,address)")


async def approval_body(owner: OwnerClient, units: int = 7, **fields: Any) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig, units), **fields)


async def queued(rig: RelayerRig, owner: OwnerClient) -> tuple[str, str]:
    """Submit a transaction that no block includes, and one that waits for it."""
    await rig.automine(is_on=False)
    ahead = await owner.submitted(await approval_body(owner, 1))
    return ahead, await owner.submitted(await approval_body(owner, 2))


async def state_of(rig: RelayerRig, transaction_id: str) -> tuple[RelayState, str]:
    request = await rig.relay(transaction_id)
    return request.state, request.failure or ""


@pytest.mark.case("D-02")
@pytest.mark.parametrize("is_received", [False, True])
@pytest.mark.parametrize("call", range(1, CALLS_OF_A_SUBMISSION + 1))
async def test_a_submission_that_is_killed_anywhere_ends_once_or_never(
    shaky_rig: RelayerRig, proxy: FaultProxy, call: int, *, is_received: bool
) -> None:
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    before = await rig.sent_count()
    body = await approval_body(owner)
    await Killer(proxy, call, is_received=is_received).kill(rig, owner.submit(body))
    await rig.settle()
    used = await owner.safe_nonce()
    assert await rig.sent_count() == before + used
    assert used in {0, 1}
    transaction_id = await owner.submitted(body)
    await rig.settle()
    assert await owner.safe_nonce() == 1
    assert await rig.sent_count() == before + 1
    assert (await state_of(rig, transaction_id))[0] is RelayState.CONFIRMED


@settings(
    max_examples=settings().max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_wallets_and_transactions_survive_any_number_of_kills(
    shaky_rig: RelayerRig, proxy: FaultProxy, seed: int
) -> None:
    rig, rng = shaky_rig, random.Random(seed)
    owner = await rig.owner(f"owner {seed}")
    before = await rig.sent_count()
    for step in range(4):
        body = await approval_body(owner, step) if step else owner.create_body()
        for _ in range(rng.randint(0, 3)):
            works: list[Work] = [partial(owner.submit, body), rig.settle]
            killer = Killer(proxy, rng.randint(1, 20), is_received=rng.random() < 0.5)
            await killer.kill(rig, rng.choice(works)())
        await owner.submit(body)
        await rig.settle()
    assert await owner.safe_nonce() == 3
    assert await rig.sent_count() == before + 4


async def test_a_row_without_a_transaction_is_sent_at_the_next_start(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    body = await approval_body(owner)
    assert await Killer(proxy, TRIAL_RUN, is_received=False).kill(rig, owner.submit(body))
    (record,) = (await owner.get("/transactions")).json()[:1]
    assert (record["state"], record["transactionHash"]) == ("STATE_NEW", None)
    assert await owner.next_nonce() == "1"
    await rig.settle()
    assert await owner.safe_nonce() == 1
    assert (await rig.transaction(record["transactionID"]))["state"] == "STATE_CONFIRMED"


async def test_a_wallet_deployment_is_resumed_too(shaky_rig: RelayerRig, proxy: FaultProxy) -> None:
    rig = shaky_rig
    owner = await rig.owner("a newcomer")
    work = owner.submit(owner.create_body())
    assert await Killer(proxy, 3, is_received=False).kill(rig, work)
    await rig.settle()
    assert await rig.sandbox.reader.safe(owner.safe) is not None


async def test_a_request_that_cannot_be_sent_at_a_start_is_retried_until_its_deadline(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    work = owner.submit(await approval_body(owner))
    assert await Killer(proxy, TRIAL_RUN, is_received=False).kill(rig, work)
    (record,) = (await owner.get("/transactions")).json()[:1]
    transaction_id = record["transactionID"]
    for fault in (lose_request, refuse("too many requests")):
        proxy.fail_always("eth_call", fault)
        assert await rig.run_once() == 1
        assert await state_of(rig, transaction_id) == (RelayState.NEW, "")
    proxy.heal()
    rig.clock.move(TEN_MINUTES_MS + 1)
    await rig.run_once()
    assert await state_of(rig, transaction_id) == (
        RelayState.INVALID,
        "it could not be sent in time",
    )
    assert await owner.next_nonce() == "0"


async def test_a_request_that_reverts_at_a_start_is_refused(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    await owner.fund(5)
    collateral = rig.sandbox.deployment.collateral
    body = await owner.call_body(collateral, Transfer(an_address("a friend"), 5))
    assert await Killer(proxy, TRIAL_RUN, is_received=False).kill(rig, owner.submit(body))
    (record,) = (await owner.get("/transactions")).json()[:1]
    back = Transfer(an_address("another friend"), 5).encode()
    await rig.send_as(owner.safe, collateral, back)
    await rig.run_once()
    state, failure = await state_of(rig, record["transactionID"])
    assert state is RelayState.INVALID
    assert "InsufficientBalance" in failure


async def test_a_queue_whose_head_fails_is_refused(rig: RelayerRig, owner: OwnerClient) -> None:
    ahead, behind = await queued(rig, owner)
    collateral = rig.sandbox.deployment.collateral
    await rig.sandbox.rpc.send("anvil_dropAllTransactions")
    sender = rig.context.sender.address
    await rig.send_as(sender, collateral, an_approval(rig).encode())
    await rig.sandbox.mine(2)
    for _ in range(3):
        await rig.sandbox.mine()
        await rig.run_once()
    state, failure = await state_of(rig, ahead)
    assert state is RelayState.FAILED
    assert "used by something else" in failure
    assert await state_of(rig, behind) == (
        RelayState.INVALID,
        "an earlier transaction of the wallet failed",
    )
    assert await owner.next_nonce() == "0"


async def test_a_transaction_that_bypasses_the_relayer_takes_a_queued_nonce(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    _, behind = await queued(rig, owner)
    collateral = rig.sandbox.deployment.collateral
    await rig.sandbox.rpc.send("anvil_dropAllTransactions")
    await rig.automine(is_on=True)
    for _ in range(2):
        await owner.execute_alone(collateral, an_approval(rig, 9).encode())
    await rig.run_once()
    assert await state_of(rig, behind) == (
        RelayState.INVALID,
        "the wallet used the nonce for something else",
    )


@pytest.mark.case("D-11")
async def test_the_queue_of_a_lost_wallet_is_refused(rig: RelayerRig, owner: OwnerClient) -> None:
    _, behind = await queued(rig, owner)
    await make_strange(rig.sandbox, owner.safe, b"\xfe")
    await rig.run_once()
    state, failure = await state_of(rig, behind)
    assert state is RelayState.INVALID
    assert failure == "proxyWallet: it must be a Safe that is deployed"


async def test_the_wait_of_a_queue_is_limited(rig: RelayerRig, owner: OwnerClient) -> None:
    ahead, behind = await queued(rig, owner)
    rig.clock.move(TEN_MINUTES_MS + 1)
    await rig.run_once()
    assert (await state_of(rig, behind))[0] is RelayState.INVALID
    assert (await state_of(rig, ahead))[0] is RelayState.EXECUTED


async def test_no_request_waits_behind_as_many_as_are_read_at_once(
    rig: RelayerRig, owner: OwnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: requests that wait could keep newer ones of other wallets from being followed."""
    monkeypatch.setattr(resume, "OPEN_MAX", 1)
    await queued(rig, owner)
    other = await rig.owner("another owner")
    await other.deploy()
    _, behind = await queued(rig, other)
    await rig.sandbox.mine()
    await rig.context.sender.run_once()
    await rig.run_once()
    assert (await state_of(rig, behind))[0] is RelayState.EXECUTED


async def test_a_request_that_ended_in_the_meantime_is_left_alone(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    transaction_id = await owner.submitted(await approval_body(owner))
    seen = await rig.relay(transaction_id)
    await rig.settle()
    await advance(rig.context, seen)
    assert (await rig.relay(transaction_id)).state is RelayState.CONFIRMED


async def test_a_pass_does_not_disturb_work_in_progress(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    before = await rig.sent_count()

    async def slowly(request: Any, forward: Any) -> Any:
        await asyncio.sleep(0.05)
        return await honest(request, forward)

    proxy.fail_always("eth_sendRawTransaction", slowly)
    proxy.fail_always("eth_feeHistory", slowly)
    body = await approval_body(owner)
    work = asyncio.create_task(owner.submit(body))
    for _ in range(10):
        await rig.run_once()
        await asyncio.sleep(0.01)
    assert (await work).status_code == 200
    assert await rig.sent_count() == before + 1
