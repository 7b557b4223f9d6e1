from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.values import CHAIN_ID, NOW_MS, a_word, an_address
from tests.store.queries.recorded_queries import recorded

from foretell.domain.creation.request import (
    CHALLENGE_LIFETIME_MS,
    Challenge,
    RequestStatus,
    RequestTrigger,
)
from foretell.store.creation.challenges import (
    EVERYWHERE,
    Unsigned,
    count_unsigned,
    drop_expired,
    drop_surplus,
    make_room,
    record_challenge,
)
from foretell.store.creation.requests import load_request, move_request
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

EXPIRES_AT_MS = NOW_MS + CHALLENGE_LIFETIME_MS
OWN = Unsigned(creator=an_address("creator"))


def a_challenge(request_id: str = "request", **fields: Any) -> Challenge:
    challenge = Challenge(
        request_id=request_id,
        creator=an_address("creator"),
        payload_hash=a_word("payload"),
        nonce=a_word("nonce"),
        expires_at_ms=EXPIRES_AT_MS,
        chain_id=CHAIN_ID,
    )
    return replace(challenge, **fields)


async def given(
    database: Database, *challenges: Challenge, source: str = "client", now_ms: int = NOW_MS
) -> None:
    async with database.writing() as tx:
        for challenge in challenges:
            await record_challenge(tx, challenge, source, now_ms)


async def sign(database: Database, request_id: str) -> None:
    async with database.writing() as tx:
        request = await load_request(tx, request_id)
        assert request is not None
        assert await move_request(tx, request, RequestTrigger.PREPARE, NOW_MS + 5)


async def stored(database: Database, *names: str) -> list[str]:
    """Return those of the requests that are stored."""
    async with database.reading() as tx:
        return [name for name in names if await load_request(tx, name) is not None]


async def test_only_unsigned_requests_are_deleted_and_only_after_they_expired(
    database: Database,
) -> None:
    await given(database, a_challenge("unsigned"), a_challenge("signed"))
    await sign(database, "signed")

    async with database.writing() as tx:
        assert await drop_expired(tx, EXPIRES_AT_MS) == 0
        assert await drop_expired(tx, EXPIRES_AT_MS + 1) == 1

    async with database.reading() as tx:
        signed = await load_request(tx, "signed")
    assert signed is not None
    assert signed.status is RequestStatus.PREPARE_RUNNING


async def test_the_oldest_expired_requests_beyond_a_number_are_deleted(
    database: Database,
) -> None:
    for index in range(5):
        await given(
            database,
            a_challenge(f"own-{index}"),
            a_challenge(f"other-{index}", creator=an_address("other")),
            now_ms=NOW_MS + index,
        )
    await sign(database, "own-0")

    async with database.writing() as tx:
        assert await drop_surplus(tx, OWN, 2, EXPIRES_AT_MS) == 0
        assert await drop_surplus(tx, OWN, 2, EXPIRES_AT_MS + 1) == 2
    async with database.writing() as tx:
        assert await drop_surplus(tx, EVERYWHERE, 3, EXPIRES_AT_MS + 1) == 4

    names = [f"{who}-{index}" for who in ("own", "other") for index in range(5)]
    assert await stored(database, *names) == ["own-0", "own-3", "own-4", "other-4"]


async def test_unsigned_requests_are_counted_of_one_creator_or_of_all(
    database: Database,
) -> None:
    await given(database, a_challenge("own"), a_challenge("signed"))
    await given(database, a_challenge("other", creator=an_address("other")))
    await sign(database, "signed")

    async with database.reading() as tx:
        assert await count_unsigned(tx, EVERYWHERE) == 2
        assert await count_unsigned(tx, OWN, EXPIRES_AT_MS) == 1
        assert await count_unsigned(tx, EVERYWHERE, EXPIRES_AT_MS + 1) == 0


async def test_the_source_with_most_challenges_gives_up_its_oldest(database: Database) -> None:
    await given(database, a_challenge("single"), source="few", now_ms=NOW_MS)
    for index in range(3):
        await given(
            database, a_challenge(f"many-{index}"), source="many", now_ms=NOW_MS + 1 + index
        )
    names = ["single", "many-0", "many-1", "many-2"]

    async with database.writing() as tx:
        await make_room(tx, OWN, 5, NOW_MS)
    assert await stored(database, *names) == names

    async with database.writing() as tx:
        await make_room(tx, OWN, 3, NOW_MS)
    assert await stored(database, *names) == ["single", "many-2"]


async def test_of_sources_with_as_many_the_oldest_challenge_makes_way(database: Database) -> None:
    late = a_challenge("late", expires_at_ms=EXPIRES_AT_MS + 1)
    await given(database, late, source="a", now_ms=NOW_MS + 1)
    await given(database, a_challenge("early"), source="b", now_ms=NOW_MS)

    async with database.writing() as tx:
        await make_room(tx, EVERYWHERE, 2, NOW_MS)

    assert await stored(database, "early", "late") == ["late"]


async def test_room_is_made_among_those_that_can_still_be_signed(database: Database) -> None:
    await given(database, a_challenge("expired", expires_at_ms=NOW_MS - 1), a_challenge("signed"))
    await given(database, a_challenge("other", creator=an_address("other")), source="other")
    await given(database, a_challenge("own"))
    await sign(database, "signed")

    async with database.writing() as tx:
        await make_room(tx, Unsigned(source="client"), 1, NOW_MS)

    names = ["expired", "signed", "other", "own"]
    assert await stored(database, *names) == ["expired", "signed", "other"]


@pytest.mark.parametrize("group", [EVERYWHERE, Unsigned(source="client")], ids=["all", "source"])
async def test_challenges_are_counted_in_an_index_alone(
    fresh_database: Database, group: Unsigned
) -> None:
    """A finding: each request for a challenge read the rows of all expired ones, forty thousand at most."""
    await given(fresh_database, *[a_challenge(str(number)) for number in range(3)])
    with recorded() as queries:
        async with fresh_database.writing() as tx:
            await make_room(tx, group, 3, NOW_MS)
            await count_unsigned(tx, group)
    plans: list[str] = []

    def explain(connection: sa.Connection) -> None:
        for sql, values in queries:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
            plans.append(" ".join(str(row.detail) for row in rows))

    await fresh_database.run_sync(explain)
    assert len(plans) == 2
    assert [each for each in plans if "USING COVERING INDEX" not in each] == []
