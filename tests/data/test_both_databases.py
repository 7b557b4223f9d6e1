"""One list of requests, with the same answers on SQLite and on PostgreSQL."""

import re
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.applications import an_app
from tests.rigs.postgres import PostgresServer
from tests.rigs.read_apis import BLOBS, Reader, a_data_context, keep_listings, keep_rankings
from tests.rigs.rows import Rows, a_game_event_row, a_market_row, an_event_row
from tests.rigs.values import EXCHANGE, NOW_MS, NOW_S, TOKEN, a_token_pair, a_word, an_address
from tests.store.queries.recorded_queries import recorded

from foretell.data.owed_reader import OwedReader
from foretell.data.routes import build_app as build_data_app
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.routes import build_app as build_discovery_app
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import OrderStatus, Side
from foretell.domain.portfolio.builder_volumes import TradedFills, UserDay, day_of
from foretell.domain.portfolio.gains import SUM_MAX
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.engine.writer.builder_rows import record_builder_volumes
from foretell.store.database import Database, Transaction
from foretell.store.index.activities import (
    ActivityKind,
    ActivityRow,
    ExchangeFill,
    record_exchange_fills,
)
from foretell.store.index.balances import Balance, record_balances
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.tables import fills, trades
from foretell.store.trading.builder_days import add_traded
from foretell.store.trading.builder_trades import BuilderTradeFilter, load_builder_trades
from foretell.store.trading.profiles import PublicProfile, record_profile
from foretell.store.trading.referrals import record_referral
from foretell.store.trading.trades import load_trades_by_id

pytestmark = pytest.mark.anyio

