"""The sports channel: games that are created, start and end, and its bounds."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.payloads import ABSENT
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.trading import TradingRig
from tests.rigs.values import NOW_MS, a_word
from tests.trading.rig import Listener, expect_refusal, listening, no_connections

from foretell.domain.errors.families import Unavailable
from foretell.domain.exchange.commands import ResolveMarket
from foretell.domain.values.instants import iso_time
from foretell.store.creation.markets import record_event
from foretell.store.queries.game_states import GameState
from foretell.trading.streams import sports_channel
from foretell.trading.streams.connection import Connection
from foretell.trading.streams.sports_channel import (
    PINGS_UNANSWERED_MAX,
    game_message,
)

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000
DETAILS: dict[str, Any] = {
    "league_slug": "eliteserien",
    "start_time": iso_time(NOW_MS),
    "teams": [
        {"name": "Brann", "abbreviation": "BRA", "host_status": "home"},
        {"name": "Molde", "abbreviation": "MOL", "host_status": "away"},
    ],
}
STATE = GameState(1, "event-game", "2052711", DETAILS, open_markets=2, resolved_at_s=None)


@pytest.fixture
async def games(host: str) -> AsyncIterator[Listener]:
    async with listening(host, "/sports/ws") as listener:
        await listener.silence()
        yield listener


async def create(rig: TradingRig, name: str = "game", **fields: Any) -> list[str]:
    """Open the markets of a game, and return their names."""
    row = a_game_event_row(name, **{"template": ABSENT} | fields)
    async with rig.context.database.writing() as tx:
        await record_event(tx, row, NOW_MS)
    names = [f"{name} {market.market_key}" for market in row.markets]
    for each in names:
        await rig.open_in_memory(each)
    return names


async def resolve(rig: TradingRig, *names: str) -> None:
    for name in names:
        async with rig.context.database.writing() as tx:
            await Rows(tx, numbers=rig.numbers).resolve(name, 1, 0)
        await rig.submit(ResolveMarket(NOW_MS, a_word(name)))


async def publish(rig: TradingRig) -> None:
    context = rig.context
    while await context.streams.sports.publish(context.database, rig.clock.now_ms()):
        pass


async def test_a_game_is_published_when_it_is_created_starts_and_ends(
    rig: TradingRig, games: Listener
) -> None:
    names = await create(
        rig, startTime=iso_time(NOW_MS + HOUR_MS), template={}, sourceGameId="2052711"
    )
    assert len(names) > 1
    await publish(rig)
    created = {
        "slug": "event-game",
        "live": False,
        "ended": False,
        "gameId": 2052711,
        "leagueAbbreviation": "eliteserien",
        "homeTeam": "BRA",
        "awayTeam": "MOL",
        "status": "Scheduled",
    }
    assert await games.message() == created
    rig.clock.move(HOUR_MS - 1)
    await publish(rig)
    await games.silence()
    rig.clock.move(1)
    await publish(rig)
    assert await games.message() == created | {"status": "InProgress", "live": True}
    await resolve(rig, *names[1:])
    await publish(rig)
    await games.silence()
    await resolve(rig, names[0])
    await publish(rig)
    message = await games.message()
    assert message == created | {
        "status": "Final",
        "ended": True,
        "finishedTimestamp": iso_time(NOW_MS // 1000 * 1000),
    }
    await publish(rig)
    await games.silence()


async def test_an_event_that_is_no_game_is_not_published(rig: TradingRig, games: Listener) -> None:
    await rig.open("rain")
    await resolve(rig, "rain")
    await publish(rig)
    await games.silence()


async def test_the_loops_publish_a_game_and_send_pings(rig: TradingRig, host: str) -> None:
    streams = rig.context.streams
    async with listening(host, "/sports/ws") as games:
        await games.silence()
        loops = [
            asyncio.create_task(streams.publish_sports(rig.context.database)),
            asyncio.create_task(streams.ping_sports(0.3)),
        ]
        try:
            assert await games.text() == "ping"
            await create(rig)
            while (text := await games.text()) == "ping":
                await games.send("pong")
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
    assert '"slug":"event-game"' in text


async def test_a_game_with_a_start_soon_after_its_creation_starts(
    rig: TradingRig, games: Listener
) -> None:
    await publish(rig)
    await create(rig, startTime=iso_time(NOW_MS + 1_000))
    await publish(rig)
    assert (await games.message())["status"] == "Scheduled"
    rig.clock.move(1_000)
    await publish(rig)
    assert (await games.message())["status"] == "InProgress"


async def test_games_that_start_are_found_a_page_at_a_time(
    rig: TradingRig, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sports_channel, "GAMES_PER_QUERY_MAX", 2)
    for number in range(5):
        start = iso_time(NOW_MS + number * 10_000 + 5_000)
        await create(rig, f"game {number}", startTime=start)
    async with listening(host, "/sports/ws") as games:
        await games.silence()
        for _ in range(6):
            await publish(rig)
            rig.clock.move(10_000)
        first = [await games.message() for _ in range(2)]
        slugs = [(await games.message())["slug"] for _ in range(5)]
        await games.silence()
    assert {each["status"] for each in first} == {"Scheduled"}
    assert slugs == [f"event-game {number}" for number in range(5)]


async def test_a_new_connection_gets_the_games_of_the_day_that_have_not_ended(
    rig: TradingRig, host: str, games: Listener
) -> None:
    """Another one gets nothing a second time, and the new one gets changes after that."""
    for name, hours in (("past", -13), ("live", -2), ("soon", 11), ("later", 13)):
        await create(rig, name, startTime=iso_time(NOW_MS + hours * HOUR_MS), template={})
    over = await create(rig, "over", startTime=iso_time(NOW_MS - HOUR_MS))
    await resolve(rig, *over)
    await publish(rig)
    assert len({(await games.message())["slug"] for _ in range(5)}) == 5
    async with listening(host, "/sports/ws") as newcomer:
        await newcomer.silence()
        await publish(rig)
        found = [await newcomer.message() for _ in range(2)]
        await newcomer.silence()
        await games.silence()
        await create(rig, "another")
        await publish(rig)
        assert [(await each.message())["slug"] for each in (newcomer, games)] == [
            "event-another"
        ] * 2
    assert [(each["slug"], each["status"]) for each in found] == [
        ("event-live", "InProgress"),
        ("event-soon", "Scheduled"),
    ]


async def test_attack_h1_new_connections_get_their_games_in_turns_of_their_own(
    rig: TradingRig,
) -> None:
    """500 games for each of a thousand new streams were queued in one turn of the event loop."""
    sports, names = rig.context.streams.sports, ["one", "two", "three"]
    for name in names:
        await create(rig, name, startTime=iso_time(NOW_MS - HOUR_MS), template={})
    connections = [Connection(f"{number}") for number in range(30)]
    for each in connections:
        sports.join(each)
    publishing = asyncio.create_task(publish(rig))
    counts, before = list[int](), 0
    while not publishing.done():
        await asyncio.sleep(0)
        queued = sum(each.frames_queued for each in connections)
        counts.append(queued - before)
        before = queued
    await publishing
    for each in connections:
        sports.leave(each)
    assert [each.frames_queued for each in connections] == [len(names)] * 30
    assert max(counts) == len(names)


async def test_a_new_connection_takes_no_new_game_from_the_others(
    rig: TradingRig, host: str, games: Listener
) -> None:
    await publish(rig)
    await create(rig, startTime=iso_time(NOW_MS + HOUR_MS), template={})
    async with listening(host, "/sports/ws") as newcomer:
        await newcomer.silence()
        await publish(rig)
        assert [(await each.message())["slug"] for each in (newcomer, games)] == ["event-game"] * 2
        await newcomer.silence()


async def test_the_games_that_new_connections_get_are_known_up_to_a_bound(
    rig: TradingRig, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sports_channel, "GAMES_KNOWN_MAX", 2)
    for number in range(3):
        await create(rig, f"game {number}", startTime=iso_time(NOW_MS), template={})
    async with listening(host, "/sports/ws") as games:
        await games.silence()
        await publish(rig)
        assert len({(await games.message())["slug"] for _ in range(3)}) == 3
        assert len(rig.context.streams.sports._last_by_event) == 2


async def test_a_new_connection_waits_for_its_games_while_the_database_does_not_answer(
    rig: TradingRig, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(rig, startTime=iso_time(NOW_MS))

    def unavailable() -> Any:
        raise Unavailable("down")

    async with listening(host, "/sports/ws") as games:
        await games.silence()
        with monkeypatch.context() as patched:
            patched.setattr(rig.context.database, "reading", unavailable)
            with pytest.raises(Unavailable):
                await publish(rig)
        await publish(rig)
        assert (await games.message())["slug"] == "event-game"
        await games.silence()


async def test_a_game_waits_while_the_database_does_not_answer(
    rig: TradingRig, games: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(rig)

    def unavailable() -> Any:
        raise Unavailable("down")

    with monkeypatch.context() as patched:
        patched.setattr(rig.context.database, "reading", unavailable)
        with pytest.raises(Unavailable):
            await publish(rig)
    await publish(rig)
    assert (await games.message())["slug"] == "event-game"


async def test_a_client_that_answers_pings_stays_and_another_is_closed(
    rig: TradingRig, host: str, games: Listener
) -> None:
    async with listening(host, "/sports/ws") as silent:
        await silent.silence()
        for _ in range(PINGS_UNANSWERED_MAX + 1):
            await rig.context.streams.sports.ping()
            assert await games.text() == "ping"
            await games.send(" PONG\n")
            await games.silence()
        assert await silent.close_code() == 1008
    await games.silence()


async def test_other_messages_than_pong_are_refused(games: Listener) -> None:
    await games.send({"type": "sports"})
    await expect_refusal(games)


async def test_nothing_is_left_after_the_last_connection(rig: TradingRig, host: str) -> None:
    streams = rig.context.streams
    async with listening(host, "/sports/ws") as games:
        await games.silence()
        await create(rig)
        await publish(rig)
        assert not streams.sports.is_idle
    await no_connections(streams)
    await create(rig, "another")
    await publish(rig)
    assert (streams.sports.is_idle, len(streams.open)) == (True, 0)


async def test_the_conditions_that_wait_are_bounded(
    rig: TradingRig, games: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sports_channel, "CONDITIONS_WAITING_MAX", 1)
    await create(rig, "first")
    await create(rig, "second")
    await publish(rig)
    assert (await games.message())["slug"] == "event-second"
    await games.silence()


@pytest.mark.parametrize(
    ("changes", "now_ms", "expected"),
    [
        ({}, NOW_MS - 1, ("Scheduled", False, False)),
        ({}, NOW_MS, ("InProgress", True, False)),
        ({"open_markets": 1, "resolved_at_s": 7}, NOW_MS, ("InProgress", True, False)),
        ({"open_markets": 0, "resolved_at_s": 7}, NOW_MS, ("Final", False, True)),
        ({"open_markets": 0, "resolved_at_s": 7}, NOW_MS - 1, ("Final", False, True)),
        ({"open_markets": 0}, NOW_MS, ("InProgress", True, False)),
    ],
)
def test_a_status_follows_from_the_start_and_the_payouts(
    changes: dict[str, Any], now_ms: int, expected: tuple[str, bool, bool]
) -> None:
    message = game_message(STATE._replace(**changes), now_ms)
    assert (message.status, message.live, message.ended) == expected


@pytest.mark.parametrize("game_id", [None, "", "abc", "12a", "٣", "9" * 40])
def test_an_id_that_is_no_number_is_left_out(game_id: str | None) -> None:
    encoded = sports_channel.encoded(STATE._replace(game_id=game_id, details={}), NOW_MS)
    assert encoded == '{"slug":"event-game","live":false,"ended":false}'
