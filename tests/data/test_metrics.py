import pytest
from tests.data.shapes import HOLDER
from tests.rigs.read_apis import Reader, misfits
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import TOKEN, a_word, an_address, an_asset
from tests.store.queries.recorded_queries import recorded

from foretell.data.metrics import HOLDERS_PER_ANSWER_MAX, OPEN_INTERESTS_MAX
from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.database import Database
from foretell.store.index.balances import Balance, record_balances

pytestmark = pytest.mark.anyio

RAIN, SNOW = a_word("rain"), a_word("snow")


@pytest.fixture
async def holders(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("weather", a_market_row("rain"), a_market_row("snow")))
        await rows.hold("alice", "rain", 2 * TOKEN, 0)
        await rows.hold("bob", "rain", 3_500_000, 0)
        await rows.hold("carol", "rain", TOKEN - 1, 0)
        await rows.hold("alice", "rain", 9 * TOKEN, 0, is_yes=False)
        await rows.lock("rain", 3_500_000)
        await rows.quote("rain", volume_units=4_500_000)
        await rows.quote("snow", volume_units=2 * TOKEN)


@pytest.mark.usefixtures("holders")
async def test_holders_are_listed_for_each_outcome_the_largest_first(reader: Reader) -> None:
    yes, no = await reader.get("/holders", market=RAIN)
    assert (yes["token"], no["token"]) == (
        an_asset(is_yes=True, market="rain"),
        an_asset(is_yes=False, market="rain"),
    )
    assert misfits(yes["holders"][0], HOLDER) == {}
    assert [(holder["proxyWallet"], holder["amount"]) for holder in yes["holders"]] == [
        (checksum_address(an_address("bob")), 3.5),
        (checksum_address(an_address("alice")), 2),
    ]
    assert [(holder["asset"], holder["outcomeIndex"]) for holder in no["holders"]] == [
        (no["token"], 1)
    ]


@pytest.mark.usefixtures("holders")
async def test_the_address_where_conversions_park_their_no_tokens_is_no_holder(
    reader: Reader, database: Database
) -> None:
    token = an_asset(is_yes=False, market="rain")
    async with database.writing() as tx:
        await record_balances(tx, [Balance(NO_TOKEN_BURN, token, 99 * TOKEN, 1)])
    _, no = await reader.get("/holders", market=RAIN, limit=1)
    wallets = [holder["proxyWallet"] for holder in no["holders"]]
    assert wallets == [checksum_address(an_address("alice"))], "a page has as many as it may"


@pytest.mark.usefixtures("holders")
@pytest.mark.parametrize(
    ("parameters", "counts"),
    [
        ({}, [2, 1]),
        ({"minBalance": "0"}, [3, 1]),
        ({"minBalance": "2.1"}, [1, 1]),
        ({"limit": "1"}, [1, 1]),
        ({"limit": "0"}, [0, 0]),
        ({"market": f"{SNOW},{RAIN},{RAIN},{a_word('none')}"}, [0, 0, 2, 1]),
    ],
)
async def test_holders_are_limited_by_balance_and_number(
    reader: Reader, parameters: dict[str, str], counts: list[int]
) -> None:
    answer = await reader.get("/holders", **{"market": RAIN, **parameters})
    assert [len(entry["holders"]) for entry in answer] == counts


@pytest.mark.usefixtures("holders")
@pytest.mark.parametrize("others", [0, 200])
async def test_the_holders_of_all_markets_are_read_by_one_query(
    reader: Reader, database: Database, others: int
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx, 100)
        for number in range(others):
            await rows.prepare(f"other {number}")
            await rows.hold("bob", f"other {number}", TOKEN, 0)
    wanted = [RAIN, *(a_word(f"other {number}") for number in range(others))]
    with recorded() as queries:
        answer = await reader.get("/holders", market=",".join(wanted))
    assert len(answer) == 2 * len(wanted)
    assert sum(len(entry["holders"]) for entry in answer) == 3 + others
    assert len([sql for sql, _ in queries if "balances" in sql]) == 1
    assert len(queries) == 3, "its conditions, the holders, and their profiles"


