from typing import Any

import pytest
from tests.rigs.rows import Rows
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_buy, a_sell, a_word, an_asset

from foretell.domain.exchange.commands import ResolveMarket
from foretell.domain.portfolio.price_history import Buckets
from foretell.trading.handlers.price_history import _parts

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
HOUR = 3600


async def history(rig: TradingRig, **query: Any) -> list[tuple[int, float]]:
    response = await rig.client.get("/prices-history", params={"market": YES} | query)
    assert response.status_code == 200, response.text
    assert list(response.json()) == ["history"]
    return [(point["t"], point["p"]) for point in response.json()["history"]]


async def quote(rig: TradingRig, *points: tuple[int, int | None, int | None, int | None]) -> None:
    """Store best prices at these numbers of seconds before now."""
    async with rig.context.database.writing() as tx:
        rows = Rows(tx)
        for back_s, bid, ask, last in points:
            await rows.quoted_at("market", NOW_S - back_s, bid, ask, last)


@pytest.mark.spec(100)
async def test_a_history_follows_the_book_of_the_engine(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    await alice.placed(a_buy("alice", price_ticks=40))
    await bob.placed(a_sell("bob", price_ticks=50))
    rig.clock.move(60_000)
    await bob.placed(a_sell("bob", price_ticks=40, size_units=5 * TOKEN))
    await alice.placed(a_buy("alice", price_ticks=48))
    rig.clock.move(120_000)
    await rig.settle_tables()
    assert await history(rig, interval="1h") == [
        (NOW_S + 60, 0.45),
        (NOW_S + 120, 0.49),
        (NOW_S + 180, 0.49),
    ]


async def test_the_other_token_has_the_complementary_price(rig: TradingRig) -> None:
    await quote(rig, (120, 30, 40, None))
    assert {price for _, price in await history(rig, interval="1h")} == {0.35}
    assert {price for _, price in await history(rig, interval="1h", market=NO)} == {0.65}


async def test_without_a_midpoint_the_last_price_is_shown(rig: TradingRig) -> None:
    await quote(rig, (180, 30, None, 32), (120, None, None, None), (60, None, 50, 33))
    points = await history(rig, interval="1h")
    assert points == [(NOW_S - 120, 0.32), (NOW_S, 0.33)]


async def test_a_fidelity_is_the_minutes_of_a_point(rig: TradingRig) -> None:
    await quote(rig, (2 * HOUR, 20, 30, None), (HOUR, 30, 40, None))
    points = await history(rig, startTs=NOW_S - 3 * HOUR, fidelity=60)
    assert points == [(NOW_S - HOUR, 0.25), (NOW_S, 0.35)]


async def test_a_history_ends_at_the_requested_end(rig: TradingRig) -> None:
    await quote(rig, (2 * HOUR, 20, 30, None), (HOUR, 30, 40, None))
    points = await history(rig, startTs=NOW_S - 3 * HOUR, endTs=NOW_S - HOUR - 60, fidelity=30)
    assert [price for _, price in points] == [0.25, 0.25]
    assert points[-1][0] <= NOW_S - HOUR - 60


@pytest.mark.parametrize("fidelity", [1, 60, 1440, 43200])
async def test_the_last_point_has_the_price_that_was_known_at_its_time(
    rig: TradingRig, fidelity: int
) -> None:
    """A finding: it had what was known at the end of its bucket, which is later."""
    await quote(rig, (2 * HOUR, 50, 60, None), (HOUR, 30, 40, None), (60, 10, 20, None))
    span = {"startTs": NOW_S - 3 * HOUR, "endTs": NOW_S - HOUR - 60}
    assert (await history(rig, **span, fidelity=fidelity))[-1] == (NOW_S - HOUR - 60, 0.55)


@pytest.mark.parametrize(
    "span",
    [
        {"startTs": NOW_S - HOUR, "endTs": NOW_S - 2 * HOUR},
        {"startTs": NOW_S - 5, "endTs": NOW_S - 10},
        {"startTs": NOW_S + HOUR, "endTs": 1},
        {"startTs": NOW_S + HOUR},
    ],
)
async def test_a_span_that_ends_before_it_begins_has_no_points(
    rig: TradingRig, span: dict[str, int]
) -> None:
    """A finding: it had one, with the present price."""
    await quote(rig, (2 * HOUR, 20, 30, None), (HOUR, 30, 40, None))
    assert await history(rig, **span) == []


@pytest.mark.parametrize("minutes", [0, 1, 249, 250, 251, 499, 500, 1000])
@pytest.mark.parametrize("step_s", [60, 300])
@pytest.mark.parametrize("rest_s", [0, 60, 240])
def test_the_parts_of_a_history_have_its_points(minutes: int, step_s: int, rest_s: int) -> None:
    first_s = 10 * step_s
    last_s = first_s + minutes * step_s + min(rest_s, step_s - 60)
    ends = [
        min(end_s, part.last_end_s)
        for part in _parts(Buckets(first_s, last_s, step_s))
        for end_s in range(part.first_end_s, part.last_end_s + step_s, step_s)
    ]
    assert ends == [min(end_s, last_s) for end_s in range(first_s, last_s + step_s, step_s)]
    assert list(_parts(Buckets(60, 0, 60))) == []


async def test_an_end_in_the_future_is_now(rig: TradingRig) -> None:
    await quote(rig, (HOUR, 30, 40, None))
    points = await history(rig, startTs=NOW_S - HOUR, endTs=NOW_S + 9 * HOUR, fidelity=30)
    assert points[-1] == (NOW_S, 0.35)


@pytest.mark.parametrize("query", [{"interval": "1h"}, {"startTs": NOW_S - HOUR}])
@pytest.mark.parametrize("fidelity", [1, 5])
async def test_the_newest_price_is_at_the_end_of_the_minute_that_runs(
    rig: TradingRig, query: dict[str, Any], fidelity: int
) -> None:
    await quote(rig, (60, 50, 60, None), (0, 30, 40, None))
    rig.clock.move(30_000)
    points = await history(rig, **query, fidelity=fidelity)
    assert points[-1] == (NOW_S + 60, 0.35)


async def test_a_price_from_before_the_start_is_used(rig: TradingRig) -> None:
    await quote(rig, (5 * HOUR, 30, 40, None))
    points = await history(rig, startTs=NOW_S - 60)
    assert points == [(NOW_S - 60, 0.35), (NOW_S, 0.35)]


@pytest.mark.parametrize("interval", ["max", "all"])
async def test_everything_begins_with_the_first_point(rig: TradingRig, interval: str) -> None:
    await quote(rig, (300 * 24 * HOUR, 30, 40, None), (60, 50, 60, None))
    points = await history(rig, interval=interval)
    assert points[0][1] == 0.35
    assert points[-1] == (NOW_S, 0.55)
    assert len(points) <= 1000
    assert points[0][0] <= NOW_S - 299 * 24 * HOUR


async def test_a_market_without_quotes_has_an_empty_history(rig: TradingRig) -> None:
    await rig.open("other")
    token_id = an_asset(is_yes=True, market="other")
    assert await history(rig, market=token_id, interval="max") == []


async def test_history_outlives_the_market(rig: TradingRig) -> None:
    await quote(rig, (60, 50, 60, None))
    await rig.submit(ResolveMarket(NOW_MS, a_word("market")))
    assert (await history(rig, interval="1h"))[-1] == (NOW_S, 0.55)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({}, 400, "startTs must be given in seconds if interval is not given"),
        ({"interval": "2y"}, 400, "interval must be one of 5m, 15m, 1h, 6h, 1d, 1w, 1m, max, all"),
        ({"interval": "1h", "fidelity": "0"}, 400, "fidelity must be an integer from 1 to 43200"),
        ({"startTs": "now"}, 400, "startTs must be an integer from 0 to 100000000000"),
        ({"interval": "1h", "market": ""}, 400, "Invalid token id"),
        ({"interval": "1h", "market": "0x12"}, 400, "Invalid token id"),
        (
            {"interval": "1h", "market": "12"},
            404,
            "No orderbook exists for the requested token id",
        ),
    ],
)
async def test_a_malformed_query_is_refused(
    rig: TradingRig, query: dict[str, str], status: int, words: str
) -> None:
    response = await rig.client.get("/prices-history", params={"market": str(YES)} | query)
    assert (response.status_code, response.json()["error"]) == (status, words)