ALICE: Final = an_address("alice")
WHALE: Final = an_address("whale")
LARGE: Final = 2**62
"""Two of it are more than a column holds."""
EXCHANGES: Final = sorted(an_address(f"exchange {number}") for number in range(2))
LARGE_MARKETS: Final = ("large", "vast", "huge")
NAMES: Final = ("a-b", "ab", "A_c", "a%", "az", "aé", "b", "älter")
TITLES: Final = {"a": "Zebra Ünïcode", "b": "apple", "c": "Äpfel", "d": "_under", "e": "Épée"}
MARKETS: Final = ",".join(a_word(name) for name in TITLES)
POSITIONS: Final = (
    f"market={MARKETS}",
    "eventId=1,3",
    "redeemable=true",
    "mergeable=true",
    "sizeThreshold=1.5",
    "limit=2&offset=1",
)
CLOSED: Final = (f"market={MARKETS}", "eventId=2", "limit=1")
TRADES: Final = (
    f"user={ALICE}",
    f"user={ALICE}&side=SELL",
    f"user={ALICE}&market={a_word('c')}",
    f"market={MARKETS}",
    "eventId=1,2",
    "side=BUY&limit=3&offset=2",
    "filterType=TOKENS&filterAmount=2",
    f"market={a_word('d')}&filterType=CASH&filterAmount=3",
)
ACTIVITY: Final = (
    "type=TRADE,SPLIT",
    "type=CONVERSION",
    f"market={MARKETS}",
    "sortBy=TOKENS&sortDirection=ASC",
    f"start={NOW_S - 9 * 86_400}&end={NOW_S}",
    "side=BUY&limit=2&offset=1",
)
BUILDER: Final = a_word("builder")
VOLUMES: Final = (
    *(f"?timePeriod={period}" for period in ("DAY", "WEEK", "MONTH", "ALL")),
    "?limit=1",
)
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
    *(f"/positions?user={ALICE}&title={part}" for part in ("ün", "UN", "apf", "epee", "%5F")),
    *(
        f"/closed-positions?user={ALICE}&sortBy={order}"
        for order in ["REALIZEDPNL", "TITLE", "PRICE", "AVGPRICE", "TIMESTAMP"]
    ),
    f"/value?user={ALICE}",
    f"/positions/{a_token_pair('a').yes}/ledger?user={ALICE}",
    f"/traded?user={ALICE}",
    *(f"/volume?user={user}" for user in (ALICE, WHALE)),
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
    *(f"/v1/biggest-winners?timePeriod={period}" for period in ("DAY", "WEEK", "MONTH")),
    *(
        f"/v1/leaderboard{route}?timePeriod=ALL&category={category}"
        for route in ("", "/biggest-wins")
        for category in ("politics", "POLITICS")
    ),
    "/v1/leaderboard?timePeriod=ALL&limit=1&offset=1",
    *(f"/v1/leaderboard?timePeriod=ALL&userName={name}" for name in ("%C3%84LICE", "alic%C3%A9")),
    *(f"/positions?user={ALICE}&{chosen}" for chosen in POSITIONS),
    *(f"/closed-positions?user={ALICE}&{chosen}" for chosen in CLOSED),
    *(f"/trades?takerOnly=false&{chosen}" for chosen in TRADES),
    *(f"/activity?user={ALICE}&{chosen}" for chosen in ACTIVITY),
    *(f"/builders/{route}{chosen}" for route in ("leaderboard", "volume") for chosen in VOLUMES),
    "/builders/leaderboard?timePeriod=WEEK&offset=1",
    f"/builders/volume?timePeriod=ALL&builder={BUILDER}",
    f"/oi?market={a_word('b')}",
    *(f"/owed?user={ALICE}{chosen}" for chosen in ("", "&limit=1")),
    *(f"/solvency{chosen}" for chosen in ("", "?limit=2", f"?limit=2&after={a_word('c')}")),
    "/live-volume?id=2",
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
EXPORTS: Final = tuple(
    f"/export/{kind}.csv?user={ALICE}" for kind in ("trades", "positions", "ledger")
)
TEXTS_SORTED: Final = re.compile(
    r"(?<!market_totals\.)(?<!event_totals\.)\b(?:slug|title|label|question|name|market_type)\b(?!\) COLLATE)"
)
"""A text in an order, without its collation; those of totals have one as columns."""
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
FILTERS: Final = ("active=true", "closed=true", "tag_id=1", "limit=2&offset=2", "related_tags=true")
RELATED: Final = ("/related-tags", "/related-tags/tags")
WITHOUT_TABLES: Final = {
    *("/", "/status", "/limits", "/export/{file}"),
    *("/v1/builders/leaderboard", "/v1/builders/volume"),
    *("/events/creators/{record_id}", "/series/{series_id}/comments/count"),
}
"""Routes that read no table, and the one that has a test of its own."""
EMPTY: Final = {
    *(f"/tags/{way}{part}" for way in ("1", "slug/world") for part in RELATED),
    *(f"/comments{part}" for part in ("", "/1", f"/user_address/{ALICE}")),
    "/events/creators",
    "/v1/biggest-winners?timePeriod=DAY",
}
"""What is empty everywhere, and the wins of a day without one."""
DISCOVERY: Final = (
    *(f"/{kind}?order={order}" for kind in ("markets", "events") for order in ORDERS),
    "/markets?order=question&ascending=true",
    "/tags?order=label&ascending=true",
    "/events/keyset?order=title&limit=2",
    *(
        f"/{kind}?order={order}&ascending=true"
        for kind in ("markets", "events")
        for order in ORDERS
    ),
    *(f"/markets?order={order}" for order in ("bestBid", "lastTradePrice", "endDate")),
    *(f"/{kind}?{chosen}" for kind in ("markets", "events") for chosen in FILTERS),
    f"/markets?condition_ids={a_word('a')}&condition_ids={a_word('c')}",
    "/markets?liquidity_num_min=1",
    "/events?title_search=%C3%9CN",
    "/events/keyset?limit=2",
    "/events/pagination?limit=2",
    "/markets/keyset?order=slug&limit=2",
    *(f"/events/{way}{part}" for way in ("1", "6") for part in ("", "/tags", "/comments/count")),
    "/events/slug/event-a",
    *(f"/markets/{way}{part}" for way in ("1", "6") for part in ("", "/tags", "/description")),
    "/markets/slug/will-it-a",
    "/tags",
    *(f"/tags/{way}{part}" for way in ("1", "slug/world") for part in ("", *RELATED)),
    "/sports",
    "/sports/market-types",
    "/teams",
    *(f"/series{order}" for order in ("", "?order=slug", "?order=title&ascending=true")),
    "/series/1",
    f"/public-profile?address={ALICE}",
    f"/profiles/user_address/{ALICE}",
    *(f"/comments{part}" for part in ("", "/1", f"/user_address/{ALICE}")),
    "/events/creators",
    "/public-search?q=zebra&search_profiles=true&limit_per_type=500",
    "/public-search?q=%C3%BCnicode",
    "/public-search?q=EPEE",
    "/public-search?q=%C3%84L&search_profiles=true",
    *(f"/public-search?q={name}&search_profiles=true" for name in ("a", "AE", "alt", "%C3%81z")),
)


