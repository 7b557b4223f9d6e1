import asyncio

import pytest
from tests.rigs.values import NOW_MS, an_address
from tests.store.creation.test_requests import a_challenge, given, move

from foretell.domain.creation.request import Claim, RequestStatus
from foretell.store.creation.claims import load_claims, record_claims
from foretell.store.database import Database

pytestmark = pytest.mark.anyio


async def claim(database: Database, request_id: str, *names: str) -> bool:
    async with database.writing() as tx:
        return await record_claims(tx, request_id, names, (), NOW_MS)


async def held(database: Database, *names: str) -> list[Claim]:
    async with database.reading() as tx:
        return await load_claims(tx, names)


async def test_a_claim_has_its_holder_and_the_status_of_that_request(database: Database) -> None:
    await given(database, a_challenge("one"))
    await move(database, "prepare", "one")

    assert await claim(database, "one", "rain", "snow")

    creator, status = an_address("creator"), RequestStatus.PREPARE_RUNNING
    assert await held(database, "rain", "snow", "hail") == [
        Claim("rain", "one", creator, status, NOW_MS, NOW_MS),
        Claim("snow", "one", creator, status, NOW_MS, NOW_MS),
    ]


async def test_a_name_has_one_holder(database: Database) -> None:
    await given(database, a_challenge("one"), a_challenge("two"))
    assert await claim(database, "one", "rain")

    assert not await claim(database, "two", "snow", "rain")

    assert [each.request_id for each in await held(database, "rain")] == ["one"]


async def test_a_taken_name_has_the_new_holder(database: Database) -> None:
    await given(database, a_challenge("one"), a_challenge("two"))
    await claim(database, "one", "rain")
    (first,) = await held(database, "rain")

    async with database.writing() as tx:
        assert await record_claims(tx, "two", ["rain"], [first], NOW_MS + 1)

    (second,) = await held(database, "rain")
    assert (second.request_id, second.claimed_at_ms) == ("two", NOW_MS + 1)


async def test_a_name_with_another_holder_by_now_is_not_taken(database: Database) -> None:
    await given(database, a_challenge("one"), a_challenge("two"), a_challenge("three"))
    await claim(database, "one", "rain")
    (first,) = await held(database, "rain")
    async with database.writing() as tx:
        await record_claims(tx, "two", ["rain"], [first], NOW_MS)

    async with database.writing() as tx:
        assert not await record_claims(tx, "three", ["rain"], [first], NOW_MS)


async def test_of_many_concurrent_claims_one_gets_the_name(database: Database) -> None:
    names = [f"request-{index}" for index in range(8)]
    await given(database, *(a_challenge(name) for name in names))

    got = await asyncio.gather(*(claim(database, name, "rain") for name in names))

    assert sorted(got) == [False] * 7 + [True]
