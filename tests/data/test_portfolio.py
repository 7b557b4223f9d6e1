from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.shapes import POSITION
from tests.rigs.read_apis import BLOBS, Reader, misfits
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_S, TOKEN, a_word, an_address, an_asset

from foretell.data.portfolio import CLOSED_ORDERS, POSITION_ORDERS
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind

pytestmark = pytest.mark.anyio

ALICE = an_address("alice")


async def hold_rain(
    database: Database, size_units: int = 12_500_000, cost_units: int = 5 * TOKEN, **fields: Any
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 40, 45, 42)
        await rows.hold("alice", "rain", size_units, cost_units, **fields)


@pytest.mark.spec(4)
async def test_a_position_has_every_field_with_its_type(database: Database, reader: Reader) -> None:
    await hold_rain(database)
    [position] = await reader.get("/positions", user=ALICE)
    assert misfits(position, POSITION) == {}


async def test_a_position_has_its_cost_and_its_value(database: Database, reader: Reader) -> None:
    await hold_rain(
        database,
        bought_units=20 * TOKEN,
        spent_units=9 * TOKEN,
        realized_units=-3 * TOKEN,
    )
    [position] = await reader.get("/positions", user=ALICE)
    assert position == {
        "proxyWallet": checksum_address(ALICE),
        "asset": an_asset(is_yes=True, market="rain"),
        "conditionId": a_word("rain"),
        "size": 12.5,
        "avgPrice": 0.4,
        "initialValue": 5,
        "currentValue": 5.3125,
        "cashPnl": 0.3125,
        "percentPnl": 6.25,
        "totalBought": 20,
        "totalBoughtUsdc": 9,
        "realizedPnl": -3,
        "percentRealizedPnl": -33.3333,
        "curPrice": 0.425,
        "redeemable": False,
        "mergeable": False,
        "title": "Will it rain?",
        "slug": "will-it-rain",
        "icon": f"{BLOBS}/blobs/icon-rain",
        "eventSlug": "event-rain",
        "eventId": "1",
        "outcome": "Yes",
        "outcomeIndex": 0,
        "oppositeOutcome": "No",
        "oppositeAsset": an_asset(is_yes=False, market="rain"),
        "endDate": "2027-01-16T08:00:00Z",
        "negativeRisk": False,
        "timestamp": NOW_S,
    }


@pytest.mark.parametrize(
    ("payout", "current", "pnl", "percent"),
    [((1, 0), 12.5, 7.5, 150), ((0, 1), 0, -5, -100), ((1, 1), 6.25, 1.25, 25)],
)
async def test_a_resolved_position_is_worth_its_payout_and_redeemable(
    database: Database,
    reader: Reader,
    payout: tuple[int, int],
    current: float,
    pnl: float,
    percent: float,
) -> None:
    await hold_rain(database)
    async with database.writing() as tx:
        await Rows(tx, 1000).resolve("rain", *payout)
    [position] = await reader.get("/positions", user=ALICE, redeemable="true")
    assert position["currentValue"] == current
    assert position["cashPnl"] == pnl
    assert position["percentPnl"] == percent
    assert position["redeemable"] is True


async def test_a_position_without_a_cost_has_no_percentages(
    database: Database, reader: Reader
) -> None:
    await hold_rain(database, cost_units=0, spent_units=0, bought_units=0)
    [position] = await reader.get("/positions", user=ALICE)
    assert (position["percentPnl"], position["percentRealizedPnl"]) == (0, 0)
    assert position["avgPrice"] == 0