def fill_of(act: ActivityRow, fee_units: int) -> ExchangeFill:
    """Return the fill that an act was read from."""
    assert act.token_id is not None
    assert act.side is not None
    return ExchangeFill(
        act.block_number,
        act.log_index,
        act.part,
        a_word(f"order of {act.tx_hash}"),
        act.wallet,
        an_address("maker"),
        act.side,
        act.token_id,
        act.size_units,
        act.cost_units,
        fee_units,
        act.is_taker,
        act.tx_hash,
    )


async def attribute(rows: Rows) -> None:
    """Have a builder bring both orders of each trade; another one has a large volume of two days ago."""
    matched = await rows.tx.all(
        sa.select(trades.c.taker_order_id, fills.c.maker_order_id)
        .join_from(trades, fills, fills.c.trade_id == trades.c.trade_id)
        .order_by(trades.c.matched_at_ms)
    )
    for name, order_id in zip("abcde" * 2, [each for row in matched for each in row], strict=True):
        brought = {"order_id": order_id, "builder": BUILDER, "status": OrderStatus.MATCHED}
        await rows.rest("bob", name, Side.BUY, 10, 10 * TOKEN, **brought)
    found = await rows.tx.all(sa.select(trades.c.trade_id))
    known = await load_trades_by_id(rows.tx, [row.trade_id for row in found])
    await record_builder_volumes(rows.tx, known, [])
    day = UserDay(a_word("another builder"), ALICE, day_of(NOW_MS) - 2)
    await add_traded(rows.tx, {day: TradedFills(AMOUNT_UNITS_MAX, 1)})


async def name_addresses(tx: Transaction) -> None:
    """Write the profiles of Alice and of others."""
    addresses = {"Älice": ALICE} | {name: an_address(f"named {name}") for name in NAMES}
    for name, address in addresses.items():
        safe = an_address(f"safe of {name}")
        await record_profile(tx, PublicProfile(address, safe, name, "", "", NOW_MS))


async def grow_large(rows: Rows) -> None:
    """Write a wallet, an event and a series whose sums are more than a column holds."""
    await rows.open(an_event_row("large", *map(a_market_row, LARGE_MARKETS)), NOW_MS + 2)
    game = a_game_event_row("final")
    await rows.open(game, NOW_MS + 2000)
    for name in (*LARGE_MARKETS, *(f"final {market.market_key}" for market in game.markets)):
        await rows.quote(name, 40, 42, 41, volume_units=LARGE)
        await rows.lock(name, LARGE)
    for _ in range(3):
        await rows.buy("whale", "large", LARGE, LARGE, timestamp_s=NOW_S - 2 * 86_400)
    await rows.hold("whale", "large", LARGE, LARGE, changed_at_s=NOW_S - 2 * 86_400)


