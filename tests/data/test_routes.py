import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.shapes import (
    ACTIVITY,
    HOLDER,
    MARKET_VALUE,
    POSITION,
    TRADE,
    TRADED,
    TRADER,
    VALUE,
    VOLUME,
    WIN,
)
from tests.rigs.read_apis import Reader, fields, keep_rankings, misfits
from tests.rigs.rows import Rows
from tests.rigs.values import TOKEN, a_word, an_address

from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs" / "reference"

ALICE = an_address("alice")

SEVENTEEN: dict[str, dict[str, str]] = {
    "/": {},
    "/positions": {"user": ALICE},
    "/closed-positions": {"user": ALICE},
    "/value": {"user": ALICE},
    "/traded": {"user": ALICE},
    "/volume": {"user": ALICE},
    "/holders": {"market": a_word("rain")},
    "/oi": {},
    "/live-volume": {"market": a_word("rain")},
    "/trades": {},
    "/activity": {"user": ALICE},
    "/referrers": {"address": ALICE},
    "/affiliates": {"address": ALICE},
    "/v1/leaderboard": {},
    "/v1/leaderboard/biggest-wins": {},
    "/v1/builders/leaderboard": {},
    "/v1/builders/volume": {},
}


@pytest.fixture
async def history(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
            await rows.lock(name, TOKEN)
        await rows.quote("rain", 40, 45, 42, volume_units=TOKEN)
        await rows.hold("alice", "rain", 3 * TOKEN, TOKEN)
        await rows.hold("alice", "snow", 0, 0, realized_units=5)
        await rows.buy("alice", "rain", 3 * TOKEN, TOKEN)
        await rows.act("alice", "snow", ActivityKind.REDEEM, TOKEN)
    await keep_rankings(database)


def test_the_interface_has_seventeen_routes() -> None:
    assert len(SEVENTEEN) == len(LISTS) + len(OBJECTS) == 17


LISTS: dict[str, tuple[int, dict[str, str]]] = {
    "/positions": (1, POSITION),
    "/closed-positions": (1, POSITION),
    "/value": (1, VALUE),
    "/oi": (2, MARKET_VALUE),
    "/trades": (1, TRADE),
    "/activity": (2, ACTIVITY),
    "/holders": (2, fields(("str", "token"), ("list", "holders"))),
    "/live-volume": (1, fields(("number", "total"), ("list", "markets"))),
    "/v1/leaderboard": (1, TRADER),
    "/v1/leaderboard/biggest-wins": (1, WIN),
    "/referrers": (0, {}),
    "/affiliates": (0, {}),
    "/v1/builders/leaderboard": (0, {}),
    "/v1/builders/volume": (0, {}),
}
"""The routes that return lists: the number of records of the history, and their fields."""
OBJECTS = {"/": fields(("str", "data")), "/traded": TRADED, "/volume": VOLUME}


@pytest.mark.spec(104)
@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("path", LISTS)
async def test_every_list_of_the_interface_has_its_records(reader: Reader, path: str) -> None:
    count, kinds = LISTS[path]
    records = await reader.get(path, **SEVENTEEN[path])
    assert len(records) == count
    assert [misfits(record, kinds) for record in records] == [{}] * count


@pytest.mark.spec(104)
@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("path", OBJECTS)
async def test_every_object_of_the_interface_has_its_fields(reader: Reader, path: str) -> None:
    assert misfits(await reader.get(path, **SEVENTEEN[path]), OBJECTS[path]) == {}


@pytest.mark.spec(104)
@pytest.mark.usefixtures("history")
async def test_the_records_inside_of_others_have_their_fields(reader: Reader) -> None:
    holders, _ = await reader.get("/holders", **SEVENTEEN["/holders"])
    [volumes] = await reader.get("/live-volume", **SEVENTEEN["/live-volume"])
    assert [misfits(each, HOLDER) for each in holders["holders"]] == [{}]
    assert [misfits(each, MARKET_VALUE) for each in volumes["markets"]] == [{}]


async def test_the_root_answers(reader: Reader) -> None:
    assert await reader.get("/") == {"data": "OK"}


@pytest.mark.spec(118)
@pytest.mark.parametrize("path", SEVENTEEN)
@pytest.mark.parametrize(
    "headers",
    [
        {"SERVICE_ADDRESS": "nobody", "SERVICE_SIGNATURE": "0x"},
        {"POLY_ADDRESS": ALICE, "POLY_API_KEY": "x", "POLY_TIMESTAMP": "1"},
        {"Authorization": "Bearer nothing", "Content-Type": "application/json"},
        {"User-Agent": "", "Cookie": "a=b; c"},
    ],
    ids=["l1", "l2", "bearer", "odd"],
)
async def test_headers_of_authentication_change_nothing(
    reader: Reader, path: str, headers: dict[str, str]
) -> None:
    answer = await reader.http.get(path, params=SEVENTEEN[path], headers=headers)
    assert answer.status_code == 200


def strings_and_numbers(value: Any) -> list[Any]:
    """Return every leaf of a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [leaf for entry in value for leaf in strings_and_numbers(entry)]
    return [value]


@pytest.mark.spec(4)
@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("path", SEVENTEEN)
async def test_token_ids_are_decimal_strings_never_numbers(reader: Reader, path: str) -> None:
    answer = await reader.http.get(path, params=SEVENTEEN[path])
    leaves = strings_and_numbers(json.loads(answer.text, parse_int=str, parse_float=str))
    numbers = set(map(str, leaves)) - set(strings_and_numbers(answer.json()))
    assert all(len(number) < 20 for number in numbers)
    assert not re.search(r'"(asset|token|oppositeAsset)":(?!"\d+"|null)', answer.text)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(reader: Reader, method: str) -> None:
    answer = await reader.http.request(method, "/trades", content=b"{}")
    assert answer.status_code == 405
    assert set(answer.json()) == {"error"}


async def test_a_strict_client_may_send_no_parameter_to_a_route_without_parameters(
    reader: Reader,
) -> None:
    status, body = await reader.refused("/", strict="true", luck="1")
    assert status == 400
    assert body == {"error": "unknown_field: luck is not a parameter of this route"}


async def test_an_unknown_path_is_not_found(reader: Reader) -> None:
    assert await reader.refused("/nothing") == (404, {"error": "not_found: Not Found"})


@pytest.mark.spec(109)
async def test_the_document_marks_the_api_as_pre_release(reader: Reader) -> None:
    document = (await reader.http.get("/schema/openapi.json")).json()
    assert "pre-release" in document["info"]["title"]
    assert document["info"]["description"].startswith("Pre-release: routes, filters")
    assert document["info"]["version"] == version("foretell")
    assert set(SEVENTEEN) <= set(document["paths"])
    assert {path for path in document["paths"] if path.startswith("/v1")} == {
        "/v1/leaderboard",
        "/v1/leaderboard/biggest-wins",
        "/v1/biggest-winners",
        "/v1/builders/leaderboard",
        "/v1/builders/volume",
    }


async def test_the_document_names_exactly_parameters_that_a_strict_client_may_send(
    reader: Reader,
) -> None:
    document = (await reader.http.get("/schema/openapi.json")).json()
    refusals = [
        await reader.refused(path, **{**SEVENTEEN.get(path, {}), "strict": "true", name: "!"})
        for path, operations in document["paths"].items()
        for name in (entry["name"] for entry in operations["get"].get("parameters", ()))
    ]
    assert len(refusals) > 60
    assert not [body for _, body in refusals if "unknown_field" in json.dumps(body)]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(sorted(SEVENTEEN)),
    name=st.sampled_from(
        ["user", "market", "eventId", "limit", "offset", "title", "type", "id", "tokenId", "start"]
    ),
    value=st.text(max_size=30),
)
@pytest.mark.usefixtures("history")
async def test_no_parameter_causes_a_fault(
    reader: Reader, path: str, name: str, value: str
) -> None:
    parameters = {**SEVENTEEN[path], name: value.encode("utf-8", "replace").decode()}
    answer = await reader.http.get(path, params=parameters)
    assert answer.status_code in {200, 400}


@pytest.mark.spec(109)
async def test_the_reference_page_has_every_route_and_says_pre_release(reader: Reader) -> None:
    page = (DOCS / "data-api.md").read_text()
    document = (await reader.http.get("/schema/openapi.json")).json()
    assert [path for path in document["paths"] if path not in page] == []
    assert "**Pre-release.**" in page
