import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.chain.killing import Killer
from tests.relayer.rig import Body, OwnerClient, Station, an_approval
from tests.relayer.strange_safes import make_strange
from tests.rigs.fault_proxy import FaultProxy, honest, lose_request, refuse
from tests.rigs.values import an_address

from foretell.domain.contracts.calldata import Transfer
from foretell.domain.evm.abi import contract_function
from foretell.domain.relay.request import RelayState
from foretell.relayer.resume import advance

pytestmark = pytest.mark.anyio

CALLS_OF_A_SUBMISSION: Final = 14
TRIAL_RUN: Final = 5
"""The first call after the row is stored; before it the wallet is looked at."""

Work = Callable[[], Coroutine[Any, Any, object]]

TEN_MINUTES_MS: Final = 10 * 60 * 1000
SWAP_OWNER: Final = contract_function("swapOwner(address,address,address)")


async def approval_body(owner: OwnerClient, units: int = 7, **fields: Any) -> Body:
    collateral = owner.station.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.station, units), **fields)


async def queued(station: Station, owner: OwnerClient) -> tuple[str, str]:
    """Have one transaction under way that no block takes, and one that waits behind it."""
    await station.automine(is_on=False)
    ahead = await owner.submitted(await approval_body(owner, 1))
    return ahead, await owner.submitted(await approval_body(owner, 2))


async def state_of(station: Station, transaction_id: str) -> tuple[RelayState, str]:
    request = await station.relay(transaction_id)
    return request.state, request.failure or ""


@pytest.mark.parametrize("is_heard", [False, True])
@pytest.mark.parametrize("call", range(1, CALLS_OF_A_SUBMISSION + 1))
async def test_a_submission_that_is_killed_anywhere_ends_once_or_never(
    shaky_station: Station, proxy: FaultProxy, call: int, *, is_heard: bool
) -> None:
    station = shaky_station
    owner = await station.owner("an owner")
    await owner.deploy()
    before = await station.sent_count()
    body = await approval_body(owner)
    await Killer(proxy, call, is_heard=is_heard).kill(station, owner.submit(body))
    await station.settle()
    used = await owner.safe_nonce()
    assert await station.sent_count() == before + used
    assert used in {0, 1}
    transaction_id = await owner.submitted(body)
    await station.settle()
    assert await owner.safe_nonce() == 1
    assert await station.sent_count() == before + 1
    assert (await state_of(station, transaction_id))[0] is RelayState.CONFIRMED


