import pytest
from tests.data.shapes import TRADER, WIN
from tests.rigs.read_apis import BLOBS, Reader, keep_rankings, misfits
from tests.rigs.rows import Rows, an_event_row
from tests.rigs.values import NOW_S, TOKEN, a_word, an_address

from foretell.domain.relay.request import RelayKind, RelayRequest, RelayState
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.database import Database
from foretell.store.outbox.relays import record_relay

pytestmark = pytest.mark.anyio

DAY_S = 86_400


@pytest.fixture
async def traders(database: Database) -> None:
    """Alice won today, bob last week, carol last month, dave last year; all traded when they won."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("rain", main_category_slug="weather"))
        await rows.open(an_event_row("vote", main_category_slug="politics"))
        for who, name, units, days in (
            ("dave", "vote", 4_000_000, 300),
            ("carol", "rain", 3_000_000, 29),
            ("bob", "vote", 2_000_000, 6),
            ("alice", "rain", 1_500_000, 0),
        ):
            at_s = NOW_S - days * DAY_S
            won = {"bought_units": 4 * TOKEN, "spent_units": 2 * TOKEN, "realized_units": units}
            await rows.hold(who, name, 0, 0, changed_at_s=at_s, **won)
            await rows.buy(who, name, 4 * TOKEN, 2 * TOKEN, timestamp_s=at_s)
    await keep_rankings(database)


def names(*who: str) -> list[str]:
    return [checksum_address(an_address(name)) for name in who]


@pytest.mark.usefixtures("traders")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, ("alice",)),
        ({"timePeriod": "DAY"}, ("alice",)),
        ({"timePeriod": "week"}, ("bob", "alice")),
        ({"timePeriod": "MONTH"}, ("carol", "bob", "alice")),
        ({"timePeriod": "ALL"}, ("dave", "carol", "bob", "alice")),
        ({"timePeriod": "ALL", "category": "politics"}, ("dave", "bob")),
        ({"timePeriod": "ALL", "category": "SPORTS"}, ()),
        ({"timePeriod": "ALL", "category": "overall"}, ("dave", "carol", "bob", "alice")),
        ({"timePeriod": "ALL", "category": "WEATHER"}, ("carol", "alice")),
        ({"timePeriod": "ALL", "limit": "2", "offset": "1"}, ("carol", "bob")),
    ],
)
@pytest.mark.parametrize("path", ["/v1/leaderboard", "/v1/leaderboard/biggest-wins"])
async def test_the_leaderboard_ranks_a_period_and_a_category(
    reader: Reader, path: str, parameters: dict[str, str], found: tuple[str, ...]
) -> None:
    rows = await reader.get(path, **parameters)
    assert [row["proxyWallet"] for row in rows] == names(*found)


@pytest.mark.usefixtures("traders")
async def test_a_trader_has_a_rank_a_volume_and_a_gain(reader: Reader) -> None:
    [first] = await reader.get("/v1/leaderboard")
    assert misfits(first, TRADER) == {}
    assert (first["rank"], first["vol"], first["pnl"]) == ("1", 2, 1.5)
    [bob] = await reader.get("/v1/leaderboard", timePeriod="ALL", user=an_address("bob"))
    assert (bob["rank"], bob["pnl"]) == ("3", 2)
    by_volume = await reader.get("/v1/leaderboard", timePeriod="ALL", orderBy="VOL")
    assert [row["rank"] for row in by_volume] == ["1", "2", "3", "4"]


@pytest.mark.usefixtures("traders")
async def test_a_win_has_its_initial_and_final_value(reader: Reader) -> None:
    first, second = await reader.get("/v1/biggest-winners", timePeriod="ALL", limit=2)
    assert misfits(first, WIN) == {}
    assert first == {
        "winRank": "1",
        "proxyWallet": checksum_address(an_address("dave")),
        "userName": None,
        "eventTitle": "About vote",
        "slug": "will-it-vote",
        "icon": f"{BLOBS}/blobs/icon-vote",
        "eventSlug": "event-vote",
        "initialValue": 2,
        "finalValue": 6,
        "pnl": 4,
        "profileImage": None,
    }
    assert second["winRank"] == "2"
    [third] = await reader.get("/v1/biggest-winners", timePeriod="ALL", limit=1, offset=2)
    assert third["winRank"] == "3"


async def test_a_win_in_an_unknown_market_names_no_market(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.prepare("elsewhere")
        await rows.hold("alice", "elsewhere", 0, 0, realized_units=5)
    await keep_rankings(database)
    [win] = await reader.get("/v1/biggest-winners")
    assert misfits(win, WIN) == {}
    assert [win[name] for name in ("eventTitle", "slug", "icon", "eventSlug")] == [None] * 4


@pytest.fixture
async def attributed(database: Database) -> None:
    """A builder has submitted a transaction of alice, who traded, so that attribution exists."""
    async with database.writing() as tx:
        request = RelayRequest(
            transaction_id="5f1c1c1e-6d0e-4a57-9f0c-0d1f7d2f8f02",
            kind=RelayKind.SAFE,
            owner=an_address("owner of alice"),
            submitter=an_address("a builder"),
            wallet=an_address("alice"),
            target=an_address("tokens"),
            calldata=b"",
            operation=0,
            safe_nonce=0,
            signature=bytes(65),
            digest=a_word("signed"),
            gas=1,
            metadata=None,
            created_at_ms=NOW_S * 1000,
            updated_at_ms=NOW_S * 1000,
            state=RelayState.CONFIRMED,
        )
        assert await record_relay(tx, request)


@pytest.mark.spec(108)
@pytest.mark.usefixtures("traders", "attributed")
@pytest.mark.parametrize("path", ["/v1/builders/leaderboard", "/v1/builders/volume"])
@pytest.mark.parametrize("period", ["DAY", "WEEK", "MONTH", "ALL"])
async def test_builder_lists_are_empty(reader: Reader, path: str, period: str) -> None:
    assert await reader.get(path, timePeriod=period) == []
    assert await reader.get(path) == []


@pytest.mark.parametrize(
    ("path", "parameters", "error"),
    [
        ("/v1/leaderboard", {"category": "a game"}, "invalid_field: category"),
        ("/v1/leaderboard", {"timePeriod": "HOUR"}, "invalid_field: timePeriod"),
        ("/v1/leaderboard", {"orderBy": "LUCK"}, "invalid_field: orderBy"),
        ("/v1/leaderboard", {"limit": "0"}, "invalid_field: limit"),
        ("/v1/leaderboard", {"limit": "51"}, "invalid_field: limit"),
        ("/v1/leaderboard", {"offset": "1001"}, "invalid_field: offset"),
        ("/v1/leaderboard", {"user": "bob"}, "invalid_field: user"),
        ("/v1/leaderboard/biggest-wins", {"limit": "51"}, "invalid_field: limit"),
        ("/v1/builders/leaderboard", {"limit": "51"}, "invalid_field: limit"),
        ("/v1/builders/leaderboard", {"offset": "1001"}, "invalid_field: offset"),
        ("/v1/builders/leaderboard", {"timePeriod": "HOUR"}, "invalid_field: timePeriod"),
        ("/v1/builders/volume", {"timePeriod": "HOUR"}, "invalid_field: timePeriod"),
        ("/v1/builders/volume", {"limit": "1", "strict": "true"}, "unknown_field: limit"),
    ],
)
async def test_a_malformed_query_for_a_ranking_is_refused(
    reader: Reader, path: str, parameters: dict[str, str], error: str
) -> None:
    status, body = await reader.refused(path, **parameters)
    assert (status, body["error"].startswith(error)) == (400, True)
