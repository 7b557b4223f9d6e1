"""Rendering of games, and of the sports, series and teams that they name."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from msgspec import UNSET, UnsetType

from foretell.discovery import responses
from foretell.domain.values.instants import iso_time
from foretell.edge.parameters import ID_MAX
from foretell.edge.rendering import amount, blob_url
from foretell.store.queries.catalog import CatalogMarket
from foretell.store.queries.games import CatalogGame, CatalogSeries, CatalogSport, CatalogTeam

_DETAILS: Final = (
    "section",
    "event_variant",
    "sport_slug",
    "league_slug",
    "league_label",
    "source_provider",
    "source_event_id",
    "source_game_id",
    "source_league_id",
    "source_match_confidence",
    "livestream_url",
)


def game_fields(game: CatalogGame | None, blob_base_url: str) -> dict[str, Any]:
    """Return the fields of an event that its game adds."""
    if game is None:
        return {}
    details = game.details
    return {
        "series": _series_of(game, blob_base_url),
        "series_slug": _present(game.series_slug),
        "event_date": details.get("event_date", UNSET),
        "start_time": details.get("start_time", UNSET),
        "game_id": _number(game.game_id),
        "teams": _teams(details.get("teams"), blob_base_url),
        "event_metadata": responses.EventMetadata(
            **{name: details[name] for name in _DETAILS if name in details}
        ),
    }


def sports_fields(market: CatalogMarket, game: CatalogGame | None) -> dict[str, Any]:
    """Return the fields of a market that its event's game, and its own sports part, add."""
    fields: dict[str, Any] = {}
    if game is not None:
        fields["game_id"] = _present(game.game_id)
        fields["game_start_time"] = game.details.get("start_time", UNSET)
    if market.sports is not None:
        sports = market.sports
        fields["sports_market_type"] = _present(sports.market_type)
        fields["line"] = UNSET if sports.line is None else Decimal(sports.line)
        fields["group_item_title"] = sports.group_item_title or market.title
        fields["group_item_threshold"] = _present(sports.group_item_threshold)
    return fields


def render_series(
    series: CatalogSeries,
    blob_base_url: str,
    events: Sequence[responses.Event] | None = None,
) -> responses.SeriesResponse:
    """Return the answer for a series, with its events if they are given."""
    image = blob_url(blob_base_url, series.image)
    return responses.SeriesResponse(
        id=str(series.series_id),
        ticker=series.slug,
        slug=series.slug,
        title=series.title,
        image=image,
        icon=image,
        closed=series.is_closed,
        volume=amount(series.volume_units),
        created_at=iso_time(series.created_at_ms),
        updated_at=iso_time(series.updated_at_ms),
        events=UNSET if events is None else list(events),
    )


def render_sport(sport: CatalogSport, blob_base_url: str) -> responses.Sport:
    """Return the answer for a sport."""
    return responses.Sport(
        id=sport.sport_id,
        sport=sport.slug,
        image=blob_url(blob_base_url, sport.image),
        resolution=sport.resolution_source or "",
        tags=",".join(map(str, sport.tag_ids)),
        series=",".join(map(str, sport.series_ids)),
        created_at=iso_time(sport.created_at_ms),
    )


def render_team(team: CatalogTeam, blob_base_url: str) -> responses.Team:
    """Return the answer for a team."""
    return responses.Team(
        id=team.team_id,
        name=team.name,
        league=team.league_slug,
        logo=blob_url(blob_base_url, team.logo),
        abbreviation=team.abbreviation,
        created_at=iso_time(team.created_at_ms),
        updated_at=iso_time(team.updated_at_ms),
    )


def _series_of(game: CatalogGame, blob_base_url: str) -> list[responses.SeriesResponse]:
    """Return the series of a game without the sums over its events."""
    if game.series_id is None:
        return []
    image = blob_url(blob_base_url, game.series_image or "")
    return [
        responses.SeriesResponse(
            id=str(game.series_id),
            ticker=game.series_slug or "",
            slug=game.series_slug or "",
            title=game.series_title or "",
            image=image,
            icon=image,
            created_at=iso_time(game.series_created_at_ms or 0),
            updated_at=iso_time(game.series_updated_at_ms or 0),
        )
    ]


def _teams(
    teams: Sequence[dict[str, str]] | None, blob_base_url: str
) -> list[responses.EventTeam] | UnsetType:
    if teams is None:
        return UNSET
    return [
        responses.EventTeam(
            name=team["name"],
            abbreviation=team["abbreviation"],
            host_status=team["host_status"],
            logo=blob_url(blob_base_url, team["logo"]) if "logo" in team else UNSET,
        )
        for team in teams
    ]


def _number(text: str | None) -> int | UnsetType:
    """Return an id that is a number; clients read the game's id of an event as one."""
    is_number = text is not None and text.isascii() and text.isdigit()
    number = int(text) if is_number and text is not None and len(text) < len(str(ID_MAX)) else None
    return UNSET if number is None else number


def _present(text: str | None) -> str | UnsetType:
    return UNSET if text is None else text