@settings(
    max_examples=settings().max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_wallets_and_transactions_survive_any_number_of_kills(
    shaky_station: Station, proxy: FaultProxy, seed: int
) -> None:
    station, chance = shaky_station, random.Random(seed)
    owner = await station.owner(f"owner {seed}")
    before = await station.sent_count()
    for step in range(4):
        body = await approval_body(owner, step) if step else owner.create_body()
        for _ in range(chance.randint(0, 3)):
            works: list[Work] = [partial(owner.submit, body), station.settle]
            killer = Killer(proxy, chance.randint(1, 20), is_heard=chance.random() < 0.5)
            await killer.kill(station, chance.choice(works)())
        await owner.submit(body)
        await station.settle()
    assert await owner.safe_nonce() == 3
    assert await station.sent_count() == before + 4


async def test_a_row_without_a_transaction_is_sent_at_the_next_start(
    shaky_station: Station, proxy: FaultProxy
) -> None:
    station = shaky_station
    owner = await station.owner("an owner")
    await owner.deploy()
    body = await approval_body(owner)
    assert await Killer(proxy, TRIAL_RUN, is_heard=False).kill(station, owner.submit(body))
    (record,) = (await owner.get("/transactions")).json()[:1]
    assert (record["state"], record["transactionHash"]) == ("STATE_NEW", None)
    assert await owner.next_nonce() == "1"
    await station.settle()
    assert await owner.safe_nonce() == 1
    assert (await station.transaction(record["transactionID"]))["state"] == "STATE_CONFIRMED"


async def test_a_wish_for_a_wallet_is_taken_up_too(
    shaky_station: Station, proxy: FaultProxy
) -> None:
    station = shaky_station
    owner = await station.owner("a newcomer")
    work = owner.submit(owner.create_body())
    assert await Killer(proxy, 3, is_heard=False).kill(station, work)
    await station.settle()
    assert await station.sandbox.reader.safe(owner.safe) is not None


async def test_what_cannot_be_sent_at_a_start_is_tried_until_its_time_is_over(
    shaky_station: Station, proxy: FaultProxy
) -> None:
    station = shaky_station
    owner = await station.owner("an owner")
    await owner.deploy()
    work = owner.submit(await approval_body(owner))
    assert await Killer(proxy, TRIAL_RUN, is_heard=False).kill(station, work)
    (record,) = (await owner.get("/transactions")).json()[:1]
    transaction_id = record["transactionID"]
    for fault in (lose_request, refuse("too many requests")):
        proxy.fail_always("eth_call", fault)
        assert await station.look() == 1
        assert await state_of(station, transaction_id) == (RelayState.NEW, "")
    proxy.heal()
    station.clock.move(TEN_MINUTES_MS + 1)
    await station.look()
    assert await state_of(station, transaction_id) == (
        RelayState.INVALID,
        "it could not be sent in time",
    )
    assert await owner.next_nonce() == "0"


async def test_what_reverts_at_a_start_is_over(shaky_station: Station, proxy: FaultProxy) -> None:
    station = shaky_station
    owner = await station.owner("an owner")
    await owner.deploy()
    await owner.fund(5)
    collateral = station.sandbox.deployment.collateral
    body = await owner.call_body(collateral, Transfer(an_address("a friend"), 5))
    assert await Killer(proxy, TRIAL_RUN, is_heard=False).kill(station, owner.submit(body))
    (record,) = (await owner.get("/transactions")).json()[:1]
    back = Transfer(an_address("another friend"), 5).encode()
    await station.send_as(owner.safe, collateral, back)
    await station.look()
    state, failure = await state_of(station, record["transactionID"])
    assert state is RelayState.INVALID
    assert "InsufficientBalance" in failure


async def test_a_queue_whose_head_fails_is_over(station: Station, owner: OwnerClient) -> None:
    ahead, behind = await queued(station, owner)
    collateral = station.sandbox.deployment.collateral
    await station.sandbox.rpc.send("anvil_dropAllTransactions")
    sender = station.services.sender.address
    await station.send_as(sender, collateral, an_approval(station).encode())
    await station.sandbox.mine(2)
    for _ in range(3):
        await station.sandbox.mine()
        await station.look()
    state, failure = await state_of(station, ahead)
    assert state is RelayState.FAILED
    assert "used by something else" in failure
    assert await state_of(station, behind) == (
        RelayState.INVALID,
        "an earlier transaction of the wallet came to nothing",
    )
    assert await owner.next_nonce() == "0"


async def test_who_overtakes_the_queue_past_the_relayer_takes_its_nonces(
    station: Station, owner: OwnerClient
) -> None:
    _, behind = await queued(station, owner)
    collateral = station.sandbox.deployment.collateral
    await station.sandbox.rpc.send("anvil_dropAllTransactions")
    await station.automine(is_on=True)
    for _ in range(2):
        await owner.execute_alone(collateral, an_approval(station, 9).encode())
    await station.look()
    assert await state_of(station, behind) == (
        RelayState.INVALID,
        "the wallet used the nonce for something else",
    )


async def test_who_loses_the_wallet_loses_its_queue(station: Station, owner: OwnerClient) -> None:
    _, behind = await queued(station, owner)
    await make_strange(station.sandbox, owner.safe, b"\xfe")
    await station.look()
    state, failure = await state_of(station, behind)
    assert state is RelayState.INVALID
    assert failure == "proxyWallet: it must be a Safe that is deployed"


async def test_a_queue_does_not_wait_for_ever(station: Station, owner: OwnerClient) -> None:
    ahead, behind = await queued(station, owner)
    station.clock.move(TEN_MINUTES_MS + 1)
    await station.look()
    assert (await state_of(station, behind))[0] is RelayState.INVALID
    assert (await state_of(station, ahead))[0] is RelayState.EXECUTED


async def test_what_ended_meanwhile_is_left_alone(station: Station, owner: OwnerClient) -> None:
    transaction_id = await owner.submitted(await approval_body(owner))
    seen = await station.relay(transaction_id)
    await station.settle()
    await advance(station.services, seen)
    assert (await station.relay(transaction_id)).state is RelayState.CONFIRMED


async def test_honest_work_is_not_disturbed_by_a_look(
    shaky_station: Station, proxy: FaultProxy
) -> None:
    station = shaky_station
    owner = await station.owner("an owner")
    await owner.deploy()
    before = await station.sent_count()

    async def slowly(request: Any, forward: Any) -> Any:
        await asyncio.sleep(0.05)
        return await honest(request, forward)

    proxy.fail_always("eth_sendRawTransaction", slowly)
    proxy.fail_always("eth_feeHistory", slowly)
    body = await approval_body(owner)
    work = asyncio.create_task(owner.submit(body))
    for _ in range(10):
        await station.look()
        await asyncio.sleep(0.01)
    assert (await work).status_code == 200
    assert await station.sent_count() == before + 1
