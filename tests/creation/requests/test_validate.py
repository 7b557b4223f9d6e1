"""`POST /validate`: a dry run of a payload, before anything is signed."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from tests.creation.rig import CreationRig, CreatorClient, error_of
from tests.rigs.payloads import a_payload_document

from foretell.chain.reader import Reader
from foretell.domain.creation.payload import PAYLOAD_BYTES_MAX
from foretell.domain.errors.storage import ReadsBusy
from foretell.domain.values.hexadecimal import keccak256

pytestmark = pytest.mark.anyio

OPTIONS = [{"title": title, "shortName": title} for title in ("Alpha", "Beta", "Gamma")]


async def verdict(rig: CreationRig, raw: bytes) -> Any:
    answer = await rig.http.post("/validate", content=raw)
    assert answer.status_code == 200, answer.text
    assert answer.json()["payloadHash"] == "0x" + keccak256(raw).hex()
    return answer.json()


def at(document: Any, pointer: str) -> Any:
    """Return what a JSON pointer names, or fail."""
    for part in pointer.split("/")[1:]:
        document = document[int(part) if isinstance(document, list) else part]
    return document


async def test_all_errors_are_reported_at_once_with_json_pointers(rig: CreationRig) -> None:
    document = a_payload_document() | {
        "creator": "0x12",
        "title": "",
        "endDateIso": "2001-01-01T00:00:00Z",
        "categories": [{"label": "a", "slug": "!"}, 5, "b", "c", "d"],
        "marketMode": "multi_multiple",
        "options": [OPTIONS[0], OPTIONS[1] | {"title": 5}],
        "resolutionRules": "short",
    }

    answer = await verdict(rig, json.dumps(document).encode())

    assert (answer["valid"], answer.keys()) == (
        False,
        {"valid", "payloadHash", "problems", "duplicates"},
    )
    pointers = [problem["pointer"] for problem in answer["problems"]]
    assert {
        "/creator",
        "/title",
        "/endDateIso",
        "/categories/0/slug",
        "/categories/1",
        "/categories",
        "/options/1/title",
        "/resolutionRules",
    } <= set(pointers)
    for pointer in pointers:
        at(document, pointer)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff"])
async def test_a_body_that_is_no_payload_is_one_problem_of_the_whole(
    rig: CreationRig, raw: bytes
) -> None:
    (problem,) = (await verdict(rig, raw))["problems"]
    assert (problem["pointer"], problem["field"]) == ("", "payload")


async def test_a_body_beyond_the_limit_is_refused(rig: CreationRig) -> None:
    answer = await rig.http.post("/validate", content=b" " * (PAYLOAD_BYTES_MAX + 1))
    assert error_of(answer) == (413, "payload_too_large")


@pytest.mark.parametrize(
    ("fields", "keys", "total"),
    [
        ({}, ["binary"], "5"),
        ({"marketMode": "multi_multiple", "options": OPTIONS}, ["option-1", "option-2"], "15"),
        ({"marketMode": "multi_unique", "options": OPTIONS}, ["option-1", "option-2"], "6"),
        ({"resolutionType": "alt_moov2"}, ["binary"], "5"),
    ],
)
async def test_the_markets_and_fees_are_those_of_the_request_that_follows(
    creator: CreatorClient, fields: dict[str, Any], keys: list[str], total: str
) -> None:
    raw = creator.payload(**fields)

    planned = await verdict(creator.rig, raw)
    record = await creator.record(await creator.pending_update(raw))

    assert planned["valid"] is True
    assert planned["creatorIsWhitelisted"] is True
    assert [market["marketKey"] for market in planned["markets"]][:2] == keys
    names = ("key", "conditionId", "exchange", "tokenA", "tokenB")
    expected = [{name: each[name] for name in names} for each in record["registerResults"]]
    assert [
        {"key": market["marketKey"]} | {name: market[name] for name in names[1:]}
        for market in planned["markets"]
    ] == expected
    approval = record["prepared"]["txPlan"][0]["description"]
    assert planned["fees"]["total"] == total
    assert f" {total} collateral" in approval


async def test_nothing_is_stored_and_a_taken_name_is_reported(creator: CreatorClient) -> None:
    rig = creator.rig
    before = await verdict(rig, creator.payload())
    await creator.finalized()
    other = rig.creator(await rig.newcomer("another creator", 7_000_000))

    taken = await verdict(rig, other.payload())

    assert (before["valid"], before["duplicates"]) == (True, [])
    assert taken["valid"] is False
    assert [each["key"] for each in taken["duplicates"]] == ["binary"]
    assert taken["creatorIsWhitelisted"] is False
    assert taken["fees"]["creatorHolds"] == "7"


@pytest.mark.deviation(23)
@pytest.mark.parametrize("is_accepted", [True, False])
async def test_another_word_for_the_optimistic_stack_is_the_operator_s_choice(
    rig: CreationRig, *, is_accepted: bool
) -> None:
    rig.change(options=replace(rig.context.options, accepts_uma_moov2=is_accepted))
    raw = rig.creator().payload(resolutionType="uma_moov2")
    assert (await verdict(rig, raw))["valid"] is is_accepted


async def test_a_dry_run_has_the_places_of_strangers_and_the_configuration_needs_none(
    creator: CreatorClient,
) -> None:
    @contextlib.asynccontextmanager
    async def full(method: str) -> AsyncIterator[None]:
        if method:
            raise ReadsBusy(4)
        yield

    rig = creator.rig
    rpc, deployment = rig.sandbox.rpc, rig.sandbox.deployment
    rig.change(reader=Reader(rpc, deployment, rpc.behind(full)))
    refused = await rig.http.post("/validate", content=creator.payload())
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "4")
    assert error_of(refused)[1] == "reads_busy"
    assert (await rig.http.get("/market-config")).status_code == 200
    await creator.prepared()