async def keep_for_alice(tx: Transaction) -> None:
    """Let two exchanges keep tokens of Alice's, as of a block."""
    token_id = AssetId(str(a_token_pair("a").yes))
    await record_balances(tx, [Balance(each, token_id, TOKEN, 1) for each in EXCHANGES])
    await record_blocks(tx, [Block(1, a_word("block"), a_word("parent"), NOW_S)])


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
                act = await rows.buy(who, name, 2 * TOKEN, (number + 1) * TOKEN, timestamp_s=at_s)
                await record_exchange_fills(tx, [fill_of(act, number)])
                held = 0 if name == "b" else number % 3 + 1
                await rows.hold(who, name, held * TOKEN, number, **gained)
        await rows.open(a_game_event_row("game"), NOW_MS + 1000)
        await name_addresses(tx)
        await rows.prepare("elsewhere")
        await rows.hold("alice", "elsewhere", TOKEN, 5)
        await rows.hold("alice", "a", TOKEN, 5, is_yes=False)
        await rows.act("alice", "a", ActivityKind.SPLIT, TOKEN)
        await rows.act("alice", "a", ActivityKind.CONVERSION, TOKEN)
        await rows.buy("alice", "a", TOKEN, TOKEN // 2, side=Side.SELL)
        await rows.hold("bob", "b", 0, 0, realized_units=7)
        await rows.resolve("e", 2**62, 2**62 + 1)
        for wallet in ("alice", "bob"):
            await record_referral(tx, [an_address(wallet)], an_address("referrer"), NOW_S - 10**6)
        await attribute(rows)
        await grow_large(rows)
        await keep_for_alice(tx)
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


async def test_a3_sums_beyond_a_column_are_exact_or_at_their_documented_bound_on_both_databases(
    databases: tuple[Database, Database],
) -> None:
    """The bound is that of standings, which are ranked by one column."""
    for database in databases:
        data, discovery = (a_reader(database, is_data=is_data) for is_data in (True, False))
        volume = Decimal((await data.get("/volume", user=WHALE))["volume"])
        assert volume == Decimal(3 * LARGE) / TOKEN
        for period in ("WEEK", "MONTH", "ALL"):
            [ranked] = await data.get(
                "/v1/leaderboard", timePeriod=period, orderBy="VOL", limit="1"
            )
            assert (ranked["rank"], ranked["vol"]) == ("1", SUM_MAX / TOKEN)
        event = await discovery.get("/events/slug/event-large")
        assert event["volume"] == event["openInterest"] == 3 * LARGE / TOKEN


@pytest.mark.parametrize("is_data", [True, False])
async def test_no_text_in_a_path_is_a_fault_of_either_database(
    databases: tuple[Database, Database], *, is_data: bool
) -> None:
    """A finding: PostgreSQL takes no NUL, which the address of a profile could have."""
    for database in databases:
        reader = a_reader(database, is_data=is_data)
        paths = (await reader.http.get("/schema/openapi.json")).json()["paths"]
        asked = [re.sub(r"{\w+}", "a%00b", path) for path in paths if "{" in path]
        assert asked
        for path in asked:
            answer = await reader.http.get(path)
            assert answer.status_code < 500, path


async def hold(_: Bytes32) -> BackingUnits:
    """Answer as a node: the contracts hold what is claimed of the small markets."""
    return BackingUnits(TOKEN)


async def owe(_: Address, keys: Sequence[tuple[Address, AssetId]]) -> list[int]:
    """Answer as a node: all that exchanges keep is the wallet's."""
    return [TOKEN + number for number, _ in enumerate(keys)]


def a_reader(database: Database, *, is_data: bool) -> Reader:
    if is_data:
        owed = OwedReader(EXCHANGES, owe)
        context = a_data_context(database, BLOBS, lambda: NOW_MS, hold, owed)
        return Reader(an_app(build_data_app, context))
    return Reader(an_app(build_discovery_app, DiscoveryContext(database, BLOBS)))


async def test_pages_of_what_is_owed_skip_nothing(databases: tuple[Database, Database]) -> None:
    """A token that two exchanges kept was on one page, for one of them only."""
    for database in databases:
        data, after = a_reader(database, is_data=True), ""
        seen: list[tuple[str, str]] = []
        while not seen or after:
            page = await data.get("/owed", user=ALICE, limit=1, after=after)
            seen += [(each["asset"], each["exchange"].lower()) for each in page["owed"]]
            after = page["next"]
        assert seen == [(str(a_token_pair("a").yes), each) for each in EXCHANGES]


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
        assert texts[0].count("\r\n") > 1


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
    requests = DATA if is_data else DISCOVERY
    for request in requests:
        answer = await one.get(request)
        assert (request, answer) == (request, await other.get(request))
        answers.append(answer)
    empty = {request for request, answer in zip(requests, answers, strict=True) if not answer}
    assert empty - EMPTY == set()


@pytest.mark.parametrize("is_data", [True, False], ids=["data", "discovery"])
async def test_texts_are_sorted_by_code_points_whatever_the_collation_of_postgres(
    databases: tuple[Database, Database],
    is_data: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The collation of the tests' own database is that of code points, so its answers say nothing."""
    reader = a_reader(databases[1], is_data=is_data)
    with recorded() as queries:
        for request in (*DATA, *EXPORTS) if is_data else DISCOVERY:
            await reader.http.get(request)
    collated = {
        sorting
        for sql, _ in queries
        for part in sql.split("ORDER BY ")[1:]
        for sorting in TEXTS_SORTED.findall(part.partition("LIMIT")[0])
    }
    assert collated == set()


@pytest.mark.parametrize("is_data", [True, False], ids=["data", "discovery"])
async def test_the_list_has_every_route_that_reads_a_table(
    fresh_database: Database,
    is_data: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    document = (
        await a_reader(fresh_database, is_data=is_data).http.get("/schema/openapi.json")
    ).json()
    asked = {request.partition("?")[0] for request in (DATA if is_data else DISCOVERY)}
    missing = {
        path
        for path in document["paths"].keys() - WITHOUT_TABLES
        if not any(re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", path), each) for each in asked)
    }
    assert missing == set()