@pytest.mark.parametrize("minutes_per_point", [1, 2])
@pytest.mark.parametrize(("markets", "points"), [(1, 1000), (2, 1000), (3, 666), (10, 200)])
async def test_all_histories_of_a_batch_have_few_points_together(
    rig: TradingRig, markets: int, points: int, minutes_per_point: int
) -> None:
    """A finding: each had one more, as a span of whole steps has a point at its start and one at its end."""
    names = [f"m{number}" for number in range(markets)]
    async with rig.context.database.writing() as tx:
        for name in names:
            await Rows(tx).quoted_at(name, NOW_S - 3_000 * 60, 30, 40, None)
    for name in names:
        await rig.open(name)
    tokens = [an_asset(is_yes=is_yes, market=name) for name in names for is_yes in (True, False)]
    start_s = NOW_S - points * minutes_per_point * 60
    body = {"markets": tokens, "start_ts": start_s, "end_ts": NOW_S, "fidelity": 1}
    answer = await rig.client.post("/batch-prices-history", json=body)
    counts = {len(points) for points in answer.json()["history"].values()}
    assert len(counts) == 1
    assert points // 2 < counts.pop() <= points


@pytest.mark.spec(100)
@pytest.mark.parametrize(
    "body",
    [
        {"interval": "1h"},
        {"start_ts": NOW_S - HOUR, "end_ts": NOW_S},
        {"startTs": NOW_S - HOUR, "endTs": NOW_S},
        {"start_ts": NOW_S - HOUR, "fidelity": 1},
    ],
)
async def test_a_batch_has_the_history_of_each_token(rig: TradingRig, body: dict[str, Any]) -> None:
    await quote(rig, (120, 30, 40, None))
    response = await rig.client.post("/batch-prices-history", json={"markets": [YES, NO], **body})
    histories = response.json()["history"]
    assert [point["p"] for point in histories[YES]] == [0.35, 0.35]
    assert [point["p"] for point in histories[NO]] == [0.65, 0.65]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"markets": []}, 400, "Invalid payload"),
        ({"markets": YES}, 400, "Invalid payload"),
        ({}, 400, "Invalid payload"),
        ({"markets": [YES] * 21, "interval": "1h"}, 400, "Payload exceeds the limit"),
        ({"markets": ["x"], "interval": "1h"}, 400, "Invalid token id"),
        ({"markets": [YES], "interval": "1h", "fidelity": -1}, 400, None),
        ({"markets": [YES], "start_ts": 10**12}, 400, None),
        (
            {"markets": ["12"], "interval": "1h"},
            404,
            "No orderbook exists for the requested token id",
        ),
    ],
)
async def test_a_malformed_batch_is_refused(
    rig: TradingRig, body: object, status: int, words: str | None
) -> None:
    response = await rig.client.post("/batch-prices-history", json=body)
    assert response.status_code == status
    assert words in {None, response.json()["error"]}
