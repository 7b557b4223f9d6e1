import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.relayer.rig import (
    ONE_PLACE,
    Body,
    OwnerClient,
    RelayerRig,
    an_approval,
    an_operator_approval,
)
from tests.rigs.fault_proxy import BROADCAST, Answer, FaultProxy, Forward, Request
from tests.rigs.values import NOW_MS

from foretell.domain.values.hexadecimal import checksum_address
from foretell.domain.values.instants import iso_time
from foretell.store.public_reads.places import ReadKind

pytestmark = pytest.mark.anyio

HASH = re.compile(r"0x[0-9a-f]{64}")
ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


async def approval_body(owner: OwnerClient, units: int = 7, **fields: Any) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig, units), **fields)


@pytest.mark.spec(3)
async def test_a_transaction_is_shown_as_it_was_signed(rig: RelayerRig, owner: OwnerClient) -> None:
    body = await approval_body(owner, metadata="my label")
    transaction_id = await owner.submitted(body)
    record = await rig.transaction(transaction_id)
    assert HASH.fullmatch(record["transactionHash"])
    assert all(ADDRESS.fullmatch(record[name]) for name in ("from", "to", "proxyAddress"))
    assert record == {
        "transactionID": transaction_id,
        "transactionHash": record["transactionHash"],
        "from": body["from"],
        "to": body["to"],
        "proxyAddress": body["proxyWallet"],
        "data": body["data"],
        "nonce": "0",
        "value": "0",
        "state": "STATE_EXECUTED",
        "type": "SAFE",
        "metadata": "my label",
        "failureReason": None,
        "createdAt": iso_time(NOW_MS),
        "updatedAt": iso_time(NOW_MS),
    }
    await rig.settle()
    settled = await rig.transaction(transaction_id)
    assert settled == record | {"state": "STATE_CONFIRMED"}


async def test_a_wallet_deployment_has_no_nonce_and_no_label(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    record = await rig.transaction(await newcomer.submitted(newcomer.create_body()))
    assert (record["type"], record["nonce"], record["metadata"]) == ("SAFE-CREATE", "", "")
    assert record["proxyAddress"] == checksum_address(newcomer.safe)


@pytest.mark.parametrize("transaction_id", ["nothing", "00000000-0000-4000-8000-000000000000"])
async def test_an_unknown_transaction_is_an_empty_list(
    rig: RelayerRig, transaction_id: str
) -> None:
    answer = await rig.http.get("/transaction", params={"id": transaction_id})
    assert (answer.status_code, answer.json()) == (200, [])


async def test_a_caller_sees_its_own_transactions_the_newest_first(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    other = await rig.owner("another owner")
    await other.deploy()
    wanted = []
    for units in (1, 2, 3):
        rig.clock.move(1000)
        wanted.append(await owner.submitted(await approval_body(owner, units)))
        await rig.settle()
    records = (await owner.get("/transactions")).json()
    assert [record["transactionID"] for record in records][:3] == wanted[::-1]
    assert [record["type"] for record in records] == ["SAFE"] * 3 + ["SAFE-CREATE"]
    assert len((await other.get("/transactions")).json()) == 1
    assert {record["from"] for record in records} == {checksum_address(owner.address)}


async def test_p1_strangers_use_no_places_of_the_accounts(rig: RelayerRig) -> None:
    """What needs no key is answered while the accounts' own places are taken, and what needs one waits for them."""
    owner = await rig.owner("an owner")
    await owner.deploy()
    transaction_id = await owner.submitted(await approval_body(owner))
    rig.limits = ONE_PLACE
    await rig.restart()
    who = {"address": checksum_address(owner.address), "type": "SAFE"}
    async with rig.database.public_reading(ReadKind.OWN):
        open_to_all = [
            await rig.http.get("/nonce", params=who),
            await rig.http.get("/relay-payload", params=who),
            await rig.http.get("/transaction", params={"id": transaction_id}),
            await rig.http.get("/transactions", params={"address": owner.address}),
        ]
        signed = await owner.get("/transactions")
    assert [each.status_code for each in open_to_all] == [200] * 4
    assert (signed.status_code, signed.json()["code"]) == (503, "reads_busy")


class Holder:
    """One who holds the only place for reads of accounts' own, from a moment until the end of a block."""

    def __init__(self, rig: RelayerRig) -> None:
        self._rig = rig
        self._held, self._left = asyncio.Event(), asyncio.Event()

    async def _hold(self) -> None:
        async with self._rig.database.public_reading(ReadKind.OWN):
            self._held.set()
            await self._left.wait()

    @asynccontextmanager
    async def holding_after_broadcast(self, proxy: FaultProxy) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:

            async def hold_after(_request: Request, forward: Forward) -> Answer | None:
                answer = await forward()
                tasks.create_task(self._hold())
                await self._held.wait()
                return answer

            proxy.fail(BROADCAST, hold_after)
            try:
                yield
            finally:
                self._left.set()


async def test_guard_a_sent_request_keeps_its_key_when_its_answer_has_no_place(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    """Others take the places after the transaction was sent: the outcome is open, and the key stays used."""
    rig = shaky_rig
    owner = await rig.owner("an owner")
    await owner.deploy()
    rig.limits = ONE_PLACE
    await rig.restart()
    body = await owner.tokens_body(an_operator_approval(rig))
    before = await rig.sent_count()
    rig.http.headers["Idempotency-Key"] = "one"
    async with Holder(rig).holding_after_broadcast(proxy):
        refused = await owner.submit(body)
    assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
    again = await owner.submit(body)
    assert (again.status_code, again.json()["code"]) == (409, "request_taken")
    del rig.http.headers["Idempotency-Key"]
    found = await rig.transaction(await owner.submitted(body))
    assert found["transactionHash"]
    assert await rig.sent_count() == before + 1