async def test_a_token_of_an_unknown_market_is_shown_without_a_title(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.prepare("elsewhere")
        await rows.hold("alice", "elsewhere", 3 * TOKEN, TOKEN, is_yes=False)
    [position] = await reader.get("/positions", user=ALICE)
    assert misfits(position, POSITION) == {}
    assert position["title"] == position["outcome"] == position["endDate"] == ""
    assert (position["outcomeIndex"], position["curPrice"]) == (1, 0.5)


async def test_positions_below_one_token_are_left_out_by_default(
    database: Database, reader: Reader
) -> None:
    await hold_rain(database, size_units=TOKEN - 1)
    assert await reader.get("/positions", user=ALICE) == []
    assert len(await reader.get("/positions", user=ALICE, sizeThreshold="0.999999")) == 1
    assert await reader.get("/positions", user=ALICE, sizeThreshold="0.9999991") == []
    assert len(await reader.get("/positions", user=ALICE, sizeThreshold="0")) == 1


async def test_both_tokens_of_a_market_are_mergeable(database: Database, reader: Reader) -> None:
    await hold_rain(database)
    async with database.writing() as tx:
        await Rows(tx, 1000).hold("alice", "rain", TOKEN, 0, is_yes=False)
    positions = await reader.get("/positions", user=ALICE, mergeable="true")
    assert [(position["outcome"], position["mergeable"]) for position in positions] == [
        ("Yes", True),
        ("No", True),
    ]


CONDITIONS = [a_word(f"other {number}") for number in range(499)]


@pytest.mark.spec(106)
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ([("market", a_word("rain"))], {"rain"}),
        ([("market", a_word("rain").upper().replace("0X", "0x"))], {"rain"}),
        ([("market", f"{a_word('rain')},{a_word('snow')}")], {"rain", "snow"}),
        ([("market", a_word("rain")), ("market", a_word("hail"))], {"rain", "hail"}),
        ([("market", ",".join([*CONDITIONS, a_word("hail")]))], {"hail"}),
        ([("eventId", "2")], {"snow"}),
        ([("eventId", "2,3")], {"snow", "hail"}),
        ([("title", "IT SNOW")], {"snow"}),
        ([("market", a_word("rain")), ("title", "snow")], set()),
        ([], {"rain", "snow", "hail"}),
    ],
    ids=["one", "upper", "two", "repeated", "500", "event", "events", "title", "both", "none"],
)
async def test_positions_are_filtered_by_market_event_and_title(
    database: Database,
    reader: Reader,
    parameters: list[tuple[str, str]],
    found: set[str],
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow", "hail"):
            await rows.open_named(name)
            await rows.hold("alice", name, TOKEN, 0)
    answer = await reader.http.get("/positions", params=[("user", ALICE), *parameters])
    assert answer.status_code == 200
    assert {position["slug"] for position in answer.json()} == {f"will-it-{name}" for name in found}


@pytest.mark.spec(106)
@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({}, "missing_field: user"),
        ({"user": "0x12"}, "invalid_field: user"),
        ({"user": ALICE, "market": "0x12"}, "invalid_field: market"),
        ({"user": ALICE, "market": f"{a_word('rain')},1"}, "invalid_field: market"),
        ({"user": ALICE, "market": ",".join([a_word("rain")] * 501)}, "invalid_field: market"),
        ({"user": ALICE, "eventId": "x"}, "invalid_field: eventId"),
        ({"user": ALICE, "eventId": ",".join(["1"] * 101)}, "invalid_field: eventId"),
        (
            {"user": ALICE, "eventId": "1", "market": a_word("rain")},
            "invalid_field: eventId",
        ),
        ({"user": ALICE, "sizeThreshold": "-1"}, "invalid_field: sizeThreshold"),
        ({"user": ALICE, "redeemable": "maybe"}, "invalid_field: redeemable"),
        ({"user": ALICE, "limit": "501"}, "invalid_field: limit"),
        ({"user": ALICE, "limit": "-1"}, "invalid_field: limit"),
        ({"user": ALICE, "offset": "10001"}, "invalid_field: offset"),
        ({"user": ALICE, "sortBy": "LUCK"}, "invalid_field: sortBy"),
        ({"user": ALICE, "sortDirection": "UP"}, "invalid_field: sortDirection"),
        ({"user": ALICE, "title": "x" * 101}, "invalid_field: title"),
        ({"user": ALICE, "foo": "1", "strict": "true"}, "unknown_field: foo"),
    ],
)
async def test_a_malformed_query_for_positions_is_refused(
    reader: Reader, parameters: dict[str, str], error: str
) -> None:
    status, body = await reader.refused("/positions", **parameters)
    assert status == 400
    assert body["error"].startswith(error)
    assert set(body) == {"error"}


async def test_unknown_parameters_are_ignored(reader: Reader) -> None:
    assert await reader.get("/positions", user=ALICE, foo="1") == []


@pytest.fixture
async def full_wallet(database: Database) -> None:
    """A wallet with 23 open and 23 closed positions, many with equal sort keys."""
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in range(23):
            name = f"market {number}"
            await rows.open(an_event_row(name, a_market_row(name, question=f"Q{number % 5}?")))
            await rows.quote(name, 10 + number % 4, 20)
            await rows.hold("alice", name, (1 + number % 3) * TOKEN, number % 2 * TOKEN)
            await rows.hold("alice", name, 0, 0, is_yes=False, realized_units=number % 3)


PAGING = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


async def paged(reader: Reader, path: str, limit: int, **parameters: str) -> list[str]:
    pages = [
        await reader.get(path, user=ALICE, limit=limit, offset=offset, **parameters)
        for offset in range(0, 24, limit)
    ]
    return [position["asset"] for page in pages for position in page]


