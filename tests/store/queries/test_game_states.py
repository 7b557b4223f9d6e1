import pytest
from tests.rigs.payloads import ABSENT
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.values import NOW_MS, NOW_S

from foretell.domain.values.instants import iso_time
from foretell.store.creation.markets import record_event
from foretell.store.database import Database
from foretell.store.queries.game_states import load_game_states, load_starting_events

pytestmark = pytest.mark.anyio


async def test_a_game_has_its_open_markets_and_its_last_payout(database: Database) -> None:
    game = a_game_event_row("game", template={})
    names = [f"game {market.market_key}" for market in game.markets]
    async with database.writing() as tx:
        await record_event(tx, game, NOW_MS)
        await record_event(tx, a_game_event_row("another", template=ABSENT), NOW_MS)
        rows = Rows(tx)
        for number, name in enumerate(names[1:]):
            await rows.resolve(name, 1, 0, NOW_S + number)

    async with database.reading() as tx:
        first, second = await load_game_states(tx, [1, 2, 3])
    assert (first.slug, first.game_id, first.open_markets) == ("event-game", "game-77", 1)
    assert first.resolved_at_s == NOW_S + len(names) - 2
    assert (second.slug, second.open_markets, second.resolved_at_s) == ("event-another", 1, None)
    assert first.details["league_slug"] == "eliteserien"


async def test_games_that_start_between_two_times_are_found_the_earliest_first(
    database: Database,
) -> None:
    async with database.writing() as tx:
        for number, start_ms in enumerate([10_000, 5_000, 20_000, 7_500]):
            start = iso_time(NOW_MS + start_ms)
            game = a_game_event_row(f"game {number}", template=ABSENT, startTime=start)
            await record_event(tx, game, NOW_MS)
        never = a_game_event_row("never", template=ABSENT, startTime=ABSENT)
        await record_event(tx, never, NOW_MS)

    async with database.reading() as tx:
        found = await load_starting_events(tx, NOW_MS + 4_000, NOW_MS + 12_000, 10)
        page = await load_starting_events(tx, NOW_MS + 4_000, NOW_MS + 12_000, 2)
    assert (found, page) == ([2, 4, 1], [2, 4])
