"""Idempotency keys of market creation, where a client is an address and nobody is authenticated."""

import pytest
from tests.creation.rig import CreationRig, CreatorClient, error_of
from tests.rigs.values import NOW_MS

from foretell.edge.signed_requests import KEYS_OF_ANYONE_MAX, KEYS_OF_CLIENT_MAX
from foretell.store.signed_requests import count_keyed_requests
from foretell.store.tables import signed_requests

pytestmark = pytest.mark.anyio


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
