from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.read_apis import Reader, fields, misfits
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_token_pair, a_word, an_address

from foretell.discovery.pages import EVENT_SORTS, MARKET_SORTS
from foretell.domain.creation.payload import Category
from foretell.domain.exchange.order import Side
from foretell.store.creation.halted_markets import (
    RegisteredMarket,
    record_halt,
    record_resumption,
)
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

NO_NUMBER = {"type": "validation error", "error": "id must be a number"}

EVENT = fields(
    ("str", "id ticker slug title description resolutionSource startDate creationDate endDate"),
    ("str", "image icon category createdAt updatedAt publishedAt createdBy"),
    ("bool", "active closed archived new featured restricted enableOrderBook negRisk"),
    ("bool", "enableNegRisk negRiskAugmented cyom showAllOutcomes showMarketImages"),
    ("bool", "automaticallyResolved automaticallyActive requiresTranslation deploying"),
    ("bool", "pendingDeployment"),
    ("number", "liquidity volume openInterest volume24hr volume1wk volume1mo volume1yr"),
    ("number", "liquidityClob competitive"),
    ("int", "commentCount"),
    ("list", "series"),
)
LISTS = fields(("list", "markets tags"))
MARKET = fields(
    ("str", "id question conditionId slug resolutionSource endDate startDate category image icon"),
    ("str", "description outcomes outcomePrices volume liquidity marketMakerAddress createdAt"),
    ("str", "updatedAt questionID umaResolutionStatus umaResolutionStatuses endDateIso"),
    ("str", "startDateIso clobTokenIds acceptingOrdersTimestamp creator groupItemTitle"),
    ("str", "submitted_by resolvedBy"),
    ("number", "volumeNum liquidityNum volumeClob liquidityClob volume24hr volume1wk volume1mo"),
    ("number", "volume1yr volume24hrClob volume1wkClob volume1moClob volume1yrClob"),
    ("number", "orderPriceMinTickSize orderMinSize competitive rewardsMinSize rewardsMaxSpread"),
    ("bool", "active closed archived new featured restricted enableOrderBook hasReviewedDates"),
    ("bool", "acceptingOrders notificationsEnabled ready funded cyom negRisk negRiskOther"),
    ("bool", "clearBookOnStart manualActivation automaticallyActive rfqEnabled feesEnabled"),
    ("bool", "holdingRewardsEnabled approved pagerDutyNotificationEnabled"),
    ("int", "secondsDelay makerBaseFee takerBaseFee customLiveness"),
    ("list", "clobRewards"),
)
QUOTED = fields(("number", "spread bestBid bestAsk lastTradePrice oneHourPriceChange"))
TAG = fields(
    ("str", "id label slug publishedAt createdAt updatedAt"),
    ("bool", "forceShow forceHide isCarousel requiresTranslation"),
)
CLOSED = fields(("str", "closedTime"))


@pytest.fixture
async def catalog(database: Database) -> None:
    """Rain trades; snow is resolved; hail and sleet are of one event without trades."""
    async with database.writing() as tx:
        rows = Rows(tx)
        tags = (Category("Weather", "weather"), Category("World", "world"))
        await rows.open(an_event_row("rain", tags=tags))
        await rows.open(an_event_row("snow", tags=tags[1:]), NOW_MS + 1)
        both = (a_market_row("hail"), a_market_row("sleet"))
        bob = an_address("bob")
        await rows.open(an_event_row("ice", *both, tags=(), creator=bob), NOW_MS + 2)
        await rows.quote("rain", 40, 44, 42, volume_units=9 * TOKEN)
        await rows.quoted_at("rain", NOW_S - 7200, 30, 32)
        await rows.rest("alice", "rain", Side.BUY, 40, 10 * TOKEN)
        await rows.match("rain", 2 * TOKEN, NOW_MS)
        await rows.quote("snow", volume_units=3 * TOKEN)
        await rows.resolve("snow", 1, 0)


async def slugs(reader: Reader, path: str, **parameters: Any) -> list[str]:
    return [record["slug"].split("-")[-1] for record in await reader.get(path, **parameters)]


