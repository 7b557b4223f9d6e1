"""The sports part of a market's public document: the game, and the market's place in it."""

from collections.abc import Mapping
from typing import Any

from foretell.domain.creation.sports import SportsEvent
from foretell.domain.creation.sports_details import SportsDetails
from foretell.domain.creation.sports_template import SportsTemplate
from foretell.domain.creation.sports_types import SportsMarket, SportsTeam
from foretell.domain.values.instants import iso_time


def sports_document(
    event: SportsEvent, slug: str, market: SportsMarket | None, logos: Mapping[str, str]
) -> dict[str, Any]:
    """Return the document of a game, and of one of its markets; absent values are left out.

    `logos` are storage ids or links, by side.
    """
    game = event_document(event, slug, logos)
    shared = ("event_slug", "game_id", "teams")
    kept = {name: value for name, value in game.items() if name in shared or "source_" in name}
    if market is None:
        return {"event": game}
    start = {"game_start_time": game["start_time"]} if "start_time" in game else {}
    return {"event": game, "market": kept | start | _market(market)}


def event_document(event: SportsEvent, slug: str, logos: Mapping[str, str]) -> dict[str, Any]:
    """Return the document of a game."""
    details = event.details
    starts_at_ms = details.starts_at_ms
    return _present(
        {
            "slug": slug,
            "event_slug": slug,
            "section": details.section,
            "event_variant": details.event_variant,
            "event_id": details.source_event_id,
            "game_id": game_id(details),
            "source_provider": details.source_provider,
            "source_event_id": details.source_event_id,
            "source_game_id": details.source_game_id,
            "source_league_id": details.source_league_id,
            "source_league_label": details.source_league_label,
            "source_match_confidence": details.source_match_confidence,
            "livestream_url": details.livestream_url,
            "sport_slug": details.sport_slug,
            "league_slug": details.league_slug,
            "series_slug": details.league_slug,
            "league_label": details.source_league_label,
            "event_date": details.event_date,
            "start_time": None if starts_at_ms is None else iso_time(starts_at_ms),
            "teams": [_team(team, logos) for team in details.teams] or None,
            "template": None if event.template is None else _template(event.template),
        }
    )


def game_id(details: SportsDetails) -> str | None:
    """Return the provider's id of the game, else that of its event."""
    return details.source_game_id or details.source_event_id


def _team(team: SportsTeam, logos: Mapping[str, str]) -> dict[str, Any]:
    return _present(
        {
            "name": team.name,
            "abbreviation": team.abbreviation,
            "host_status": team.host_status,
            "logo": logos.get(team.host_status),
        }
    )


def _template(template: SportsTemplate) -> dict[str, Any]:
    return {
        "include_draw": template.include_draw,
        "include_both_teams_to_score": template.include_both_teams_to_score,
        "include_spreads": template.include_spreads,
        "include_totals": template.include_totals,
        "spread_lines": template.spread_lines,
        "total_lines": template.total_lines,
    }


def _market(market: SportsMarket) -> dict[str, Any]:
    return _present(
        {
            "id": market.key,
            "sports_market_type": market.market_type,
            "line": market.line,
            "icon_asset_key": market.icon_asset_key,
            "group_item_title": market.group_item_title or market.title,
            "group_item_threshold": market.group_item_threshold,
            "player_name": market.player_name,
        }
    )


def _present(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}
