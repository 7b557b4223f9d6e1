"""Idempotency keys of market creation, where a client is an address and nobody is authenticated."""

import asyncio

import httpx
import pytest
from tests.creation.rig import CreationRig, CreatorClient, error_of
from tests.rigs.values import NOW_MS

from foretell.edge.signed_requests import KEYS_OF_ANYONE_MAX, KEYS_OF_CLIENT_MAX
from foretell.store.public_reads.places import WaitBounds, answering
from foretell.store.signed_requests import count_keyed_requests
from foretell.store.tables import signed_requests
from foretell.store.write_places import SQLITE_PLACES, WritePlaces

pytestmark = pytest.mark.anyio

WAIT_S = 2.0
"""For a place: longer than a write takes on a machine that is busy with other things."""


async def count_keys(rig: CreationRig) -> int:
    async with rig.database.reading() as tx:
        return await count_keyed_requests(tx, "creation")


@pytest.mark.parametrize("path", ["/prepare-auth", "/tx-confirm", "/finalize"])
async def test_a_malformed_body_leaves_no_key_behind(rig: CreationRig, path: str) -> None:
    named = {"Idempotency-Key": "k"}
    answers = [await rig.http.post(path, content=b"{", headers=named) for _ in range(2)]

    assert [error_of(each) for each in answers] == [(400, "validation_error")] * 2
    assert answers[0].content == answers[1].content
    assert await count_keys(rig) == 0


async def test_addresses_that_use_all_keys_lose_their_own(creator: CreatorClient) -> None:
    """A finding: fifty strangers used up the keys of all APIs for a day."""
    strangers = KEYS_OF_ANYONE_MAX // KEYS_OF_CLIENT_MAX
    rows = [
        (f"{place} {number}", NOW_MS + number, 200, "{}", f"creation stranger {place}", "")
        for place in range(strangers)
        for number in range(KEYS_OF_CLIENT_MAX)
    ]
    async with creator.rig.database.writing() as tx:
        await tx.insert_rows(signed_requests, rows)
    body = {"creator": creator.address, "chainId": 80002, "payloadHash": "0x" + "ab" * 32}
    named = {"Idempotency-Key": "k"}

    first, again = [
        await creator.rig.http.post("/prepare-auth", json=body, headers=named) for _ in range(2)
    ]

    assert (first.status_code, first.content) == (200, again.content)
    assert strangers < await count_keys(creator.rig) <= KEYS_OF_ANYONE_MAX


async def test_a_challenge_that_had_no_place_to_be_stored_may_be_asked_for_again(
    creator: CreatorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: the key was refused with 409 for a day, and there was no challenge."""
    places = WritePlaces(SQLITE_PLACES, WaitBounds(wait_s=WAIT_S))
    monkeypatch.setattr(creator.rig.database, "_writes", places)
    body = {"creator": creator.address, "chainId": 80002, "payloadHash": "0x" + "ab" * 32}
    may_end = asyncio.Event()

    async def hold() -> None:
        async with places.taken():
            await may_end.wait()

    async def ask() -> httpx.Response:
        with answering("creator"):
            return await creator.rig.http.post(
                "/prepare-auth", json=body, headers={"Idempotency-Key": "k"}
            )

    async with asyncio.TaskGroup() as tasks:
        with answering("first"):
            first = tasks.create_task(hold())
        await asyncio.sleep(0)
        asked = tasks.create_task(ask())
        while not places._of_others.waiting:  # noqa: ASYNC110  (the place is the one that is tested)
            await asyncio.sleep(0.001)
        with answering("second"):
            second = tasks.create_task(hold())
        await asyncio.sleep(0)
        may_end.set()
        await first
        may_end.clear()
        assert error_of(await asked) == (503, "writes_busy")
        may_end.set()
        await second
        assert (await ask()).status_code == 200
