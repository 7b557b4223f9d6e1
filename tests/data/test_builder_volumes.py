"""The leaderboard of builders and their days, from kept volumes and from a match to its failure."""

import itertools
from pathlib import Path

import pytest
from tests.data.shapes import BUILDER, BUILDER_DAY
from tests.rigs.applications import an_app
from tests.rigs.builders.sums import a_code
from tests.rigs.orders.builders import a_builder_of
from tests.rigs.orders.version_2 import a_v2_buy, some_v2_fields
from tests.rigs.read_apis import BLOBS, Reader, a_data_context, misfits
from tests.rigs.trading import Trader, TradingRig, a_rig_on
from tests.rigs.values import NOW_MS, TOKEN, a_sell, a_settlement, an_address

from foretell.data.routes import build_app
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.builder_volumes import TradedFills, UserDay, day_of
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.builders.keys import builder_code
from foretell.store.database import Database
from foretell.store.trading.builder_days import add_traded
from foretell.store.trading.profiles import PublicProfile, record_profile

pytestmark = pytest.mark.anyio

TODAY = day_of(NOW_MS)
DAYS = {0: "2027-01-15T00:00:00Z", 6: "2027-01-09T00:00:00Z", 29: "2026-12-17T00:00:00Z"}
BRED = builder_code(an_address("bred"))
ONE, TWO, LATE = a_code(1), a_code(2), a_code(3)
PATHS = ("/builders/leaderboard", "/builders/volume")


@pytest.fixture
async def traded(database: Database) -> None:
    """Builders whose orders traded today, six, 29 and 30 days ago."""
    async with database.writing() as tx:
        for builder, who, days, units in (
            (ONE, "alice", 0, 3),
            (TWO, "alice", 0, 2),
            (TWO, "bob", 6, 4),
            (TWO, "alice", 6, 1),
            (BRED, "carol", 29, 9),
            (LATE, "carol", 30, 20),
        ):
            key = UserDay(builder, an_address(who), TODAY - days)
            await add_traded(tx, {key: TradedFills(units * TOKEN, 1)})


@pytest.mark.usefixtures("traded")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, [("1", ONE, 3, 1), ("2", TWO, 2, 1)]),
        ({"timePeriod": "week"}, [("1", TWO, 7, 2), ("2", ONE, 3, 1)]),
        ({"timePeriod": "MONTH"}, [("1", BRED, 9, 1), ("2", TWO, 7, 2), ("3", ONE, 3, 1)]),
        ({"timePeriod": "ALL", "limit": "1"}, [("1", LATE, 20, 1)]),
        ({"timePeriod": "ALL", "limit": "2", "offset": "2"}, [("3", TWO, 7, 2), ("4", ONE, 3, 1)]),
        ({"timePeriod": "MONTH", "limit": "1", "offset": "1"}, [("2", TWO, 7, 2)]),
        ({"limit": "0"}, []),
    ],
)
async def test_the_leaderboard_of_builders_ranks_a_period(
    reader: Reader, parameters: dict[str, str], found: list[tuple[str, str, int, int]]
) -> None:
    rows = await reader.get("/builders/leaderboard", **parameters)
    assert [misfits(row, BUILDER) for row in rows] == [{}] * len(found)
    names = ("rank", "builder", "volume", "activeUsers")
    assert [tuple(row[name] for name in names) for row in rows] == found


@pytest.mark.usefixtures("traded")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, [(0, "1", ONE, 3, 1), (0, "2", TWO, 2, 1)]),
        ({"timePeriod": "WEEK"}, [(0, "1", ONE, 3, 1), (0, "2", TWO, 2, 1), (6, "1", TWO, 5, 2)]),
        ({"timePeriod": "WEEK", "builder": TWO}, [(0, "2", TWO, 2, 1), (6, "1", TWO, 5, 2)]),
        ({"timePeriod": "MONTH", "offset": "3"}, [(29, "1", BRED, 9, 1)]),
        ({"timePeriod": "MONTH", "builder": ONE.upper().replace("X", "x")}, [(0, "1", ONE, 3, 1)]),
        ({"timePeriod": "MONTH", "builder": LATE}, []),
        (
            {"timePeriod": "ALL", "limit": "2", "offset": "1"},
            [(0, "2", TWO, 2, 1), (6, "1", TWO, 5, 2)],
        ),
    ],
)
async def test_the_days_of_builders_are_listed_from_the_newest_on(
    reader: Reader, parameters: dict[str, str], found: list[tuple[int, str, str, int, int]]
) -> None:
    rows = await reader.get("/builders/volume", **parameters)
    assert [misfits(row, BUILDER_DAY) for row in rows] == [{}] * len(found)
    names = ("dt", "rank", "builder", "volume", "activeUsers")
    expected = [(DAYS[days], *rest) for days, *rest in found]
    assert [tuple(row[name] for name in names) for row in rows] == expected


