"""Writes of accounts beside many writes of strangers."""

import asyncio

import pytest
from tests.rigs.trading import Trader, TradingRig

from foretell.store.public_reads.places import answering
from foretell.store.signed_requests import RequestIdentity, take_request

pytestmark = pytest.mark.anyio

STRANGERS = 300


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
