"""The sports channel: the games of the day for a new connection, then games as they are created, start and end.

A game starts at the time that its creator gave, and ends when all its markets have a payout. Scores are not known
here, so messages have none. A connection subscribes to nothing, and answers pings, which are text.
"""

import asyncio
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from foretell.domain.creation.sports_types import HostStatus
from foretell.domain.errors.families import Unavailable
from foretell.domain.errors.streams import MalformedMessage
from foretell.domain.exchange.decision import Done
from foretell.domain.exchange.effects import MarketOpened, MarketResolved
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.instants import iso_time, unix_ms
from foretell.edge.parameters import ID_MAX
from foretell.engine.protocol.requests import CommittedCommand
from foretell.store.database import Database
from foretell.store.queries.game_states import (
    GAMES_PER_QUERY_MAX,
    GameState,
    load_game_states,
    load_starting_events,
)
from foretell.trading.books.market_names import MarketNames
from foretell.trading.streams.connection import CLOSE_POLICY, Connection
from foretell.trading.streams.flush_queue import in_turns

CHANNEL: Final = "sports"
PING: Final = "ping"
PONG: Final = "pong"
PINGS_UNANSWERED_MAX: Final = 6
CONDITIONS_WAITING_MAX: Final = 10_000
"""Conditions whose game is to be read; of more, the oldest are not published."""
GAMES_KNOWN_MAX: Final = 10_000
"""Games whose last message is known, so that it is not sent again."""
STARTS_WITHIN_MS: Final = 120_000
"""Games that start within this time are known by their start; they are looked for in half of it."""


ACTIVE_WITHIN_MS: Final = 12 * 3_600_000
"""A new connection gets the games whose start is no farther away, and that have not ended."""


class GameStatus(enum.StrEnum):
    """The status of a game, by its start and its markets."""

    SCHEDULED = "Scheduled"
    IN_PROGRESS = "InProgress"
    FINAL = "Final"


class GameMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A game that was created, started or ended; what its creator did not say is left out."""

    slug: str
    live: bool
    ended: bool
    game_id: int | UnsetType = UNSET
    league_abbreviation: str | UnsetType = UNSET
    home_team: str | UnsetType = UNSET
    away_team: str | UnsetType = UNSET
    status: GameStatus | UnsetType = UNSET
    finished_timestamp: str | UnsetType = UNSET


class _Welcome(NamedTuple):
    """New connections, and the messages that they got, by event."""

    connections: Collection[Connection]
    texts: Mapping[int, str]


class SportsChannel:
    """The connections, and the games that changed or are about to start."""

    def __init__(self, market_names: MarketNames) -> None:
        self._market_names = market_names
        self._pings_by_connection: dict[Connection, int] = {}
        """Pings without an answer."""
        self._newcomers: dict[Connection, None] = {}
        """Connections that have not got the games of the day yet."""
        self._waiting: dict[Bytes32, None] = {}
        self._starts_by_event: dict[int, int] = {}
        self._starts_known_until_ms = 0
        self._last_by_event: dict[int, str] = {}

    def join(self, connection: Connection) -> None:
        """Add a connection, which is subscribed to all games."""
        connection.is_subscribed = True
        self._pings_by_connection[connection] = 0
        self._newcomers[connection] = None

    def leave(self, connection: Connection) -> None:
        """Remove a connection; after the last one, nothing is kept."""
        self._pings_by_connection.pop(connection, None)
        self._newcomers.pop(connection, None)
        if not self._pings_by_connection:
            self._waiting.clear()
            self._starts_by_event.clear()
            self._last_by_event.clear()
            self._starts_known_until_ms = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is kept."""
        kept = self._pings_by_connection, self._newcomers, self._waiting
        return not any((*kept, self._starts_by_event, self._last_by_event))

    @property
    def has_waiting(self) -> bool:
        """Whether the game of a market, or those of a new connection, are to be read."""
        return bool(self._waiting or self._newcomers)

    async def handle(self, connection: Connection, text: str) -> None:
        """Take the answer to a ping, and refuse everything else."""
        if text.strip().lower() != PONG:
            connection.refuse(MalformedMessage(f"this channel takes only the text {PONG}"))
        elif connection in self._pings_by_connection:
            self._pings_by_connection[connection] = 0

    async def ping(self) -> None:
        """Send a ping to every connection, and close those that did not answer several."""
        async for connection in in_turns(list(self._pings_by_connection)):
            unanswered = self._pings_by_connection[connection]
            if unanswered >= PINGS_UNANSWERED_MAX:
                connection.close(CLOSE_POLICY)
            else:
                self._pings_by_connection[connection] = unanswered + 1
                connection.send_frame(PING)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Keep the markets that opened or resolved until their games are published."""
        if self._pings_by_connection and isinstance(committed.decision, Done):
            for effect in committed.decision.effects:
                if isinstance(effect, MarketOpened):
                    self._keep([effect.market.condition_id])
                elif isinstance(effect, MarketResolved):
                    self._keep([effect.condition_id])

    async def publish(self, database: Database, now_ms: int) -> bool:
        """Publish the games that changed or started, and return whether more wait."""
        if not self._pings_by_connection:
            return False
        welcome = await self._welcome(database, now_ms)
        taken = list(islice(self._waiting, GAMES_PER_QUERY_MAX))
        for condition_id in taken:
            del self._waiting[condition_id]
        try:
            await self._look_for_starts(database, now_ms)
            changed = await self._load(database, await self._events_of(taken))
            started = await self._load(database, self._started(now_ms))
        except Unavailable:
            self._keep(taken)
            raise
        for game in changed:
            self._note_start(game, now_ms, self._starts_known_until_ms)
        for game in started:
            self._starts_by_event.pop(game.event_id, None)
        for game in (*changed, *started):
            await self._publish(game, now_ms, welcome)
        return bool(self._waiting)

    async def _welcome(self, database: Database, now_ms: int) -> _Welcome:
        """Send the games of the day to the connections that are new, and return what they got."""
        newcomers = set(self._newcomers)
        if not newcomers:
            return _Welcome(newcomers, {})
        from_ms, until_ms = now_ms - ACTIVE_WITHIN_MS, now_ms + ACTIVE_WITHIN_MS
        async with database.reading() as tx:
            found = await load_starting_events(tx, from_ms, until_ms, GAMES_PER_QUERY_MAX)
            games = await load_game_states(tx, found)
        texts = {game.event_id: encoded(game, now_ms) for game in games if not game_has_ended(game)}
        if self._pings_by_connection.keys() <= set(
            newcomers
        ):  # others may not know these games yet
            for event_id, text in texts.items():
                self._know(event_id, text)
        for connection in newcomers:
            if self._newcomers.pop(connection, connection) is None:  # it is still connected
                for text in texts.values():
                    connection.send_frame(text)
                await asyncio.sleep(0)  # the loop turns between two of them
        return _Welcome(newcomers, texts)

    def _keep(self, condition_ids: Iterable[Bytes32]) -> None:
        for condition_id in condition_ids:
            self._waiting[condition_id] = None
            if len(self._waiting) > CONDITIONS_WAITING_MAX:
                del self._waiting[next(iter(self._waiting))]

    async def _events_of(self, condition_ids: Sequence[Bytes32]) -> list[int]:
        await self._market_names.load(condition_ids)
        found = map(self._market_names.find, condition_ids)
        return list(dict.fromkeys(each.event_id for each in found if each is not None))

    async def _load(self, database: Database, event_ids: Sequence[int]) -> Sequence[GameState]:
        if not event_ids:
            return ()
        async with database.reading() as tx:
            return await load_game_states(tx, event_ids)

    def _started(self, now_ms: int) -> list[int]:
        due = (each for each, at_ms in self._starts_by_event.items() if at_ms <= now_ms)
        return list(islice(due, GAMES_PER_QUERY_MAX))

    async def _look_for_starts(self, database: Database, now_ms: int) -> None:
        """Read the games that start soon, so that most steps read none."""
        until_ms = now_ms + STARTS_WITHIN_MS
        if self._starts_known_until_ms > now_ms + STARTS_WITHIN_MS // 2:
            return
        from_ms = self._starts_known_until_ms or now_ms
        async with database.reading() as tx:
            found = await load_starting_events(tx, from_ms, until_ms, GAMES_PER_QUERY_MAX)
            games = await load_game_states(tx, found)
        starts = [self._note_start(game, from_ms, until_ms) for game in games]
        is_whole = len(found) < GAMES_PER_QUERY_MAX
        self._starts_known_until_ms = until_ms if is_whole else max(from_ms + 1, *starts)

    def _note_start(self, game: GameState, after_ms: int, until_ms: int) -> int:
        """Keep the start of a game if it is between two times, and return it."""
        starts_at_ms = _starts_at_ms(game.details) or 0
        if after_ms < starts_at_ms <= until_ms and len(self._starts_by_event) < GAMES_KNOWN_MAX:
            self._starts_by_event[game.event_id] = starts_at_ms
        return starts_at_ms

    async def _publish(self, game: GameState, now_ms: int, welcome: _Welcome) -> None:
        text = encoded(game, now_ms)
        has_it = welcome.connections if welcome.texts.get(game.event_id) == text else ()
        if self._last_by_event.pop(game.event_id, None) != text:
            async for connection in in_turns(list(self._pings_by_connection)):
                if connection not in has_it:
                    connection.send_frame(text)
        if self._pings_by_connection:
            self._know(game.event_id, text)

    def _know(self, event_id: int, text: str) -> None:
        """Keep the last message about a game, which every connection has got."""
        self._last_by_event[event_id] = text
        if len(self._last_by_event) > GAMES_KNOWN_MAX:
            del self._last_by_event[next(iter(self._last_by_event))]


def encoded(game: GameState, now_ms: int) -> str:
    """Return the text of the message about a game at this time."""
    return msgspec.json.encode(game_message(game, now_ms)).decode()


def game_message(game: GameState, now_ms: int) -> GameMessage:
    """Return the message about a game at this time."""
    starts_at_ms = _starts_at_ms(game.details)
    has_started = starts_at_ms is not None and starts_at_ms <= now_ms
    has_ended = game_has_ended(game)
    status: GameStatus | UnsetType = UNSET
    if has_ended:
        status = GameStatus.FINAL
    elif starts_at_ms is not None:
        status = GameStatus.IN_PROGRESS if has_started else GameStatus.SCHEDULED
    ended_at_s = game.resolved_at_s or 0
    return GameMessage(
        slug=game.slug,
        live=has_started and not has_ended,
        ended=has_ended,
        game_id=_number(game.game_id),
        league_abbreviation=game.details.get("league_slug", UNSET),
        home_team=_team(game.details, HostStatus.HOME),
        away_team=_team(game.details, HostStatus.AWAY),
        status=status,
        finished_timestamp=iso_time(ended_at_s * 1_000) if has_ended else UNSET,
    )


def game_has_ended(game: GameState) -> bool:
    """Return whether all markets of a game have a payout."""
    return not game.open_markets and game.resolved_at_s is not None


def _starts_at_ms(details: Any) -> int | None:
    text = details.get("start_time")
    return None if text is None else unix_ms(datetime.fromisoformat(text))


def _team(details: Any, side: HostStatus) -> str | UnsetType:
    """Return the abbreviation of the team of a side."""
    teams = details.get("teams", ())
    named = (each["abbreviation"] for each in teams if each["host_status"] == side)
    return next(named, UNSET)


def _number(text: str | None) -> int | UnsetType:
    """Return a game's id if it is a number: clients read no other."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) >= len(str(ID_MAX)):
        return UNSET
    return int(text)
