from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from tests.rigs.values import NOW_MS
from tests.store.creation.test_requests import ITEM, a_challenge, given, loaded, move

from foretell.domain.creation.plan import PlanTx
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS
from foretell.store.creation.claims import load_claims, record_claims
from foretell.store.creation.failed_requests import (
    drop_payloads,
    forget_failed,
    load_failed_before,
    load_failed_surplus,
    load_failed_with_payloads,
)
from foretell.store.creation.requests import (
    load_images,
    load_request,
    record_images,
    record_txs,
)
from foretell.store.database import Database
from foretell.store.tables import claims, request_txs, requests

pytestmark = pytest.mark.anyio

DAY_MS = 24 * 60 * 60 * 1000


async def failed(
    database: Database, name: str, *, at_ms: int = NOW_MS, has_plan: bool = False
) -> None:
    """Store a request that failed at a time, after its plan or before."""
    ends_at_ms = at_ms + CHALLENGE_LIFETIME_MS
    await given(database, a_challenge(name, expires_at_ms=ends_at_ms), now_ms=at_ms)
    await move(database, "prepare", name, payload=b"{}", signature="0x12", source="client")
    if has_plan:
        await move(database, "plan_built", name, plan=[ITEM])
    await move(database, "fail", name, error_message="why")
    await change(database, [name], updated_at_ms=at_ms)


async def change(database: Database, names: Sequence[str], **columns: object) -> None:
    async with database.writing() as tx:
        are_they = requests.c.request_id.in_(names)
        await tx.execute(requests.update().where(are_they).values(**columns))


async def left_by_an_earlier_version(database: Database, *names: str) -> None:
    """Store failed requests as an earlier version left them."""
    for name in names:
        await failed(database, name)
        async with database.writing() as tx:
            await record_images(tx, name, {"eventImage": b"1"})
    await change(database, names, payload=b"{}")


async def test_attack_h5_a_failed_request_keeps_neither_payload_nor_images_nor_address(
    database: Database,
) -> None:
    await given(database, a_challenge())
    await move(database, "prepare", payload=b"{}", signature="0x12", source="client")
    async with database.writing() as tx:
        await record_images(tx, "request", {"eventImage": b"1"})

    await move(database, "fail", error_message="why")

    request = await loaded(database)
    assert (request.payload, request.signature, request.error_message) == (None, "0x12", "why")
    async with database.reading() as tx:
        assert await load_images(tx, "request") == {}
        assert await tx.scalar(sa.select(requests.c.source)) == ""


async def test_attack_h5_payloads_that_an_earlier_version_kept_are_dropped(
    database: Database,
) -> None:
    await left_by_an_earlier_version(database, "a", "b", "c")
    await given(database, a_challenge("running"))
    await move(database, "prepare", "running", payload=b"{}")
    async with database.reading() as tx:
        found = await load_failed_with_payloads(tx, 2)

    async with database.writing() as tx:
        await drop_payloads(tx, [*found, "running"])

    async with database.reading() as tx:
        left = await load_failed_with_payloads(tx, 2)
        images = [bool(await load_images(tx, name)) for name in sorted(found)]
    assert (len(found), len(left), images) == (2, 1, [False, False])
    assert {*found, *left} == {"a", "b", "c"}
    assert (await loaded(database, "running")).payload == b"{}"


async def test_failed_requests_are_old_after_a_time_and_with_a_plan_later(
    database: Database,
) -> None:
    await failed(database, "oldest", at_ms=NOW_MS - 50 * DAY_MS, has_plan=True)
    await failed(database, "planned", at_ms=NOW_MS - 20 * DAY_MS, has_plan=True)
    await failed(database, "old", at_ms=NOW_MS - 10 * DAY_MS)
    await failed(database, "begun long ago", at_ms=NOW_MS - 10 * DAY_MS)
    await change(database, ["begun long ago"], updated_at_ms=NOW_MS)
    await failed(database, "new", at_ms=NOW_MS)
    await given(database, a_challenge("unsigned", expires_at_ms=0))

    async with database.reading() as tx:
        ends_ms = NOW_MS - 7 * DAY_MS, NOW_MS - 30 * DAY_MS
        old = await load_failed_before(tx, *ends_ms, 10)
        first = await load_failed_before(tx, *ends_ms, 1)

    assert (old, first) == (["oldest", "old"], ["oldest"])


async def test_the_oldest_failed_requests_without_a_plan_are_a_surplus(database: Database) -> None:
    for number in range(4):
        await failed(database, f"request {number}", at_ms=NOW_MS + number)
    await failed(database, "planned", at_ms=NOW_MS, has_plan=True)

    async with database.reading() as tx:
        surplus = await load_failed_surplus(tx, 2, 10)
        first = await load_failed_surplus(tx, 2, 1)
        none = await load_failed_surplus(tx, 4, 10)

    assert (surplus, first, none) == (["request 1", "request 0"], ["request 1"], [])


async def test_a_failed_request_is_forgotten_with_its_names_and_hashes(database: Database) -> None:
    await given(database, a_challenge("other"))
    await failed(database, "failed", has_plan=True)
    for name in ("failed", "other"):
        request = await loaded(database, name)
        async with database.writing() as tx:
            await record_claims(tx, name, [f"slug of {name}"], [], NOW_MS)
            await record_txs(tx, request, [PlanTx("a", request.challenge.nonce)], NOW_MS)

    async with database.writing() as tx:
        await forget_failed(tx, ["failed"])

    async with database.reading() as tx:
        assert await load_request(tx, "failed") is None
        assert await load_request(tx, "other") is not None
        held = await load_claims(tx, ["slug of failed", "slug of other"])
        counts = [
            await tx.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (claims, request_txs)
        ]
    assert [claim.name for claim in held] == ["slug of other"]
    assert counts == [1, 1]
