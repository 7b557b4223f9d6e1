"""The relayer's own account: its key is replaced, or its balance runs low."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tests.relayer.rig import OwnerClient, RelayerRig, an_approval
from tests.rigs.values import a_key

from foretell.chain.sender import Sender, SenderOptions
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole
from foretell.domain.relay.request import RelayState
from foretell.store.outbox.transactions import RELAYED, TxOutbox

pytestmark = pytest.mark.anyio

FUNDS_WEI = 10**20
WITHIN_S = 60.0
LOOK_S = 0.01
NEW_KEY = a_key("the relayer's next key")


async def submitted(owner: OwnerClient, units: int) -> str:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.submitted(await owner.call_body(collateral, an_approval(owner.rig, units)))


async def fund(rig: RelayerRig, address: str, wei: int) -> None:
    await rig.sandbox.rpc.send("anvil_setBalance", address, hex(wei))


async def use_key(rig: RelayerRig, key: bytes) -> Sender:
    """Start the relayer again with this key, whose account has funds, on the same database."""
    await rig.restart()
    sender = Sender(
        rig.sandbox.rpc,
        key,
        TxOutbox(rig.database, RELAYED),
        SenderOptions(SANDBOX_CHAIN_ID, confirmations=rig.confirmations),
        rig.clock.now_ms,
    )
    await fund(rig, sender.address, FUNDS_WEI)
    rig.open(replace(rig.context, sender=sender))
    return sender


async def named(sender: Sender) -> list[object]:
    """Return the former accounts that a start names."""
    with capture_logs() as logs:
        await sender.name_former_keys()
    return [each["former"] for each in logs]


async def named_by_its_loop(sender: Sender) -> object:
    """Return the former account that the running loop names."""
    with capture_logs() as logs:
        running = asyncio.create_task(sender.run())
        try:
            async with asyncio.timeout(WITHIN_S):
                while not (found := [each for each in logs if "former" in each]):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    return found[0]["former"]


@pytest.mark.case("D-12")
async def test_a_relayer_with_another_key_goes_on(rig: RelayerRig, owner: OwnerClient) -> None:
    first = await submitted(owner, 1)
    await rig.settle()
    sender = await use_key(rig, NEW_KEY)
    assert await named(sender) == []
    second = await submitted(owner, 2)
    await rig.settle()
    states = [(await rig.relay(each)).state for each in (first, second)]
    assert states == [RelayState.CONFIRMED] * 2
    assert await owner.safe_nonce() == 2


@pytest.mark.case("D-12")
async def test_a_former_key_with_unfinished_transactions_is_named_and_finishes_them_when_it_is_back(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    """What the former key has sent is neither sent again by another, nor in the way of others."""
    former = rig.context.sender.address
    other = await rig.owner("another owner")
    await other.deploy()
    await rig.settle()
    await rig.sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    waiting = await submitted(owner, 1)
    sender = await use_key(rig, NEW_KEY)
    assert await named_by_its_loop(sender) == former
    passed = await submitted(other, 1)
    for _ in range(4):
        await rig.sandbox.mine()
        await rig.run_once()
    states = [(await rig.relay(each)).state for each in (waiting, passed)]
    assert states == [RelayState.EXECUTED, RelayState.CONFIRMED]
    key = rig.sandbox.account(AccountRole.RELAYER).private_key
    assert await named(await use_key(rig, key)) == []
    await rig.settle()
    assert (await rig.relay(waiting)).state is RelayState.CONFIRMED
    assert [await owner.safe_nonce(), await other.safe_nonce()] == [1, 1]


@pytest.mark.case("D-12")
async def test_an_account_without_funds_waits_and_sends_once_when_it_has_some(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    await rig.settle()
    sent = await rig.sent_count()
    await fund(rig, rig.context.sender.address, 0)
    waiting = await submitted(owner, 1)
    for _ in range(3):
        await rig.run_once()
        rig.clock.move(2_000)
    assert (await rig.relay(waiting)).state is RelayState.NEW
    assert await rig.sent_count() == sent
    await fund(rig, rig.context.sender.address, FUNDS_WEI)
    rig.clock.move(2_000)
    await rig.settle()
    assert (await rig.relay(waiting)).state is RelayState.CONFIRMED
    assert (await rig.sent_count(), await owner.safe_nonce()) == (sent + 1, 1)
