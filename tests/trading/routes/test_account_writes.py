"""Writes of accounts beside many writes of strangers."""

import asyncio

import pytest
from tests.rigs.trading import Trader, TradingRig

from foretell.store.public_reads.places import WaitBounds, answering
from foretell.store.signed_requests import RequestIdentity, take_request
from foretell.store.write_places import SQLITE_PLACES, WritePlaces, writing_for

pytestmark = pytest.mark.anyio

STRANGERS = 300
OWN = 100
OWN_BEFORE_MAX = 20


@pytest.fixture(autouse=True)
def patient(rig: TradingRig) -> None:
    """Refuse no write on a machine that is busy with other things."""
    rig.context.database._writes = WritePlaces(SQLITE_PLACES, WaitBounds(wait_s=60.0))


async def test_a_cancel_of_all_orders_does_not_wait_for_writes_of_many_strangers(
    rig: TradingRig, alice: Trader
) -> None:
    ended = 0

    async def write(number: int) -> None:
        nonlocal ended
        with answering(f"stranger {number}"):
            async with rig.context.database.writing() as tx:
                await take_request(tx, RequestIdentity(f"stranger {number}", 2**50))
        ended += 1

    strangers = [asyncio.create_task(write(number)) for number in range(STRANGERS)]
    canceled = await alice.send("DELETE", "/cancel-all")
    ended_before = ended
    await asyncio.gather(*strangers)

    assert canceled.status_code == 200
    assert ended_before < STRANGERS // 2


async def test_a_cancel_of_all_orders_does_not_wait_for_many_writes_of_its_account(
    rig: TradingRig, alice: Trader
) -> None:
    """A finding: it stood behind all orders with keys that its account had sent before."""
    ended = 0

    async def write(number: int) -> None:
        nonlocal ended
        with answering(alice.address), writing_for(alice.address):
            async with rig.context.database.writing() as tx:
                await take_request(tx, RequestIdentity(f"own {number}", 2**50))
        ended += 1

    own = [asyncio.create_task(write(number)) for number in range(OWN)]
    await asyncio.sleep(0)
    with answering(alice.address):
        canceled = await alice.send("DELETE", "/cancel-all")
    ended_before = ended
    await asyncio.gather(*own)

    assert canceled.status_code == 200
    assert ended_before < OWN_BEFORE_MAX