@pytest.mark.usefixtures("catalog")
async def test_an_event_has_every_field_with_its_type(reader: Reader) -> None:
    event = await reader.get("/events/1")
    closed = await reader.get("/events/slug/event-snow")
    [market] = event["markets"]
    assert misfits(event, EVENT | LISTS) == {}
    assert misfits(market, MARKET | QUOTED) == {}
    assert misfits(closed, EVENT | LISTS | CLOSED) == {}
    assert [misfits(tag, TAG) for tag in event["tags"]] == [{}, {}]


@pytest.mark.spec(4)
@pytest.mark.usefixtures("catalog")
async def test_a_market_has_every_field_with_its_type(reader: Reader) -> None:
    market = await reader.get("/markets/1", include_tag="true")
    untagged = await reader.get(f"/markets/{a_word('snow')}")
    [event] = market["events"]
    assert misfits(market, MARKET | QUOTED | fields(("list", "events tags"))) == {}
    assert misfits(untagged, MARKET | CLOSED | fields(("list", "events"))) == {}
    assert misfits(event, EVENT) == {}
    yes, no = a_token_pair("rain")
    assert market["clobTokenIds"] == f'["{yes}", "{no}"]'


@pytest.mark.usefixtures("catalog")
async def test_an_event_has_its_markets_in_their_order(reader: Reader) -> None:
    event = await reader.get("/events/3")
    assert [market["id"] for market in event["markets"]] == ["3", "4"]
    assert event["tags"] == []


@pytest.mark.spec(111)
@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, ["ice", "snow", "rain"]),
        ({"ascending": "true"}, ["rain", "snow", "ice"]),
        ({"order": "volume"}, ["rain", "snow", "ice"]),
        ({"order": "closedTime"}, ["snow", "ice", "rain"]),
        ({"limit": "1", "offset": "1"}, ["snow"]),
        ({"id": ["1", "3"]}, ["ice", "rain"]),
        ({"slug": "event-rain,event-ice"}, ["ice", "rain"]),
        ({"closed": "true"}, ["snow"]),
        ({"closed": "false", "active": "true"}, ["ice", "rain"]),
        ({"active": "false"}, []),
        ({"tag_slug": "world"}, ["snow", "rain"]),
        ({"tag_id": "1"}, ["rain"]),
        ({"exclude_tag_id": "1"}, ["ice", "snow"]),
        ({"volume_min": "3"}, ["snow", "rain"]),
        ({"liquidity_min": "0.000001"}, ["rain"]),
        ({"creator": an_address("bob")}, ["ice"]),
        ({"end_date_min": "2100-01-01"}, []),
    ],
)
async def test_events_are_listed_filtered_and_sorted(
    reader: Reader, parameters: dict[str, Any], found: list[str]
) -> None:
    assert await slugs(reader, "/events", **parameters) == found
    keyset = await reader.get("/events/keyset", **{**parameters, "limit": 500, "offset": 0})
    assert "next_cursor" not in keyset
    paged = await reader.get("/events/pagination", **parameters)
    assert [event["slug"].split("-")[-1] for event in paged["data"]] == found


@pytest.mark.spec(111)
@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, ["sleet", "hail", "snow", "rain"]),
        ({"order": "volume24hr", "limit": "1"}, ["rain"]),
        ({"order": "bestBid", "ascending": "true"}, ["rain", "snow", "hail", "sleet"]),
        (
            {"clob_token_ids": [str(a_token_pair("rain").no), str(a_token_pair("snow").yes)]},
            ["snow", "rain"],
        ),
        ({"condition_ids": f"{a_word('rain')},{a_word('hail')}"}, ["hail", "rain"]),
        ({"question_ids": a_word("question snow")}, ["snow"]),
        ({"event_id": "3"}, ["sleet", "hail"]),
        ({"event_slug": "event-rain"}, ["rain"]),
        ({"slug": ["will-it-rain", "will-it-snow"]}, ["snow", "rain"]),
        ({"closed": "true"}, ["snow"]),
        ({"uma_resolution_status": "resolved"}, ["snow"]),
        ({"tag_slug": "weather"}, ["rain"]),
        ({"volume_num_min": "3", "volume_num_max": "3"}, ["snow"]),
        ({"game_id": "1"}, []),
    ],
    ids=str,
)
async def test_markets_are_listed_filtered_and_sorted(
    reader: Reader, parameters: dict[str, Any], found: list[str]
) -> None:
    assert await slugs(reader, "/markets", **parameters) == found


