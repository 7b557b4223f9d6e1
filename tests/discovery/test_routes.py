import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.read_apis import Reader
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, TOKEN, a_token_pair, an_address

from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import checksum_address
from foretell.domain.values.instants import iso_time
from foretell.store.database import Database
from foretell.store.trading.profiles import PublicProfile, record_profile

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs" / "reference"

LISTS: dict[str, dict[str, str]] = {
    "/events": {},
    "/events/keyset": {},
    "/events/pagination": {},
    "/markets": {},
    "/markets/keyset": {},
    "/tags": {},
    "/public-search": {"q": "rain"},
}
EMPTY = [
    "/comments",
    "/comments/1",
    "/comments/user_address/0x12",
    "/events/creators",
    "/tags/1/related-tags",
    "/tags/1/related-tags/tags?omit_empty=true&status=all",
    "/tags/slug/politics/related-tags",
    "/tags/slug/politics/related-tags/tags",
]
ABSENT = [
    "/events/creators/1",
    "/events/9/comments/count",
    "/profiles/user_address/" + an_address("bob"),
    "/public-profile?address=" + an_address("bob"),
    "/tags/9/related-tags",
    "/tags/slug/none/related-tags",
    "/nothing",
]


@pytest.fixture
async def rain(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 40, 45, 42, volume_units=TOKEN)
        await rows.rest("alice", "rain", Side.BUY, 40, 10 * TOKEN)


@pytest.mark.parametrize("path", ["/", "/status"])
async def test_the_status_is_a_text(reader: Reader, path: str) -> None:
    answer = await reader.http.get(path)
    assert (answer.status_code, answer.text) == (200, "OK")
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.spec(111)
@pytest.mark.usefixtures("rain")
@pytest.mark.parametrize("path", LISTS)
async def test_every_list_answers_with_its_rows(reader: Reader, path: str) -> None:
    answer = json.dumps(await reader.get(path, **LISTS[path]))
    assert '"slug": "event-rain"' in answer or '"slug": "politics"' in answer


@pytest.mark.usefixtures("rain")
@pytest.mark.parametrize("path", EMPTY)
async def test_absent_features_are_empty_lists(reader: Reader, path: str) -> None:
    assert await reader.get(path) == []


@pytest.mark.usefixtures("rain")
@pytest.mark.parametrize("path", ABSENT)
async def test_a_record_of_an_absent_feature_is_not_found(reader: Reader, path: str) -> None:
    status, body = await reader.refused(path)
    assert (status, body["type"], set(body)) == (404, "not found error", {"type", "error"})


@pytest.mark.usefixtures("rain")
async def test_counts_of_absent_features_are_zero(reader: Reader) -> None:
    assert await reader.get("/events/1/comments/count") == {"count": 0}


@pytest.mark.parametrize(
    "path", ["/comments", "/events/creators/1", "/sports", "/sports/market-types", "/status"]
)
async def test_a_strict_client_may_send_no_parameter_to_a_route_without_parameters(
    reader: Reader, path: str
) -> None:
    status, body = await reader.refused(path, strict="true", luck="1")
    assert (status, body["error"]) == (400, "luck is not a parameter of this route")


async def test_a_profile_needs_an_address(reader: Reader) -> None:
    assert (await reader.refused("/public-profile"))[0] == 400
    assert (await reader.refused("/public-profile", address="bob"))[0] == 422


async def test_a_profile_is_found_by_the_address_and_by_its_wallet(
    reader: Reader, database: Database
) -> None:
    alice, safe = an_address("alice"), an_address("alice's safe")
    image = "https://example.org/a.png"
    async with database.writing() as tx:
        await record_profile(tx, PublicProfile(alice, safe, "Alice", "I trade.", image, NOW_MS))
    paths = [f"/public-profile?address={each}" for each in (alice, safe)]
    paths += [f"/profiles/user_address/{each}" for each in (alice, checksum_address(safe))]
    profiles = [await reader.get(path) for path in paths]
    assert profiles == [profiles[0]] * 4
    assert profiles[0] == {
        "name": "Alice",
        "pseudonym": "",
        "bio": "I trade.",
        "profileImage": image,
        "proxyWallet": checksum_address(safe),
        "baseAddress": checksum_address(alice),
        "displayUsernamePublic": True,
        "updatedAt": iso_time(NOW_MS),
    }


@pytest.mark.spec(118)
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "headers",
    [
        {"SERVICE_ADDRESS": "nobody", "SERVICE_SIGNATURE": "0x"},
        {"POLY_ADDRESS": "0x", "POLY_API_KEY": "x", "POLY_TIMESTAMP": "1"},
        {"Authorization": "Bearer nothing", "Content-Type": "application/json"},
    ],
    ids=["l1", "l2", "bearer"],
)
async def test_headers_of_authentication_change_nothing(
    reader: Reader, path: str, headers: dict[str, str]
) -> None:
    answer = await reader.http.get(path, params=LISTS[path], headers=headers)
    assert answer.status_code == 200


