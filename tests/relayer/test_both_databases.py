"""One list of the relayer's reads, with the same answers on SQLite and on PostgreSQL."""

import re
from dataclasses import replace
from typing import Final

import pytest
from tests.data.test_both_databases import postgres_url_emptied
from tests.relayer.rig import MASTER_KEY, OwnerClient, RelayerRig
from tests.rigs.databases import copy_tables

from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.edge.auth import KeyRing
from foretell.store.database import Database

__all__ = ["postgres_url_emptied"]

pytestmark = pytest.mark.anyio

READS: Final = (
    "/nonce?address={owner}&type=SAFE",
    "/deployed?address={safe}&type=SAFE",
    "/transaction?id={id}",
    "/transactions",
    "/relay-payload?address={owner}&type=SAFE",
    "/v1/account/transactions/params?address={owner}&type=SAFE",
    "/v1/account/transactions/{id}",
)
NO_TABLE: Final = {"/", "/limits"}


async def test_every_read_of_the_relayer_has_the_same_answer_on_both_databases(
    rig: RelayerRig, holder: OwnerClient, postgres_url_emptied: str
) -> None:
    (listed, *_) = (await holder.get("/transactions")).json()
    names = {"owner": holder.address, "safe": holder.safe, "id": listed["transactionID"]}
    answers = []
    async with Database(postgres_url_emptied) as other:
        await copy_tables(rig.database, other)
        ring = KeyRing(other, MASTER_KEY, [SANDBOX_CHAIN_ID], rig.clock.now_ms)
        for context in (rig.context, replace(rig.context, database=other, key_ring=ring)):
            rig.open(context)
            answered = []
            for read in READS:
                path, _, chosen = read.format(**names).partition("?")
                query = dict(part.split("=") for part in chosen.split("&") if part)
                answer = await holder.get(path, **query)
                assert answer.status_code == 200, (path, answer.text)
                answered.append((path, answer.json()))
            answers.append(answered)
    assert answers[0] == answers[1]
    assert all(answer for _, answer in answers[0])


async def test_the_list_has_every_route_of_the_relayer_that_reads(rig: RelayerRig) -> None:
    document = (await rig.http.get("/schema/openapi.json")).json()
    asked = {read.partition("?")[0] for read in READS}
    reads = {path for path, methods in document["paths"].items() if "get" in methods}
    assert {re.sub(r"\{\w+\}", "{id}", path) for path in reads - NO_TABLE} - asked == set()