@pytest.mark.usefixtures("catalog")
async def test_a_list_that_no_row_can_pass_is_empty_in_every_form(reader: Reader) -> None:
    assert await reader.get("/events/keyset", series_id="1") == {"events": []}
    assert await reader.get("/markets/keyset", game_id="1") == {"markets": []}
    assert await reader.get("/events/pagination", series_id="1") == {
        "data": [],
        "pagination": {"hasMore": False, "totalResults": 0},
    }


@pytest.mark.usefixtures("catalog")
async def test_a_paginated_list_has_its_total(reader: Reader) -> None:
    first = await reader.get("/events/pagination", limit=2)
    last = await reader.get("/events/pagination", limit=2, offset=2)
    assert first["pagination"] == {"hasMore": True, "totalResults": 3}
    assert last["pagination"] == {"hasMore": False, "totalResults": 3}


async def walk(reader: Reader, path: str, key: str, **parameters: Any) -> list[list[str]]:
    """Return the ids of every page, following cursors."""
    answer = await reader.get(path, **parameters)
    pages = [[record["id"] for record in answer[key]]]
    while "next_cursor" in answer:
        answer = await reader.get(path, **parameters, after_cursor=answer["next_cursor"])
        pages.append([record["id"] for record in answer[key]])
    return pages


@pytest.fixture
async def many_events(database: Database) -> None:
    """17 events of one market each, many with equal sort keys."""
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in range(17):
            name = f"n{number}"
            await rows.open(an_event_row(name, tags=()), NOW_MS + number % 3)
            await rows.quote(name, 10 + number % 2, 20, volume_units=number % 4)


@pytest.mark.spec(107)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    limit=st.integers(1, 20),
    event_order=st.sampled_from(sorted(EVENT_SORTS)),
    market_order=st.sampled_from(sorted(MARKET_SORTS)),
    ascending=st.sampled_from(["true", "false"]),
)
@pytest.mark.usefixtures("many_events")
async def test_following_cursors_returns_every_row_once(
    reader: Reader, limit: int, event_order: str, market_order: str, ascending: str
) -> None:
    events = {"order": event_order, "ascending": ascending}
    markets = {"order": market_order, "ascending": ascending}
    event_pages = await walk(reader, "/events/keyset", "events", limit=limit, **events)
    market_pages = await walk(reader, "/markets/keyset", "markets", limit=limit, **markets)
    all_events = [event["id"] for event in await reader.get("/events", limit=500, **events)]
    all_markets = [market["id"] for market in await reader.get("/markets", limit=500, **markets)]
    assert [event_id for page in event_pages for event_id in page] == all_events
    assert [market_id for page in market_pages for market_id in page] == all_markets
    assert len(set(all_events)) == len(set(all_markets)) == 17
    assert {len(page) for page in event_pages[:-1]} <= {limit}


@pytest.mark.usefixtures("many_events")
async def test_an_empty_page_has_no_cursor(reader: Reader) -> None:
    assert await reader.get("/events/keyset", limit=0) == {"events": []}
    assert await reader.get("/markets/keyset", limit=0) == {"markets": []}


@pytest.mark.usefixtures("catalog")
async def test_a_cursor_of_another_order_is_refused(reader: Reader) -> None:
    page = await reader.get("/events/keyset", limit=1)
    status, body = await reader.refused(
        "/events/keyset", order="volume", after_cursor=page["next_cursor"]
    )
    assert (status, body["type"]) == (422, "validation error")


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(("path", "other"), [("events", "markets"), ("markets", "events")])
async def test_a_cursor_is_valid_for_its_list_and_another_list_refuses_it(
    reader: Reader, path: str, other: str
) -> None:
    page = await reader.get(f"/{path}/keyset", limit=1)
    cursor = page["next_cursor"]
    assert (await reader.get(f"/{path}/keyset", limit=1, after_cursor=cursor))[path]
    status, body = await reader.refused(f"/{other}/keyset", after_cursor=cursor)
    assert (status, body["type"]) == (422, "validation error")
    assert f"a next_cursor of the list of {other}" in body["error"]


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/events/1/tags", ["weather", "world"]),
        ("/events/3/tags", []),
        ("/markets/1/tags", ["weather", "world"]),
        ("/markets/4/tags", []),
        ("/tags", ["world", "weather"]),
        ("/tags?order=label&ascending=true", ["weather", "world"]),
        ("/tags?limit=1&offset=1", ["weather"]),
        ("/tags?is_carousel=true", []),
        ("/tags?is_carousel=false", ["world", "weather"]),
    ],
)
async def test_tags_are_listed_alone_and_of_events_and_markets(
    reader: Reader, path: str, found: list[str]
) -> None:
    assert await slugs(reader, path) == found


