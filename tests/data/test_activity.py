from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.shapes import ACTIVITY, TRADE
from tests.rigs.read_apis import BLOBS, Reader, misfits
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_S, TOKEN, a_word, an_address, an_asset

from foretell.data.activity import ROWS_PER_PART
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind, ActivityRow

pytestmark = pytest.mark.anyio

ALICE = an_address("alice")


@pytest.fixture
async def acts(database: Database) -> list[ActivityRow]:
    """Alice takes from bob, bob takes from alice, alice splits, merges and redeems."""
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
        sold = {"side": Side.SELL}
        return [
            await rows.buy("alice", "rain", 10 * TOKEN, 4 * TOKEN),
            await rows.buy("bob", "rain", 10 * TOKEN, 4 * TOKEN, is_taker=False, **sold),
            await rows.buy("bob", "snow", 3 * TOKEN, TOKEN, is_yes=False),
            await rows.buy("alice", "snow", 3 * TOKEN, 2 * TOKEN, is_taker=False),
            await rows.act("alice", "snow", ActivityKind.SPLIT, 7 * TOKEN),
            await rows.act("alice", "snow", ActivityKind.MERGE, 5 * TOKEN),
            await rows.act("alice", "rain", ActivityKind.REDEEM, 10 * TOKEN, cost_units=TOKEN),
        ]


def hashes(acts: list[ActivityRow], *indexes: int) -> list[str]:
    return [acts[index].tx_hash for index in indexes]


async def asked(reader: Reader, path: str, **parameters: Any) -> list[str]:
    return [record["transactionHash"] for record in await reader.get(path, **parameters)]


async def test_a_trade_has_its_wallet_token_and_cost(
    reader: Reader, acts: list[ActivityRow]
) -> None:
    _, trade = await reader.get("/trades")
    assert misfits(trade, TRADE) == {}
    assert trade == {
        "proxyWallet": checksum_address(ALICE),
        "side": "BUY",
        "asset": an_asset(is_yes=True, market="rain"),
        "conditionId": a_word("rain"),
        "size": 10,
        "price": 0.4,
        "usdcSize": 4,
        "timestamp": acts[0].timestamp_s,
        "transactionHash": acts[0].tx_hash,
        "title": "Will it rain?",
        "slug": "will-it-rain",
        "icon": f"{BLOBS}/blobs/icon-rain",
        "eventSlug": "event-rain",
        "outcome": "Yes",
        "outcomeIndex": 0,
        "name": "",
        "pseudonym": "",
        "bio": "",
        "profileImage": "",
        "profileImageOptimized": None,
    }


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, (2, 0)),
        ({"takerOnly": "true"}, (2, 0)),
        ({"takerOnly": "false"}, (3, 2, 1, 0)),
        ({"user": ALICE}, (0,)),
        ({"user": ALICE, "takerOnly": "false"}, (3, 0)),
        ({"side": "SELL", "takerOnly": "false"}, (1,)),
        ({"side": "buy"}, (2, 0)),
        ({"market": a_word("snow")}, (2,)),
        ({"eventId": "1"}, (0,)),
        ({"eventId": "9"}, ()),
        ({"filterType": "CASH", "filterAmount": "4"}, (0,)),
        ({"filterType": "CASH", "filterAmount": "4.000001"}, ()),
        ({"filterType": "TOKENS", "filterAmount": "3"}, (2, 0)),
        ({"filterType": "TOKENS", "filterAmount": "3.5"}, (0,)),
        ({"limit": "1"}, (2,)),
        ({"limit": "1", "offset": "1"}, (0,)),
        ({"limit": "0"}, ()),
    ],
)
async def test_trades_are_filtered_by_role_wallet_side_market_and_size(
    reader: Reader, acts: list[ActivityRow], parameters: dict[str, str], found: tuple[int, ...]
) -> None:
    assert await asked(reader, "/trades", **parameters) == hashes(acts, *found)


@pytest.mark.parametrize("path", ["/trades", "/activity"])
async def test_both_ends_of_the_time_are_included(
    reader: Reader, acts: list[ActivityRow], path: str
) -> None:
    start, end = acts[0].timestamp_s, acts[3].timestamp_s
    known = {"user": ALICE, "takerOnly": "false"}
    assert await asked(reader, path, start=start, end=end, **known) == hashes(acts, 3, 0)
    assert await asked(reader, path, start=start + 1, end=end - 1, **known) == []


