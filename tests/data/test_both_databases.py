"""One list of requests, with the same answers on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.applications import an_app
from tests.rigs.postgres import PostgresServer
from tests.rigs.read_apis import BLOBS, Reader, a_data_context, keep_listings, keep_rankings
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import EXCHANGE, NOW_MS, NOW_S, TOKEN, a_token_pair, a_word, an_address

from foretell.data.routes import build_app as build_data_app
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.routes import build_app as build_discovery_app
from foretell.domain.exchange.order import OrderStatus, Side
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind
from foretell.store.tables import fills, trades
from foretell.store.trading.builder_trades import BuilderTradeFilter, load_builder_trades
from foretell.store.trading.referrals import record_referral

pytestmark = pytest.mark.anyio

ALICE: Final = an_address("alice")
TITLES: Final = {"a": "Zebra Ünïcode", "b": "apple", "c": "Äpfel", "d": "_under", "e": "Épée"}
MARKETS: Final = ",".join(a_word(name) for name in TITLES)
DATA: Final = (
    *(
        f"/positions?user={ALICE}&sortBy={order}&sortDirection={direction}"
        for order in [
            "CURRENT",
            "INITIAL",
            "TOKENS",
            "CASHPNL",
            "PERCENTPNL",
            "TITLE",
            "RESOLVING",
            "PRICE",
            "AVGPRICE",
        ]
        for direction in ("ASC", "DESC")
    ),
    *(f"/positions?user={ALICE}&title={part}" for part in ("ün", "UN", "ae", "epee", "%5F")),
    *(
        f"/closed-positions?user={ALICE}&sortBy={order}"
        for order in ["REALIZEDPNL", "TITLE", "PRICE", "AVGPRICE", "TIMESTAMP"]
    ),
    f"/value?user={ALICE}",
    f"/positions/{a_token_pair('a').yes}/ledger?user={ALICE}",
    f"/traded?user={ALICE}",
    f"/volume?user={ALICE}",
    f"/holders?market={MARKETS}&minBalance=0",
    f"/holders?market={MARKETS}&limit=1",
    "/oi",
    f"/live-volume?market={MARKETS}",
    "/trades?takerOnly=false",
    "/trades?filterType=CASH&filterAmount=2",
    f"/activity?user={ALICE}&sortBy=CASH",
    *(
        f"/v1/leaderboard?timePeriod={period}&orderBy={order}"
        for period in ("DAY", "WEEK", "MONTH", "ALL")
        for order in ("PNL", "VOL")
    ),
    f"/v1/leaderboard?timePeriod=ALL&user={ALICE}",
    "/v1/leaderboard/biggest-wins?timePeriod=ALL",
    *(
        f"/{route}?address={an_address('referrer')}{chosen}"
        for route in ("referrers", "affiliates")
        for chosen in (
            "",
            f"&tokenId={a_token_pair('d').yes}",
            f"&exchange={EXCHANGE}",
            "&limit=1",
        )
    ),
)
BUILDER: Final = a_word("builder")
BUILDER_FILTERS: Final = (
    BuilderTradeFilter(),
    BuilderTradeFilter(condition_id=a_word("b")),
    BuilderTradeFilter(wallet=an_address("maker")),
    BuilderTradeFilter(after_s=NOW_S - 3600, before_s=NOW_S),
)
ORDERS: Final = [
    "slug",
    "title",
    "volume",
    "volume24hr",
    "volume1yr",
    "liquidity",
    "competitive",
    "closedTime",
]
DISCOVERY: Final = (
    *(f"/{kind}?order={order}" for kind in ("markets", "events") for order in ORDERS),
    "/markets?order=question&ascending=true",
    "/tags?order=label&ascending=true",
    "/events/keyset?order=title&limit=2",
    "/public-search?q=%C3%BCnicode",
    "/public-search?q=EPEE",
)


async def fill(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for number, (name, title) in enumerate(TITLES.items()):
            market = a_market_row(name, question=title)
            await rows.open(an_event_row(name, market, title=title), NOW_MS - number)
            await rows.quote(name, 10 * number + 1, 10 * number + 5, volume_units=number)
            await rows.match(name, (number + 1) * TOKEN, NOW_MS - 3_600_000 * number)
            await rows.rest("bob", name, Side.BUY, 10 * number + 1, 10 * TOKEN)
            await rows.lock(name, number % 2)
            for who in ("alice", "bob"):
                at_s = NOW_S - 5 * 86_400 * (4 - number)
                gained = {"realized_units": number, "changed_at_s": at_s}
                await rows.buy(who, name, 2 * TOKEN, (number + 1) * TOKEN, timestamp_s=at_s)
                await rows.hold(who, name, (number % 3) * TOKEN, number, **gained)
        await rows.prepare("elsewhere")
        await rows.hold("alice", "elsewhere", TOKEN, 5)
        await rows.act("alice", "a", ActivityKind.SPLIT, TOKEN)
        await rows.resolve("e", 2**62, 2**62 + 1)
        for wallet in ("alice", "bob"):
            await record_referral(tx, [an_address(wallet)], an_address("referrer"), NOW_S - 10**6)
        matched = await tx.all(
            sa.select(trades.c.taker_order_id, fills.c.maker_order_id)
            .join_from(trades, fills, fills.c.trade_id == trades.c.trade_id)
            .order_by(trades.c.matched_at_ms)
        )
        for name, order_id in zip(
            "abcde" * 2, [each for row in matched for each in row], strict=True
        ):
            brought = {"order_id": order_id, "builder": BUILDER, "status": OrderStatus.MATCHED}
            await rows.rest("bob", name, Side.BUY, 10, 10 * TOKEN, **brought)
    await keep_rankings(database)
    await keep_listings(database)


@pytest.fixture
def postgres_url_emptied(postgres: PostgresServer) -> str:
    postgres.empty_database()
    return postgres.database_url


@pytest.fixture
async def databases(
    fresh_database: Database, postgres_url_emptied: str
) -> AsyncIterator[tuple[Database, Database]]:
    async with Database(postgres_url_emptied) as other:
        for database in (fresh_database, other):
            await fill(database)
        yield fresh_database, other


def a_reader(database: Database, *, is_data: bool) -> Reader:
    if is_data:
        return Reader(an_app(build_data_app, a_data_context(database, BLOBS, lambda: NOW_MS)))
    return Reader(an_app(build_discovery_app, DiscoveryContext(database, BLOBS)))


async def test_an_export_has_the_same_rows_on_both_databases(
    databases: tuple[Database, Database],
) -> None:
    for kind in ("trades", "positions", "ledger"):
        path = f"/export/{kind}.csv?user={ALICE}&after={'0-0-0' if kind == 'trades' else ''}"
        texts = [
            (await a_reader(database, is_data=True).http.get(path.removesuffix("&after="))).text
            for database in databases
        ]
        assert texts[0] == texts[1]
        assert texts[0].startswith("cursor,")
        assert texts[0].count("\r\n") > 1 or kind == "trades"


async def test_the_trades_of_a_builder_are_the_same_on_both_databases(
    databases: tuple[Database, Database],
) -> None:
    found: list[list[Any]] = []
    for database in databases:
        async with database.reading() as tx:
            found.append(
                [
                    await load_builder_trades(tx, BUILDER, wanted, offset, 3)
                    for wanted in BUILDER_FILTERS
                    for offset in (0, 3)
                ]
            )
    assert found[0] == found[1]
    assert [len(page) for page in found[0]] == [3, 3, 2, 0, 3, 2, 2, 0]


@pytest.mark.parametrize("is_data", [True, False], ids=["data", "discovery"])
async def test_every_read_has_the_same_answer_on_both_databases(
    databases: tuple[Database, Database],
    is_data: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    one, other = (a_reader(database, is_data=is_data) for database in databases)
    answers: list[Any] = []
    for request in DATA if is_data else DISCOVERY:
        answer = await one.get(request)
        assert (request, answer) == (request, await other.get(request))
        answers.append(answer)
    assert sum(map(bool, answers)) >= len(answers) - 4
