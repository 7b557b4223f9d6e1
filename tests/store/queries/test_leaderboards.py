import pytest
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows, an_event_row
from tests.rigs.values import NOW_S, TOKEN, an_address
from tests.store.queries.recorded_queries import recorded

from foretell.domain.portfolio.periods import Period
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind
from foretell.store.queries.leaderboards import (
    Ranking,
    RankingOrder,
    RankingScope,
    Win,
    load_ranking_of,
    load_rankings,
    load_wins,
)

pytestmark = pytest.mark.anyio

EVER = RankingScope(Period.ALL, None)
TODAY = RankingScope(Period.DAY, None)


async def standings(
    database: Database, scope: RankingScope, order: RankingOrder = RankingOrder.GAIN
) -> list[Ranking]:
    await keep_rankings(database)
    async with database.reading() as tx:
        return list(await load_rankings(tx, scope, order, limit=10, offset=0))


async def test_wallets_are_ranked_by_realized_and_unrealized_gain(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 60, 60)
        await rows.hold("alice", "rain", 10 * TOKEN, 4 * TOKEN, realized_units=TOKEN)
        await rows.hold("bob", "rain", 10 * TOKEN, 8 * TOKEN)
        await rows.hold("carol", "rain", 10 * TOKEN, 4 * TOKEN, is_yes=False)
        await rows.buy("carol", "rain", 10 * TOKEN, 4 * TOKEN)
        await rows.buy("carol", "rain", TOKEN, TOKEN, is_taker=False)
        await rows.buy("bob", "rain", TOKEN, TOKEN)
        await rows.act("alice", "rain", ActivityKind.SPLIT, 99 * TOKEN)
        await rows.hold("idle", "rain", 0, 0)
    alice, bob, carol = (an_address(name) for name in ("alice", "bob", "carol"))
    assert await standings(database, EVER) == [
        Ranking(1, alice, 0, 3 * TOKEN),
        Ranking(2, carol, 5 * TOKEN, 0),
        Ranking(3, bob, TOKEN, -2 * TOKEN),
    ]
    assert await standings(database, EVER, RankingOrder.VOLUME) == [
        Ranking(1, carol, 5 * TOKEN, 0),
        Ranking(2, bob, TOKEN, -2 * TOKEN),
    ]


async def test_a_single_wallet_has_its_rank_and_pages_are_disjoint(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for number in range(5):
            await rows.hold(f"trader {number}", "rain", 0, 0, realized_units=10 - number)
    await keep_rankings(database)
    async with database.reading() as tx:
        pages = [
            await load_rankings(tx, EVER, RankingOrder.GAIN, limit=2, offset=offset)
            for offset in (0, 2, 4)
        ]
        own = await load_ranking_of(tx, EVER, RankingOrder.GAIN, an_address("trader 3"))
        nobody = await load_ranking_of(tx, EVER, RankingOrder.GAIN, an_address("nobody"))
    assert [standing.rank for page in pages for standing in page] == [1, 2, 3, 4, 5]
    assert own == Ranking(4, an_address("trader 3"), 0, 7)
    assert nobody is None


async def test_only_gains_and_volumes_since_the_start_count(database: Database) -> None:
    since = NOW_S - 86_400
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow", "hail"):
            await rows.open_named(name)
        await rows.quoted_at("rain", since - 600, 40, 40)
        await rows.quote("rain", 60, 60)
        # Held all the while: gains what the price moved.
        old = {"changed_at_s": since - 900}
        await rows.hold("alice", "rain", 10 * TOKEN, 3 * TOKEN, realized_units=TOKEN, **old)
        await rows.hold("bob", "rain", 10 * TOKEN, 4 * TOKEN, **old)
        await rows.hold("dave", "snow", 10 * TOKEN, TOKEN, **old)
        await rows.hold("erin", "hail", 10 * TOKEN, TOKEN, **old)
        # Resolved before: nothing moves any more.
        await rows.resolve("snow", 1, 0, since - 60)
        await rows.buy("alice", "rain", TOKEN, TOKEN, timestamp_s=since - 1)
        await rows.buy("bob", "rain", TOKEN, 2 * TOKEN, timestamp_s=since)
        # Resolved meanwhile, and never quoted before: it counted one half.
        await rows.resolve("hail", 1, 0, since + 60)
        # Sold half of it meanwhile for 5.
        await rows.hold("bob", "rain", 5 * TOKEN, 2 * TOKEN, realized_units=3 * TOKEN)
        # New: gains whatever it gained.
        await rows.hold("carol", "rain", 10 * TOKEN, 5 * TOKEN)
    gains = {
        standing.wallet: (standing.gain_units, standing.volume_units)
        for standing in await standings(database, TODAY)
    }
    assert gains == {
        an_address("alice"): (2 * TOKEN, 0),
        an_address("bob"): (4 * TOKEN, 2 * TOKEN),
        an_address("carol"): (TOKEN, 0),
        an_address("erin"): (5 * TOKEN, 0),
    }


async def test_a_category_counts_only_its_own_events(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("rain", main_category_slug="weather"))
        await rows.open(an_event_row("vote", main_category_slug="politics"))
        for name, units in (("rain", 3), ("vote", 5)):
            await rows.hold("alice", name, 0, 0, realized_units=units)
            await rows.buy("alice", name, 2 * units, units)
    weather = RankingScope(Period.ALL, "weather")
    assert await standings(database, weather) == [Ranking(1, an_address("alice"), 3, 3)]
    async with database.reading() as tx:
        [win] = await load_wins(tx, weather, limit=10, offset=0)
    assert win.slug == "will-it-rain"


async def test_wins_are_closed_positions_with_a_gain_the_largest_first(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.prepare("elsewhere")
        await rows.hold("erin", "rain", 0, 0, realized_units=8, changed_at_s=NOW_S - 86_401)
        closed = {"bought_units": 10, "spent_units": 4}
        await rows.hold("alice", "rain", 0, 0, realized_units=6, **closed)
        await rows.hold("bob", "elsewhere", 0, 0, realized_units=7, **closed)
        await rows.hold("carol", "rain", 0, 0, realized_units=-1, **closed)
        await rows.hold("dave", "rain", 1, 0, realized_units=9)
    await keep_rankings(database)
    async with database.reading() as tx:
        today = await load_wins(tx, TODAY, limit=10, offset=0)
        second = await load_wins(tx, EVER, limit=1, offset=1)
    assert today == [
        Win(an_address("bob"), None, None, None, None, 4, 7),
        Win(an_address("alice"), "About rain", "event-rain", "will-it-rain", "icon-rain", 4, 6),
    ]
    assert [win.wallet for win in second] == [an_address("bob")]


@pytest.mark.parametrize("order", [*RankingOrder])
async def test_a_rank_is_found_with_one_statement_for_the_wallet_and_one_for_those_before_it(
    database: Database, order: RankingOrder
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for number in range(5):
            name = f"trader {number}"
            await rows.hold(name, "rain", 0, 0, realized_units=10 - number)
            await rows.buy(name, "rain", 10 - number, 10 - number)
    await keep_rankings(database)
    async with database.reading() as tx:
        with recorded() as queries:
            own = await load_ranking_of(tx, EVER, order, an_address("trader 3"))
    assert own == Ranking(4, an_address("trader 3"), 7, 7)
    assert len(queries) == 2
