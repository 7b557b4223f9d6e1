"""Submissions that had their effect, and whose answer could not be read: nobody is told that nothing was done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.relayer.rig import ONE_PLACE, RelayerRig, an_operator_approval
from tests.rigs.fault_proxy import BROADCAST, Answer, FaultProxy, Forward, Request

from foretell.store.read_places import ReadKind

pytestmark = pytest.mark.anyio


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