@pytest.mark.usefixtures("catalog")
async def test_one_of_each_is_found_by_its_id_slug_or_condition(reader: Reader) -> None:
    assert (await reader.get("/events/1"))["slug"] == "event-rain"
    assert (await reader.get("/events/slug/event-rain"))["id"] == "1"
    assert (await reader.get("/markets/slug/will-it-rain"))["id"] == "1"
    assert (await reader.get("/markets/" + a_word("rain").upper()))["id"] == "1"
    assert (await reader.get("/tags/1"))["slug"] == "weather"
    assert (await reader.get("/tags/slug/weather"))["id"] == "1"
    described = await reader.get("/markets/1/description")
    assert described == {"description": "Resolves to Yes when rain was seen by the operator."}


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/events/9", 404, {"type": "not found error", "error": "id not found"}),
        ("/events/slug/none", 404, {"type": "not found error", "error": "slug not found"}),
        ("/events/slug/%00", 404, {"type": "not found error", "error": "slug not found"}),
        ("/events/9/tags", 404, {"type": "not found error", "error": "id not found"}),
        ("/events/x", 422, NO_NUMBER),
        ("/events/" + "9" * 30, 422, NO_NUMBER),
        ("/events/" + "0" * 20 + "1", 422, NO_NUMBER),  # was event 0, or another one
        ("/markets/" + "0" * 19 + "12", 422, NO_NUMBER),  # was market 1
        ("/markets/9", 404, {"type": "not found error", "error": "id not found"}),
        ("/markets/9/tags", 404, {"type": "not found error", "error": "id not found"}),
        ("/markets/9/description", 404, {"type": "not found error", "error": "id not found"}),
        ("/markets/slug/none", 404, {"type": "not found error", "error": "slug not found"}),
        (f"/markets/{a_word('none')}", 404, {"type": "not found error", "error": "id not found"}),
        (
            "/markets/0x12",
            422,
            {"type": "validation error", "error": "id must be a number, or 0x and 64 hex digits"},
        ),
        ("/tags/9", 404, {"type": "not found error", "error": "id not found"}),
        ("/tags/slug/none", 404, {"type": "not found error", "error": "slug not found"}),
        (
            "/markets?order=luck",
            422,
            {"type": "validation error", "error": "order fields are not valid"},
        ),
    ],
)
async def test_an_unknown_record_is_not_found(
    reader: Reader, path: str, status: int, body: dict[str, str]
) -> None:
    assert await reader.refused(path) == (status, body)


async def test_a_strict_client_is_refused_an_unknown_name(reader: Reader) -> None:
    status, body = await reader.refused("/events", strict="true", luck="1")
    assert (status, body["type"]) == (400, "bad request")
    assert await reader.get("/events", luck="1") == []


@pytest.mark.usefixtures("catalog")
async def test_a_halted_market_accepts_no_orders_until_it_resumes(
    reader: Reader, database: Database
) -> None:
    halted = RegisteredMarket(a_word("rain"), "request-rain")
    async with database.writing() as tx:
        await record_halt(tx, halted, "lost by a reorganization", NOW_MS)
    assert await accepting(reader) == [False, False, False]
    async with database.writing() as tx:
        await record_resumption(tx, halted)
    assert await accepting(reader) == [True, True, True]


async def accepting(reader: Reader) -> list[bool]:
    """Return whether the first market accepts orders: by itself, in the list and in its event."""
    event = await reader.get("/events/1")
    [listed] = await reader.get("/markets", id="1")
    shown = [await reader.get("/markets/1"), listed, *event["markets"]]
    assert {each["slug"] for each in shown} == {shown[0]["slug"]}
    assert not any(each["closed"] for each in shown)
    return [each["acceptingOrders"] for each in shown]
