"""Pages of one side must not visit more rows when the history grows, however few traded that side."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from typing import Final

import pytest
import sqlalchemy as sa
from tests.rigs.applications import an_app
from tests.rigs.postgres import PostgresServer
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.store.queries.grown import FILLS, GROWTH_MAX, Grown
from tests.store.queries.recorded_queries import postgres_plans, recorded

from foretell.bench.rigs.reads.history import NOW_S, History, HistoryPlan, a_condition
from foretell.data.routes import build_app
from foretell.store.database import Database
from foretell.store.index.activity_roles import role_of
from foretell.store.scratch import analyze
from foretell.store.tables import activities

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("grown")]  # both histories are made once

SOME: Final = tuple(a_condition(number) for number in (1, 5, 9))
ROWS_VISITED_MAX: Final = 500
REMOVED: Final = re.compile(r"Rows Removed by Filter: (\d+)")
RETURNED: Final = re.compile(r"actual rows=([\d.]+) loops=(\d+)")
BUY_MADE, SELL_MADE, BUY_TAKEN = (
    role_of("TRADE", side, is_taker=is_taker)
    for side, is_taker in (("BUY", False), ("SELL", False), ("BUY", True))
)

READS_OF_SIDES: Final = {
    "sells": "/trades?side=SELL&limit=10",
    "sells of makers, too": "/trades?side=SELL&limit=10&takerOnly=false",
    "sells before a time": f"/trades?side=SELL&limit=10&end={NOW_S}",
    "sells of a span": f"/trades?side=SELL&limit=10&start=1000&end={NOW_S}",
    "sells in a market": "/trades?market=MARKET&side=SELL&limit=10",
    "all sells in a market": "/trades?market=MARKET&side=SELL&limit=10&takerOnly=false",
    "sells in some markets": f"/trades?market={','.join(SOME)}&side=SELL&limit=2",
    "all sells in some markets": (
        f"/trades?market={','.join(SOME)}&side=SELL&limit=2&takerOnly=false"
    ),
    "sells of an amount": "/trades?side=SELL&filterType=CASH&filterAmount=1&limit=10",
    "all sells of an amount": (
        "/trades?side=SELL&filterType=CASH&filterAmount=1&limit=10&takerOnly=false"
    ),
    "sells of a wallet": "/trades?user=WHALE&side=SELL&limit=10",
    "all sells of a wallet": "/trades?user=WHALE&side=SELL&limit=10&takerOnly=false",
    "sells of a wallet in a market": "/trades?user=WHALE&market=MARKET&side=SELL&limit=10",
    "sells of a wallet of an amount": (
        "/trades?user=WHALE&side=SELL&filterType=CASH&filterAmount=1&limit=10"
    ),
    "acts of a wallet by side": "/activity?user=WHALE&side=SELL&limit=10",
    "acts of a wallet by side and type": "/activity?user=WHALE&type=TRADE&side=SELL&limit=10",
    "acts of a wallet by side and time": f"/activity?user=WHALE&side=SELL&limit=10&end={NOW_S}",
    "acts of a wallet by side in some markets": (
        f"/activity?user=WHALE&market={','.join(SOME)}&side=SELL&limit=10"
    ),
    "largest sells of a wallet": "/activity?user=WHALE&side=SELL&sortBy=CASH&limit=10",
    "largest sizes that a wallet sold": "/activity?user=WHALE&side=SELL&sortBy=TOKENS&limit=10",
}
"""A page of one side: tested where nobody sold anything, too."""


@pytest.fixture(scope="module")
async def bought(
    grown: tuple[Grown, Grown], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Grown, Grown]]:
    """The two histories, in which all takers and the wallet that trades most bought, and nobody else."""
    folder = tmp_path_factory.mktemp("bought")
    both: list[Grown] = []
    for each in grown:
        copy = Grown(folder / each.path.name, each.history.fills)
        with sqlite3.connect(each.path) as connection:
            connection.execute("VACUUM INTO ?", (str(copy.path),))
        await sell_as_makers(copy.database, copy.history.names.whale)
        await analyze(copy.database)
        both.append(copy)
    yield both[0], both[1]
    for copy in both:
        await copy.database.close()


async def sell_as_makers(database: Database, whale: str) -> None:
    """Have makers sell what takers buy; the wallet that trades most sells nothing."""
    is_sold = sa.and_(~activities.c.is_taker, activities.c.wallet != whale)
    side = sa.case((is_sold, "SELL"), else_="BUY")
    role = sa.case((activities.c.is_taker, BUY_TAKEN), (is_sold, SELL_MADE), else_=BUY_MADE)
    async with database.writing() as tx:
        await tx.execute(activities.update().values(side=side, role=role))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("path", READS_OF_SIDES.values(), ids=READS_OF_SIDES.keys())
async def test_a_rare_side_takes_no_more_steps_when_the_history_is_ten_times_as_long(
    bought: tuple[Grown, Grown], path: str
) -> None:
    """A finding: a page of a side that few traded passed over the trades of the other side."""
    steps: list[int] = []
    for each in bought:
        names = each.history.names
        asked = path.replace("WHALE", names.whale).replace("MARKET", names.condition_id)
        with recorded() as queries:
            answer = await each.reader.get(asked)
        assert isinstance(answer, list)
        assert bool(answer) == ("takerOnly=false" in path and "WHALE" not in path)
        assert each.scanned(queries) == []
        steps.append(each.steps(queries))
    assert steps[0] > 0
    assert steps[1] <= GROWTH_MAX * steps[0], steps


@pytest.fixture(scope="module")
async def bought_on_postgres(postgres: PostgresServer) -> AsyncIterator[Database]:
    """The long history on PostgreSQL, in which takers only bought."""
    await asyncio.to_thread(postgres.empty_database)
    async with Database(postgres.database_url) as database:
        history = History(HistoryPlan(FILLS[1], wallets=100, markets=20))
        await history.write(database)
        await sell_as_makers(database, history.names.whale)
        await analyze(database)
        yield database


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("path", READS_OF_SIDES.values(), ids=READS_OF_SIDES.keys())
async def test_a_rare_side_visits_few_rows_of_postgres(
    bought_on_postgres: Database, path: str
) -> None:
    """The finding above, on the other database: rows that are read and not returned, and no table read whole."""
    names = History(HistoryPlan(2, wallets=100, markets=20)).names
    context = a_data_context(bought_on_postgres, BLOBS, lambda: NOW_S * 1000)
    asked = path.replace("WHALE", names.whale).replace("MARKET", names.condition_id)
    with recorded() as queries:
        await Reader(an_app(build_app, context)).get(asked)
    of_acts = [query for query in queries if "FROM activities" in query[0]]
    plans = await postgres_plans(bought_on_postgres, of_acts, is_run=True)
    assert plans
    visited = sum(visited_rows(line) for line in plans)
    assert visited <= ROWS_VISITED_MAX, plans


def visited_rows(line: str) -> int:
    """Return the rows that a line of a plan that was run read of activities, or passed over."""
    if found := REMOVED.search(line):
        return int(found[1])
    found = RETURNED.search(line) if " on activities" in line else None
    return int(float(found[1])) * int(found[2]) if found else 0