@pytest.mark.usefixtures("traded")
@pytest.mark.parametrize("path", PATHS)
async def test_a_builder_has_the_image_of_its_profile_and_is_not_verified(
    database: Database, reader: Reader, path: str
) -> None:
    """A code that is no address has none, and neither has an address that ends as that code does."""
    async with database.writing() as tx:
        for name, address in (("bred", an_address("bred")), ("late", an_address("late"))):
            safe = an_address(f"safe of {name}")
            profile = PublicProfile(address, safe, name, "", f"https://example.org/{name}", NOW_MS)
            await record_profile(tx, profile)
    rows = await reader.get(path, timePeriod="MONTH")
    logos = {row["builder"]: (row["builderLogo"], row["verified"]) for row in rows}
    assert logos == {
        BRED: ("https://example.org/bred", False),
        ONE: ("", False),
        TWO: ("", False),
    }


async def test_a_volume_beyond_63_bits_is_exact(database: Database, reader: Reader) -> None:
    async with database.writing() as tx:
        for days in range(3):
            key = UserDay(ONE, an_address("alice"), TODAY - days)
            await add_traded(tx, {key: TradedFills(AMOUNT_UNITS_MAX, 1)})
    answer = await reader.http.get("/builders/leaderboard", params={"timePeriod": "WEEK"})
    assert '"volume":27670116110564.327421' in answer.text


@pytest.mark.parametrize(
    ("path", "parameters", "error"),
    [
        *((path, {"timePeriod": "HOUR"}, "invalid_field: timePeriod") for path in PATHS),
        *((path, {"limit": "51"}, "invalid_field: limit") for path in PATHS),
        *((path, {"offset": "1001"}, "invalid_field: offset") for path in PATHS),
        ("/builders/volume", {"builder": an_address("bred")}, "invalid_field: builder"),
        ("/builders/volume", {"builder": "me"}, "invalid_field: builder"),
        ("/builders/leaderboard", {"builder": ONE, "strict": "true"}, "unknown_field: builder"),
    ],
)
async def test_a_malformed_query_for_builders_is_refused(
    reader: Reader, path: str, parameters: dict[str, str], error: str
) -> None:
    status, body = await reader.refused(path, **parameters)
    assert (status, body["error"].startswith(error)) == (400, True)


class Story:
    """Trading over HTTP, and the data API of the same tables."""

    def __init__(self, rig: TradingRig, database: Database, alice: Trader) -> None:
        self.rig = rig
        self.alice = alice
        context = a_data_context(database, BLOBS, rig.clock.now_ms)
        self.reader = Reader(an_app(build_app, context))
        self._salts = itertools.count(100)

    async def buy(self, size: int, code: Bytes32) -> str:
        """Have alice buy at 0.40 with an order that names a builder; return the trade's id."""
        signed, salt = some_v2_fields(builder=code), str(next(self._salts))
        order = a_v2_buy("alice", price_ticks=40, size_units=size * TOKEN, v2=signed, salt=salt)
        trade_ids: list[str] = (await self.alice.placed(order))["tradeIDs"]
        return trade_ids[0]

    async def settle(self, trade_id: str, *statuses: TradeStatus) -> None:
        for status in statuses:
            await self.rig.submit(a_settlement(trade_id, status))

    async def ranked(self) -> dict[str, int]:
        """Return the volumes of the leaderboard, which are those of the builders' trades."""
        await self.rig.settle_tables()
        rows = await self.reader.get("/builders/leaderboard")
        days = await self.reader.get("/builders/volume")
        assert [row["volume"] for row in days] == [row["volume"] for row in rows]
        volumes = {row["builder"]: row["volume"] for row in rows}
        for code, volume in volumes.items():
            answer = await self.rig.client.get("/builder/trades", params={"builder_code": code})
            matched = [each for each in answer.json()["data"] if each["status"] != "FAILED"]
            assert sum(float(each["sizeUsdc"]) for each in matched) == volume
        return volumes


async def test_brought_orders_are_ranked_once_they_match_and_no_longer_once_they_fail(
    database: Database, tmp_path: Path
) -> None:
    """Orders name their builder, or have a builder's headers beside their owner's."""
    async with a_rig_on(tmp_path / "journal", database) as rig:
        await rig.open("market", "alice", "bob")
        alice, bob = await rig.trader("alice"), await rig.trader("bob")
        story = Story(rig, database, alice)
        builder = await a_builder_of(await rig.trader("bred"))
        sale = a_sell("bob", 40, 10 * TOKEN)
        assert (await builder.bring(bob, sale)).status_code == 200
        assert await story.ranked() == {}
        settled = await story.buy(10, ONE)
        assert await story.ranked() == {builder.code: 4, ONE: 4}
        await story.settle(settled, TradeStatus.MINED, TradeStatus.CONFIRMED)
        await bob.placed(a_sell("bob", 40, 30 * TOKEN))
        failing = [await story.buy(5, ONE), await story.buy(15, TWO)]
        assert await story.ranked() == {ONE: 6, TWO: 6, builder.code: 4}
        await story.settle(failing[0], TradeStatus.FAILED)
        assert await story.ranked() == {TWO: 6, builder.code: 4, ONE: 4}
        await story.settle(failing[1], TradeStatus.RETRYING, TradeStatus.FAILED)
        assert await story.ranked() == {builder.code: 4, ONE: 4}
