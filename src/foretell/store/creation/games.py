"""The game of an event, and the sport, the series and the teams that it names first or again.

A sport, a series or a team keeps what the first event said of it, so that a later creator cannot
change it for others; only a logo that was missing is added. Written by creation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa

from foretell.domain.creation.sports import SportsEvent
from foretell.domain.creation.sports_metadata import event_document, game_id
from foretell.domain.creation.sports_types import SportsMarket, SportsTeam
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.creation.ids import next_id
from foretell.store.database import Transaction
from foretell.store.tables import (
    event_tags,
    markets,
    series,
    sport_tags,
    sports,
    sports_events,
    sports_markets,
    teams,
)

_NUMBERS: Final = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True)
class GameRow:
    """The sports part of an event; its markets are in the order of the event's.

    `logos` are storage ids or links, by side; a market that is no sports market is None.
    """

    event: SportsEvent
    logos: Mapping[str, str]
    markets: tuple[SportsMarket | None, ...]
    slug: str
    image: str
    resolution_source: str | None


async def record_game(
    tx: Transaction, game: GameRow, event_id: int, market_ids: Sequence[int], now_ms: int
) -> None:
    """Store the game of an event that opens, with its markets; the event has its tags."""
    details = game.event.details
    sport_id = await _record_sport(tx, game, now_ms)
    if sport_id is not None:
        await _record_sport_tags(tx, sport_id, event_id)
    series_id = await _record_series(tx, game, sport_id, now_ms)
    for team in details.teams:
        logo = game.logos.get(team.host_status, "")
        await _record_team(tx, details.league_slug or "", team, logo, now_ms)
    document = event_document(game.event, game.slug, game.logos)
    await tx.execute(
        sports_events.insert().values(
            event_id=event_id,
            sport_id=sport_id,
            series_id=series_id,
            game_id=game_id(details),
            details=msgspec.json.decode(_NUMBERS.encode(document)),
        )
    )
    rows = [
        _market_values(market, market_id)
        for market, market_id in zip(game.markets, market_ids, strict=True)
        if market is not None
    ]
    if rows:
        await tx.execute(sports_markets.insert(), rows)


class SportsCondition(NamedTuple):
    """A sports market's number, and its condition."""

    market_id: int
    condition_id: Bytes32


async def load_sports_conditions(
    tx: Transaction, after_market: int, limit: int
) -> Sequence[SportsCondition]:
    """Return the next sports markets after one, in their order."""
    joined = sports_markets.join(markets, sports_markets.c.market_id == markets.c.market_id)
    rows = await tx.all(
        sa.select(sports_markets.c.market_id, markets.c.condition_id)
        .select_from(joined)
        .where(sports_markets.c.market_id > after_market)
        .order_by(sports_markets.c.market_id)
        .limit(limit)
    )
    return [SportsCondition._make(row) for row in rows]


def _market_values(market: SportsMarket, market_id: int) -> dict[str, Any]:
    return {
        "market_id": market_id,
        "market_type": market.market_type,
        "line": None if market.line is None else f"{market.line:f}",
        "group_item_title": market.group_item_title,
        "group_item_threshold": market.group_item_threshold,
    }


async def _record_sport(tx: Transaction, game: GameRow, now_ms: int) -> int | None:
    """Return the id of the game's sport, which is new or known; None without one."""
    slug = game.event.details.sport_slug
    if slug is None:
        return None
    known = await tx.first(sa.select(sports.c.sport_id).where(sports.c.slug == slug))
    if known is not None:
        return int(known.sport_id)
    sport_id = await next_id(tx, sports.c.sport_id)
    await tx.execute(
        sports.insert().values(
            sport_id=sport_id,
            slug=slug,
            image=game.image,
            resolution_source=game.resolution_source,
            created_at_ms=now_ms,
        )
    )
    return sport_id


async def _record_sport_tags(tx: Transaction, sport_id: int, event_id: int) -> None:
    """Add the tags of an event to those of its sport."""
    of_event = sa.select(event_tags.c.tag_id).where(event_tags.c.event_id == event_id)
    for row in await tx.all(of_event):
        await tx.insert_new(sport_tags, sport_id=sport_id, tag_id=row.tag_id)


async def _record_series(
    tx: Transaction, game: GameRow, sport_id: int | None, now_ms: int
) -> int | None:
    """Return the id of the series of the game's league; None without a league."""
    details = game.event.details
    if details.league_slug is None:
        return None
    known = await tx.first(
        sa.select(series.c.series_id).where(series.c.slug == details.league_slug)
    )
    if known is not None:
        await tx.execute(
            series.update()
            .where(series.c.series_id == known.series_id)
            .values(updated_at_ms=now_ms, sport_id=sa.func.coalesce(series.c.sport_id, sport_id))
        )
        return int(known.series_id)
    series_id = await next_id(tx, series.c.series_id)
    await tx.execute(
        series.insert().values(
            series_id=series_id,
            slug=details.league_slug,
            title=details.source_league_label or details.league_slug,
            image=game.image,
            sport_id=sport_id,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
    )
    return series_id


async def _record_team(
    tx: Transaction, league_slug: str, team: SportsTeam, logo: str, now_ms: int
) -> None:
    """Store a team of a league, or add the logo that a known one lacks."""
    is_it = (teams.c.league_slug == league_slug) & (teams.c.name == team.name)
    known = await tx.first(sa.select(teams.c.logo).where(is_it))
    if known is not None:
        if logo and not known.logo:
            await tx.execute(teams.update().where(is_it).values(logo=logo, updated_at_ms=now_ms))
        return
    await tx.execute(
        teams.insert().values(
            team_id=await next_id(tx, teams.c.team_id),
            league_slug=league_slug,
            name=team.name,
            abbreviation=team.abbreviation,
            logo=logo,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
    )
