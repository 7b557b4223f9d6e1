from typing import Any, Final

import pytest
from tests.rigs.read_apis import Reader, fields, misfits
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, TOKEN, an_address

from foretell.domain.creation.payload import Category
from foretell.store.database import Database
from foretell.store.trading.profiles import PublicProfile, record_profile

pytestmark = pytest.mark.anyio

FOUND_TAG = fields(("str", "id label slug"), ("int", "event_count"))


@pytest.fixture
async def elections(database: Database) -> None:
    """Three elections, one of them resolved and one traded most, and another event."""
    async with database.writing() as tx:
        rows = Rows(tx)
        tags = (Category("Élections", "elections"), Category("Europe", "europe"))
        one = (a_market_row("fr", question="Élection in France?"),)
        await rows.open(an_event_row("fr", *one, tags=tags, title="Président de la République"))
        two = (a_market_row("de", question="Who wins?"), a_market_row("at", question="By far?"))
        await rows.open(an_event_row("de", *two, tags=tags, title="GERMAN ELECTION"), NOW_MS + 1)
        await rows.open(an_event_row("uk", tags=tags[1:], slug="election-uk", title="UK"))
        await rows.open(an_event_row("rain", tags=()))
        await rows.match("de", 3 * TOKEN, NOW_MS)
        await rows.match("uk", 9 * TOKEN, NOW_MS)
        await rows.quote("uk", volume_units=9 * TOKEN)
        await rows.resolve("uk", 1, 0)
        await rows.resolve("at", 1, 0)


async def found(reader: Reader, q: str, **parameters: Any) -> list[str]:
    answer = await reader.get("/public-search", q=q, **parameters)
    return [event["slug"] for event in answer["events"]]


@pytest.mark.spec(111)
@pytest.mark.usefixtures("elections")
@pytest.mark.parametrize(
    ("question", "slugs"),
    [
        ("election", ["event-de", "event-fr", "election-uk"]),
        ("ÉLECTION", ["event-de", "event-fr", "election-uk"]),
        ("president", ["event-fr"]),
        ("republique President", ["event-fr"]),
        ("elect germ", ["event-de"]),
        ("who wins", ["event-de"]),
        ("EUROPE", ["event-de", "event-fr", "election-uk"]),
        ("will-it", []),
        ("nothing like it", []),
        ("%", []),
        ("   ", []),
    ],
)
async def test_events_are_found_by_all_words_open_ones_first_then_those_traded_most(
    reader: Reader, question: str, slugs: list[str]
) -> None:
    assert await found(reader, question) == slugs


@pytest.mark.usefixtures("elections")
@pytest.mark.parametrize(
    ("parameters", "slugs"),
    [
        ({"events_status": "active"}, ["event-de", "event-fr"]),
        ({"events_status": "resolved"}, ["election-uk"]),
        ({"events_tag": "elections"}, ["event-de", "event-fr"]),
        ({"exclude_tag_id": "1"}, ["election-uk"]),
        ({"sort": "volume"}, ["election-uk", "event-de", "event-fr"]),
        ({"sort": "id", "ascending": "true"}, ["event-fr", "event-de", "election-uk"]),
        ({"limit_per_type": "1"}, ["event-de"]),
        ({"limit_per_type": "1", "page": "3"}, ["election-uk"]),
        ({"limit_per_type": "0"}, []),
        ({"recurrence": "daily"}, []),
        ({"cache": "true", "optimized": "true"}, ["event-de", "event-fr", "election-uk"]),
    ],
)
async def test_found_events_are_filtered_sorted_and_paged(
    reader: Reader, parameters: dict[str, str], slugs: list[str]
) -> None:
    assert await found(reader, "election", **parameters) == slugs


@pytest.mark.usefixtures("elections")
async def test_tags_are_found_with_their_number_of_events(reader: Reader) -> None:
    answer = await reader.get("/public-search", q="elections")
    assert [misfits(tag, FOUND_TAG) for tag in answer["tags"]] == [{}]
    assert answer["tags"] == [
        {"id": "1", "label": "Élections", "slug": "elections", "event_count": 2}
    ]
    without = await reader.get("/public-search", q="elections", search_tags="false")
    assert without["tags"] == []
    empty = await reader.get("/public-search", q=" ")
    assert (empty["events"], empty["tags"]) == ([], [])