@pytest.mark.parametrize(
    ("path", "parameters", "error"),
    [
        ("/trades", {"filterType": "CASH"}, "missing_field: filterAmount"),
        ("/trades", {"filterAmount": "1"}, "missing_field: filterType"),
        ("/trades", {"filterType": "GOLD", "filterAmount": "1"}, "invalid_field: filterType"),
        ("/trades", {"filterType": "CASH", "filterAmount": "-1"}, "invalid_field: filterAmount"),
        ("/trades", {"limit": "10001"}, "invalid_field: limit"),
        ("/trades", {"offset": "10001"}, "invalid_field: offset"),
        ("/trades", {"takerOnly": "2"}, "invalid_field: takerOnly"),
        ("/trades", {"side": "HOLD"}, "invalid_field: side"),
        ("/trades", {"start": "-1"}, "invalid_field: start"),
        ("/trades", {"user": "0x"}, "invalid_field: user"),
        ("/activity", {}, "missing_field: user"),
        ("/activity", {"user": ALICE, "limit": "501"}, "invalid_field: limit"),
        ("/activity", {"user": ALICE, "type": "TRADE,NAP"}, "invalid_field: type"),
        ("/activity", {"user": ALICE, "sortBy": "LUCK"}, "invalid_field: sortBy"),
        (
            "/activity",
            {"user": ALICE, "market": a_word("rain"), "eventId": "1"},
            "invalid_field: eventId",
        ),
    ],
)
async def test_a_malformed_query_for_activity_is_refused(
    reader: Reader, path: str, parameters: dict[str, str], error: str
) -> None:
    status, body = await reader.refused(path, **parameters)
    assert status == 400
    assert body["error"].startswith(error)


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, (6, 5, 4, 3, 0)),
        ({"type": "TRADE"}, (3, 0)),
        ({"type": "split,MERGE"}, (5, 4)),
        ({"type": "REDEEM"}, (6,)),
        ({"type": "REWARD,YIELD"}, ()),
        ({"type": "REWARD,REDEEM"}, (6,)),
        ({"side": "BUY"}, (3, 0)),
        ({"market": a_word("rain")}, (6, 0)),
        ({"eventId": "2"}, (5, 4, 3)),
        ({"sortDirection": "ASC"}, (0, 3, 4, 5, 6)),
        ({"sortBy": "TOKENS"}, (6, 0, 4, 5, 3)),
        ({"sortBy": "CASH", "sortDirection": "ASC"}, (6, 3, 0, 5, 4)),
        ({"limit": "2", "offset": "1"}, (5, 4)),
    ],
)
async def test_activities_are_filtered_by_type_side_and_market_and_sorted(
    reader: Reader, acts: list[ActivityRow], parameters: dict[str, str], found: tuple[int, ...]
) -> None:
    assert await asked(reader, "/activity", user=ALICE, **parameters) == hashes(acts, *found)


async def test_only_a_trade_has_a_token_a_side_and_a_price(
    reader: Reader, acts: list[ActivityRow]
) -> None:
    redeemed, *_, trade = await reader.get("/activity", user=ALICE)
    assert misfits(redeemed, ACTIVITY) == misfits(trade, ACTIVITY) == {}
    assert [redeemed[name] for name in ("asset", "side", "price", "outcomeIndex")] == [None] * 4
    assert (redeemed["type"], redeemed["size"], redeemed["usdcSize"]) == ("REDEEM", 10, 1)
    assert (redeemed["title"], redeemed["outcome"]) == ("Will it rain?", "")
    assert (trade["type"], trade["outcome"], trade["price"]) == ("TRADE", "Yes", 0.4)
    assert redeemed["timestamp"] == acts[6].timestamp_s


async def test_the_second_outcome_is_named_in_its_trades(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.prepare("elsewhere")
        await rows.buy("alice", "rain", 3 * TOKEN, TOKEN, is_yes=False)
        await rows.buy("alice", "elsewhere", TOKEN, 0, is_yes=False)
        await rows.act("alice", "elsewhere", ActivityKind.SPLIT, TOKEN)
    elsewhere, rain = await reader.get("/trades")
    assert (rain["outcome"], rain["outcomeIndex"], rain["price"]) == ("No", 1, 0.333333)
    assert (elsewhere["outcome"], elsewhere["outcomeIndex"], elsewhere["title"]) == ("", 1, "")
    [split] = await reader.get("/activity", user=ALICE, type="SPLIT")
    assert (split["outcomeIndex"], split["slug"], split["icon"]) == (None, "", "")


async def test_a_trade_of_nothing_has_no_price(database: Database, reader: Reader) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.buy("alice", "rain", 0, 0)
    assert [trade["price"] for trade in await reader.get("/trades")] == [0]


@pytest.fixture
async def many_trades(database: Database) -> None:
    """Trades of two wallets, many of them in the same second."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for number in range(31):
            who = "alice" if number % 3 else "bob"
            await rows.buy(who, "rain", 2 * TOKEN, TOKEN, timestamp_s=NOW_S + number // 7)


@pytest.mark.spec(107)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(limit=st.integers(1, 12), direction=st.sampled_from(["ASC", "DESC"]))
@pytest.mark.usefixtures("many_trades")
async def test_pages_of_trades_and_activities_are_disjoint_and_complete(
    reader: Reader, limit: int, direction: str
) -> None:
    offsets = range(0, 36, limit)
    trades = [
        tx_hash
        for offset in offsets
        for tx_hash in await asked(reader, "/trades", limit=limit, offset=offset)
    ]
    sort = {"sortDirection": direction}
    acts = [
        tx_hash
        for offset in offsets
        for tx_hash in await asked(
            reader, "/activity", user=ALICE, limit=limit, offset=offset, **sort
        )
    ]
    assert trades == await asked(reader, "/trades", limit=10_000)
    assert (len(trades), len(set(trades))) == (31, 31)
    assert (len(acts), len(set(acts))) == (20, 20)


async def test_a_page_of_several_parts_is_complete(database: Database, reader: Reader) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for _ in range(ROWS_PER_PART + 1):
            await rows.buy("alice", "rain", 2, 1)
    assert len(set(await asked(reader, "/trades", limit=10_000))) == ROWS_PER_PART + 1
    assert len(await asked(reader, "/trades")) == 100