@pytest.mark.usefixtures("holders")
async def test_many_markets_share_the_holders_of_an_answer(reader: Reader) -> None:
    others = [a_word(f"other {number}") for number in range(499)]
    yes, no = await reader.get("/holders", market=",".join([RAIN, *others]), minBalance=0)
    assert HOLDERS_PER_ANSWER_MAX // 1000 == 10
    assert (len(yes["holders"]), len(no["holders"])) == (3, 1)


@pytest.mark.usefixtures("holders")
async def test_open_interest_is_the_collateral_locked_in_a_condition(reader: Reader) -> None:
    whole = await reader.get("/oi")
    some = await reader.get("/oi", market=f"{SNOW},{RAIN},{a_word('none')}")
    assert whole == [{"market": RAIN, "value": 3.5}]
    assert some == [{"market": SNOW, "value": 0}, {"market": RAIN, "value": 3.5}]


async def test_without_a_filter_the_largest_open_interests_are_listed(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in range(OPEN_INTERESTS_MAX + 1):
            await rows.lock(f"market {number}", 1 + number)
    answer = await reader.get("/oi")
    assert len(answer) == OPEN_INTERESTS_MAX
    assert (answer[0]["value"], answer[-1]["value"]) == (0.000501, 0.000002)


@pytest.mark.usefixtures("holders")
@pytest.mark.parametrize(
    ("parameters", "total", "values"),
    [
        ({"market": RAIN}, 4.5, [4.5]),
        ({"market": f"{RAIN},{SNOW},{RAIN}"}, 6.5, [4.5, 2]),
        ({"id": "1"}, 6.5, [4.5, 2]),
        ({"id": "9"}, 0, []),
        ({"market": a_word("none")}, 0, []),
    ],
)
async def test_volume_is_listed_for_each_market_and_in_total(
    reader: Reader, parameters: dict[str, str], total: float, values: list[float]
) -> None:
    [answer] = await reader.get("/live-volume", **parameters)
    assert answer["total"] == total
    assert [market["value"] for market in answer["markets"]] == values


async def test_the_live_volume_is_of_markets_or_of_an_event(reader: Reader) -> None:
    """A finding: with both, the markets were ignored."""
    status, body = await reader.refused("/live-volume", market=RAIN, id="1")
    assert (status, body["error"]) == (400, "invalid_field: id must be absent if market is given")


@pytest.mark.usefixtures("holders")
async def test_a_trade_that_has_failed_is_not_in_the_live_volume(
    reader: Reader, database: Database
) -> None:
    async with database.writing() as tx:
        await Rows(tx).fail("rain", TOKEN)
    [answer] = await reader.get("/live-volume", id="1")
    assert answer["total"] == 5.5
    assert [market["value"] for market in answer["markets"]] == [3.5, 2]


@pytest.mark.parametrize(
    ("path", "parameters", "error"),
    [
        ("/holders", {}, "missing_field: market"),
        ("/holders", {"market": "0x1"}, "invalid_field: market"),
        ("/holders", {"market": RAIN, "limit": "501"}, "invalid_field: limit"),
        ("/holders", {"market": RAIN, "minBalance": "x"}, "invalid_field: minBalance"),
        ("/oi", {"market": "0x1"}, "invalid_field: market"),
        ("/live-volume", {}, "missing_field: market or id is required"),
        ("/live-volume", {"id": "0"}, "invalid_field: id"),
        ("/live-volume", {"id": "1", "strict": "1", "x": "1"}, "unknown_field: x"),
    ],
)
async def test_a_malformed_query_for_a_metric_is_refused(
    reader: Reader, path: str, parameters: dict[str, str], error: str
) -> None:
    status, body = await reader.refused(path, **parameters)
    assert (status, body["error"].startswith(error)) == (400, True)
