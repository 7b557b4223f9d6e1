import pytest
from tests.rigs.values import NOW_MS, an_address
from tests.store.creation.test_requests import a_challenge

from foretell.domain.creation.preparation_bounds import PreparationUse, PreparationUses
from foretell.domain.creation.request import RequestTrigger
from foretell.store.creation.challenges import record_challenge
from foretell.store.creation.preparations import load_preparation_uses
from foretell.store.creation.requests import load_request, move_request, record_images
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

ROWS = [("a", "here", 7, 10), ("b", "here", 5, 0), ("a", "there", 3, 100)]
"""The creator, the address, the bytes of the payload, and those of the images of preparations that run."""


async def begin(database: Database, number: int, row: tuple[str, str, int, int]) -> str:
    creator, source, payload_bytes, image_bytes = row
    challenge = a_challenge(f"request {number}", creator=an_address(creator))
    async with database.writing() as tx:
        await record_challenge(tx, challenge, source, NOW_MS)
        request = await load_request(tx, challenge.request_id)
        assert request is not None
        await move_request(
            tx,
            request,
            RequestTrigger.PREPARE,
            NOW_MS + number,
            payload=bytes(payload_bytes),
            source=source,
        )
        if image_bytes:
            half = bytes(image_bytes // 2)
            contents = {"eventImage": half, "optionImage:a": half}
            await record_images(tx, request.request_id, contents)
    return challenge.request_id


async def uses(database: Database, source: str, creator: str) -> PreparationUses:
    async with database.reading() as tx:
        return await load_preparation_uses(tx, source, an_address(creator))


async def test_preparations_are_counted_with_their_bytes(database: Database) -> None:
    async with database.writing() as tx:
        await record_challenge(tx, a_challenge(creator=an_address("a")), "here", NOW_MS)
    for number, row in enumerate(ROWS):
        await begin(database, number, row)
    ended = await begin(database, 3, ROWS[0])
    async with database.writing() as tx:
        request = await load_request(tx, ended)
        assert request is not None
        await move_request(tx, request, RequestTrigger.FAIL, NOW_MS)

    assert await uses(database, "here", "a") == PreparationUses(
        PreparationUse(2, 120, NOW_MS),
        PreparationUse(2, 22, NOW_MS),
        PreparationUse(3, 125, NOW_MS),
    )
    assert (await uses(database, "there", "b"))[:2] == (
        PreparationUse(1, 5, NOW_MS + 1),
        PreparationUse(1, 103, NOW_MS + 2),
    )


async def test_without_preparations_nothing_is_used(database: Database) -> None:
    assert await uses(database, "here", "a") == PreparationUses(*[PreparationUse()] * 3)
