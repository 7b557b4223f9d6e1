"""One list of creation's reads, with the same answers on SQLite and on PostgreSQL."""

from dataclasses import replace
from typing import Final

import pytest
from tests.creation.rig import CreationRig, CreatorClient
from tests.data.test_both_databases import postgres_url_emptied
from tests.rigs.databases import copy_tables

from foretell.store.database import Database

__all__ = ["postgres_url_emptied"]

pytestmark = pytest.mark.anyio

READS: Final = (
    "/market-config",
    "/pending?requestId={id}",
    "/pending?creator={creator}",
    "/pending?creator={creator}&payloadHash={hash}",
)
NO_TABLE: Final = {"/", "/limits", "/blobs/{blob_id}", "/blobs/{blob_id}/item"}
"""Routes that read no table: stored items are files."""


async def test_every_read_of_creation_has_the_same_answer_on_both_databases(
    rig: CreationRig, creator: CreatorClient, postgres_url_emptied: str
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    begun = (await creator.send(raw, creator.sign(challenge))).json()
    await rig.settle()
    names = {
        "id": begun["requestId"],
        "creator": creator.address,
        "hash": challenge["payloadHash"],
    }
    answers = []
    async with Database(postgres_url_emptied) as other:
        await copy_tables(rig.database, other)
        for database in (rig.database, other):
            rig.open(replace(rig.context, database=database))
            answered = []
            for read in READS:
                answer = await rig.http.get(read.format(**names))
                assert answer.status_code == 200, (read, answer.text)
                answered.append((read, answer.json()))
            answers.append(answered)
    assert answers[0] == answers[1]
    assert [answer["request"]["requestId"] for _, answer in answers[0][1:]] == [names["id"]] * 3


async def test_the_list_has_every_route_of_creation_that_reads(rig: CreationRig) -> None:
    document = (await rig.http.get("/schema/openapi.json")).json()
    reads = {path for path, methods in document["paths"].items() if "get" in methods}
    assert reads - NO_TABLE == {read.partition("?")[0] for read in READS}