@pytest.mark.spec(107)
@PAGING
@given(
    limit=st.integers(1, 12),
    order=st.sampled_from(tuple(POSITION_ORDERS)),
    direction=st.sampled_from(["ASC", "DESC", "asc"]),
)
@pytest.mark.usefixtures("full_wallet")
async def test_pages_of_positions_are_disjoint_and_complete(
    reader: Reader, limit: int, order: str, direction: str
) -> None:
    sort = {"sortBy": order, "sortDirection": direction}
    whole = await reader.get("/positions", user=ALICE, limit=500, **sort)
    assert len(whole) == 23
    assert await paged(reader, "/positions", limit, **sort) == [
        position["asset"] for position in whole
    ]


@pytest.mark.spec(107)
@PAGING
@given(limit=st.integers(1, 12), order=st.sampled_from(tuple(CLOSED_ORDERS)))
@pytest.mark.usefixtures("full_wallet")
async def test_pages_of_closed_positions_are_disjoint_and_complete(
    reader: Reader, limit: int, order: str
) -> None:
    assets = await paged(reader, "/closed-positions", limit, sortBy=order)
    assert len(assets) == len(set(assets)) == 23


@pytest.mark.usefixtures("full_wallet")
async def test_lists_have_default_lengths_and_may_be_empty(reader: Reader) -> None:
    assert len(await reader.get("/positions", user=ALICE)) == 23
    assert len(await reader.get("/closed-positions", user=ALICE)) == 10
    assert await reader.get("/positions", user=ALICE, limit=0) == []
    assert await reader.get("/positions", user=ALICE, offset=23) == []
    assert (await reader.refused("/closed-positions", user=ALICE, limit=51))[0] == 400
    assert (await reader.refused("/closed-positions", user=ALICE, offset=100_001))[0] == 400


@pytest.mark.usefixtures("full_wallet")
async def test_positions_are_sorted_by_size_in_both_directions(reader: Reader) -> None:
    sizes = [position["size"] for position in await reader.get("/positions", user=ALICE)]
    assert sizes == sorted(sizes, reverse=True)
    ascending = await reader.get("/positions", user=ALICE, sortBy="price", sortDirection="ASC")
    prices = [position["curPrice"] for position in ascending]
    assert prices == sorted(prices)


async def test_a_closed_position_has_its_realized_gain(database: Database, reader: Reader) -> None:
    await hold_rain(
        database,
        size_units=0,
        cost_units=0,
        bought_units=20 * TOKEN,
        spent_units=8 * TOKEN,
        realized_units=4 * TOKEN,
    )
    assert await reader.get("/positions", user=ALICE, sizeThreshold=0) == []
    [position] = await reader.get("/closed-positions", user=ALICE, title="rain")
    assert misfits(position, POSITION) == {}
    assert (position["avgPrice"], position["totalBought"]) == (0.4, 20)
    assert (position["realizedPnl"], position["percentRealizedPnl"]) == (4, 50)
    assert position["size"] == position["initialValue"] == position["currentValue"] == 0
    assert position["cashPnl"] == position["percentPnl"] == 0
    assert position["redeemable"] is position["mergeable"] is False


async def test_the_value_of_a_wallet_is_that_of_its_open_positions(
    database: Database, reader: Reader
) -> None:
    await hold_rain(database)
    async with database.writing() as tx:
        rows = Rows(tx, 1000)
        await rows.open_named("snow")
        await rows.hold("alice", "snow", 1, 0)
        await rows.hold("alice", "rain", 3 * TOKEN, 0, is_yes=False)
        await rows.hold("bob", "rain", 9 * TOKEN, 0)
    positions = await reader.get("/positions", user=ALICE, sizeThreshold=0)
    [whole] = await reader.get("/value", user=ALICE)
    [rain] = await reader.get("/value", user=ALICE, market=a_word("rain"))
    assert whole == {"user": checksum_address(ALICE), "value": 7.0375}
    assert rain["value"] == 7.0375
    assert sum(position["currentValue"] for position in positions) == pytest.approx(7.0375)
    assert await reader.get("/value", user=an_address("nobody")) == [
        {"user": checksum_address(an_address("nobody")), "value": 0}
    ]


async def test_traded_counts_markets_and_volume_adds_up_both_roles(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
        await rows.buy("alice", "rain", 10 * TOKEN, 4_000_001)
        await rows.buy("alice", "rain", TOKEN, TOKEN // 2, is_taker=False)
        await rows.buy("alice", "snow", TOKEN, TOKEN // 2)
        await rows.buy("bob", "snow", TOKEN, TOKEN)
        await rows.act("alice", "snow", ActivityKind.SPLIT, TOKEN)
    user = checksum_address(ALICE)
    assert await reader.get("/traded", user=ALICE) == {"user": user, "traded": 2}
    assert await reader.get("/volume", user=user) == {"user": user, "volume": "5.000001"}
    assert await reader.get("/volume", user="0x" + "11" * 20) == {
        "user": "0x" + "11" * 20,
        "volume": "0",
    }