@pytest.mark.spec(4)
@pytest.mark.usefixtures("rain")
@pytest.mark.parametrize("path", ["/events", "/markets", "/public-search"])
async def test_token_ids_are_decimal_strings_never_numbers(reader: Reader, path: str) -> None:
    answer = await reader.http.get(path, params=LISTS[path])
    token = str(a_token_pair("rain").yes)
    assert f'\\"{token}\\"' in answer.text
    assert answer.text.count(token) == answer.text.count(f'\\"{token}\\"')


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(reader: Reader, method: str) -> None:
    answer = await reader.http.request(method, "/events", content=b"{}")
    assert (answer.status_code, answer.json()["type"]) == (405, "bad request")


async def test_the_document_names_exactly_parameters_that_a_strict_client_may_send(
    reader: Reader,
) -> None:
    document = (await reader.http.get("/schema/openapi.json")).json()
    refusals = [
        await reader.refused(path, **{**LISTS.get(path, {}), "strict": "true", name: "!"})
        for path, operations in document["paths"].items()
        for name in (
            entry["name"]
            for entry in operations["get"].get("parameters", ())
            if entry["in"] == "query"
        )
    ]
    assert len(refusals) > 100
    assert not [body for _, body in refusals if "is not a parameter" in json.dumps(body)]


def kinds_of(schema: dict[str, Any]) -> set[str]:
    return {schema.get("type", "")} | {kind.get("type", "") for kind in schema.get("oneOf", ())}


async def test_the_document_describes_amounts_as_numbers(reader: Reader) -> None:
    document = (await reader.http.get("/schema/openapi.json")).json()
    market = document["components"]["schemas"]["MarketResponse"]["properties"]
    assert kinds_of(market["volumeNum"]) == {"number"}
    assert "number" in kinds_of(market["bestBid"])
    assert kinds_of(market["volume"]) == {"string"}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(sorted(LISTS)),
    name=st.sampled_from(
        [
            "q",
            "id",
            "slug",
            "order",
            "limit",
            "offset",
            "after_cursor",
            "closed",
            "tag_id",
            "condition_ids",
            "end_date_min",
            "volume_min",
            "page",
            "events_tag",
            "creator",
        ]
    ),
    value=st.text(max_size=30),
)
@pytest.mark.usefixtures("rain")
async def test_no_parameter_causes_a_fault(
    reader: Reader, path: str, name: str, value: str
) -> None:
    parameters = {**LISTS[path], name: value.encode("utf-8", "replace").decode()}
    answer = await reader.http.get(path, params=parameters)
    assert answer.status_code in {200, 400, 422}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    start=st.sampled_from(["/events/", "/events/slug/", "/markets/", "/markets/slug/", "/tags/"]),
    rest=st.binary(max_size=12),
)
@pytest.mark.usefixtures("rain")
async def test_no_path_causes_a_fault(reader: Reader, start: str, rest: bytes) -> None:
    escaped = "".join(f"%{byte:02x}" for byte in rest)
    answer = await reader.http.get(start + escaped)
    assert answer.status_code in {200, 404, 422}


async def test_the_reference_page_has_every_route(reader: Reader) -> None:
    page = (DOCS / "discovery-api.md").read_text()
    document = (await reader.http.get("/schema/openapi.json")).json()
    stems = [re.sub(r"\{\w+\}.*", "", path) for path in document["paths"]]
    assert [stem for stem in stems if stem not in page] == []


@pytest.mark.parametrize(
    ("path", "start"),
    [
        ("/events", "### Event filters\n"),
        ("/events/keyset", "### Event filters\n"),
        ("/markets", "### Market filters\n"),
        ("/markets/keyset", "### Market filters\n"),
        ("/public-search", "### Search\n"),
        ("/series", "`/series` takes"),
        ("/tags", "| GET /tags |"),
        ("/teams", "| GET /teams |"),
    ],
)
async def test_the_reference_page_has_every_parameter_of_a_list(
    reader: Reader, path: str, start: str
) -> None:
    page = (DOCS / "discovery-api.md").read_text()
    shared = page.partition("## Conventions\n")[2].partition("\n## ")[0]
    own = page.partition(start)[2].lstrip().partition("\n\n")[0]
    pages = page.partition("| GET /events/keyset |")[2].partition("\n")[0]
    named = set(re.findall(r"`(\w+)[`=]", shared + own + (pages if "keyset" in path else "")))
    document = (await reader.http.get("/schema/openapi.json")).json()
    documented = {entry["name"] for entry in document["paths"][path]["get"]["parameters"]}
    assert documented - named == set()
