"""Locks of wallets: few wait for one, not for long, and nobody keeps an owner or other wallets waiting."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.relayer.rig import OwnerClient, RelayerRig, error_of
from tests.relayer.test_deposit_wallets import creation, wallet_of
from tests.relayer.test_submit import approval_body
from tests.rigs.values import an_address

from foretell.domain.errors.relayer import WalletInUse
from foretell.domain.relay.request import OPEN
from foretell.relayer import resume
from foretell.relayer.wallet_locks import UNSIGNED_MAX, WAITING_MAX, WalletLocks
from foretell.store.tables import relay_requests

pytestmark = pytest.mark.anyio

WALLET, OTHER = an_address("wallet"), an_address("other")


async def hold(locks: WalletLocks, *, is_signed: bool = True) -> None:
    async with locks.holding(WALLET, is_signed=is_signed):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def waiting(
    locks: WalletLocks, count: int, *, is_signed: bool
) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(hold(locks, is_signed=is_signed)) for _ in range(count)]
    await asyncio.sleep(0)
    yield tasks


async def test_one_task_at_a_time_holds_a_wallet() -> None:
    locks = WalletLocks()
    async with locks.holding(WALLET), locks.holding(OTHER):
        assert not locks.is_free(WALLET)
        async with waiting(locks, 3, is_signed=True) as tasks:
            assert not any(task.done() for task in tasks)
    await asyncio.gather(*tasks)
    assert locks.is_free(WALLET)


async def test_guard_few_tasks_wait_for_a_wallet() -> None:
    locks = WalletLocks()
    async with locks.holding(WALLET), waiting(locks, WAITING_MAX, is_signed=True) as tasks:
        with pytest.raises(WalletInUse):
            await hold(locks)
        async with locks.holding(OTHER):
            pass
    await asyncio.gather(*tasks)
    await hold(locks)


async def test_guard_those_without_a_signature_leave_places_to_the_owner() -> None:
    locks = WalletLocks()
    async with locks.holding(WALLET), waiting(locks, UNSIGNED_MAX, is_signed=False) as strangers:
        with pytest.raises(WalletInUse):
            await hold(locks, is_signed=False)
        async with waiting(locks, WAITING_MAX - UNSIGNED_MAX, is_signed=True) as owners:
            pass
    await asyncio.gather(*strangers, *owners)
    assert locks.is_free(WALLET)


async def test_guard_a_wallet_is_not_waited_for_for_ever() -> None:
    locks = WalletLocks(wait_s=0.01)
    async with locks.holding(WALLET):
        with pytest.raises(WalletInUse):
            await hold(locks)
    await hold(locks)
    assert locks.is_free(WALLET)


async def test_guard_a_wallet_that_sends_stops_no_other_one(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    """A finding: its open requests took all places of a pass, and waited there."""
    other = await rig.owner("another owner")
    await other.deploy()
    await rig.automine(is_on=False)
    for count in range(resume.AT_ONCE_MAX + 1):
        await owner.submitted(await approval_body(owner, 1 + count))
    transaction_id = await other.submitted(await approval_body(other, 1))
    await rig.sandbox.mine()
    await rig.context.sender.run_once()
    async with rig.context.locks.holding(owner.safe):
        async with asyncio.timeout(60):
            await resume.run_once(rig.context)
        assert (await rig.transaction(transaction_id))["state"] == "STATE_MINED"


async def test_guard_a_creation_that_is_under_way_or_done_needs_no_lock(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    """A finding: anybody had its owner's requests wait for its own."""
    transaction_id = await newcomer.submitted(creation(newcomer))
    assert (await rig.relay(transaction_id)).state in OPEN
    async with rig.context.locks.holding(wallet_of(newcomer)), asyncio.timeout(60):
        assert await newcomer.submitted(creation(newcomer)) == transaction_id
        await rig.sandbox.mine()
        assert await newcomer.submitted(creation(newcomer)) == transaction_id


async def test_guard_a_wallet_of_another_that_exists_is_refused_without_its_lock(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    await newcomer.submitted(creation(newcomer))
    await rig.settle()
    async with rig.database.writing() as tx:
        await tx.execute(relay_requests.delete())
    async with rig.context.locks.holding(wallet_of(newcomer)), asyncio.timeout(60):
        answer = await newcomer.submit(creation(newcomer))
    assert error_of(answer)[1].startswith("wallet_exists")


async def test_guard_a_request_that_waited_too_long_may_be_sent_again(
    rig: RelayerRig, owner: OwnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = await approval_body(owner)
    monkeypatch.setattr(rig.context.locks, "_wait_s", 0.05)
    async with rig.context.locks.holding(owner.safe):
        answer = await owner.submit(body)
    assert (answer.status_code, answer.json()["code"]) == (503, "wallet_in_use")
    assert answer.headers["retry-after"] == "1"
    await owner.submitted(body)