NAMES: Final = ("Bob", "bobby", "BOBBIN", "bo", "Rob Bob", "bo%b", "bob\U0010fffd", "Ärzte", "")


@pytest.fixture
async def named(database: Database) -> None:
    async with database.writing() as tx:
        for name in NAMES:
            address, safe = an_address(f"named {name}"), an_address(f"safe of {name}")
            await record_profile(tx, PublicProfile(address, safe, name, "", "", NOW_MS))


async def found_names(reader: Reader, q: str, **parameters: Any) -> list[str]:
    answer = await reader.get("/public-search", q=q, search_profiles="true", **parameters)
    return [profile["name"] for profile in answer["profiles"]]


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("bob", ["Bob", "BOBBIN", "bobby", "bob\U0010fffd"]),
        (" BOBB ", ["BOBBIN", "bobby"]),
        ("bo%", ["bo%b"]),
        ("äR", ["Ärzte"]),
        ("aRZ", ["Ärzte"]),
        ("bÖbb", ["BOBBIN", "bobby"]),
        ("\u0301", []),
        ("b_b", []),
        ("nobody", []),
        ("  ", []),
    ],
)
async def test_profiles_are_found_by_the_beginning_of_their_names_in_their_order(
    reader: Reader, question: str, names: list[str]
) -> None:
    assert await found_names(reader, question) == names


@pytest.mark.usefixtures("named")
async def test_profiles_are_listed_on_request_only_at_most_as_many_as_wanted(
    reader: Reader,
) -> None:
    assert "profiles" not in await reader.get("/public-search", q="bob")
    assert await found_names(reader, "bob", limit_per_type=2) == ["Bob", "BOBBIN"]
    assert await found_names(reader, "bob", limit_per_type=0) == []
    [profile] = (await reader.get("/public-search", q="ärz", search_profiles="1"))["profiles"]
    assert profile == await reader.get("/public-profile", address=an_address("named Ärzte"))


@pytest.mark.usefixtures("elections")
async def test_pages_of_a_search_have_a_total_and_a_flag_for_more(reader: Reader) -> None:
    first = await reader.get("/public-search", q="election", limit_per_type=2)
    last = await reader.get("/public-search", q="election", limit_per_type=2, page=2)
    assert first["pagination"] == {"hasMore": True, "totalResults": 3}
    assert last["pagination"] == {"hasMore": False, "totalResults": 3}
    beyond = await reader.get("/public-search", q="election", limit_per_type=2, page=9)
    none = await reader.get("/public-search", q="election", limit_per_type=0)
    assert beyond["pagination"] == {"hasMore": False, "totalResults": 3}
    assert (none["pagination"]["totalResults"], none["tags"]) == (3, [])


@pytest.mark.usefixtures("elections")
async def test_closed_markets_are_left_out_on_request(reader: Reader) -> None:
    kept = await reader.get("/public-search", q="german")
    left_out = await reader.get("/public-search", q="german", keep_closed_markets="0")
    assert [len(event["markets"]) for event in kept["events"]] == [2]
    assert [len(event["markets"]) for event in left_out["events"]] == [1]


@pytest.mark.parametrize(
    ("parameters", "status", "kind"),
    [
        ({}, 400, "bad request"),
        ({"q": ""}, 400, "bad request"),
        ({"q": "x" * 257}, 422, "validation error"),
        ({"q": "x", "sort": "luck"}, 422, "validation error"),
        ({"q": "x", "page": "0"}, 422, "validation error"),
        ({"q": "x", "events_status": "sleeping"}, 422, "validation error"),
        ({"q": "x", "limit_per_type": "-1"}, 422, "validation error"),
    ],
)
async def test_a_malformed_search_is_refused(
    reader: Reader, parameters: dict[str, str], status: int, kind: str
) -> None:
    answer = await reader.refused("/public-search", **parameters)
    assert (answer[0], answer[1]["type"]) == (status, kind)


async def test_the_words_of_a_search_are_required(reader: Reader) -> None:
    assert await reader.refused("/public-search") == (
        400,
        {"type": "bad request", "error": "q is required"},
    )
