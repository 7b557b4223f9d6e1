"""The details of a game: its source, league, day, teams and stream.

A provider with an id of the event or the game is enough to find the rest later. Without one, the
league, the day and the teams must be given.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from foretell.domain.creation.sports_fields import (
    objects,
    optional_date,
    optional_key,
    optional_share,
    optional_slug,
    optional_text,
)
from foretell.domain.creation.sports_types import EventVariant, HostStatus, Section, SportsTeam
from foretell.domain.creation.text_limits import LABEL_CHARS_MAX, OUTCOME_CHARS_MAX
from foretell.domain.values.document_fields import Fields

PROVIDER_CHARS_MAX: Final = 64
SOURCE_ID_CHARS_MAX: Final = 128
ABBREVIATION_CHARS_MAX: Final = 16
TEAMS: Final = 2


@dataclass(frozen=True, slots=True)
class SportsDetails:
    """All that a sports payload says of its game; the home team is the first."""

    section: Section
    event_variant: EventVariant
    source_provider: str | None
    source_event_id: str | None
    source_game_id: str | None
    source_league_id: str | None
    source_league_label: str | None
    source_match_confidence: Decimal | None
    livestream_url: str | None
    sport_slug: str | None
    league_slug: str | None
    event_date: str | None
    starts_at_ms: int | None
    teams: tuple[SportsTeam, ...]

    @property
    def has_source(self) -> bool:
        """Whether a provider knows the game."""
        has_id = bool(self.source_event_id or self.source_game_id)
        return self.source_provider is not None and has_id


def read_details(fields: Fields) -> SportsDetails:
    """Return the details in the fields of `sports`; problems are recorded."""
    details = SportsDetails(
        section=_section(fields),
        event_variant=_event_variant(fields),
        source_provider=optional_key(fields, "sourceProvider", PROVIDER_CHARS_MAX),
        source_event_id=optional_text(fields, "sourceEventId", SOURCE_ID_CHARS_MAX),
        source_game_id=optional_text(fields, "sourceGameId", SOURCE_ID_CHARS_MAX),
        source_league_id=optional_text(fields, "sourceLeagueId", SOURCE_ID_CHARS_MAX),
        source_league_label=optional_text(fields, "sourceLeagueLabel", LABEL_CHARS_MAX),
        source_match_confidence=optional_share(fields, "sourceMatchConfidence"),
        livestream_url=fields.url("livestreamUrl"),
        sport_slug=optional_slug(fields, "sportSlug"),
        league_slug=optional_slug(fields, "leagueSlug"),
        event_date=optional_date(fields, "eventDate"),
        starts_at_ms=fields.instant_ms("startTime") if fields.has("startTime") else None,
        teams=_teams(fields),
    )
    _check_source(fields, details)
    return details


def check_full(fields: Fields, needed_for: str) -> None:
    """Refuse absent teams, day or start time, which a template's questions name."""
    for name in ("teams", "eventDate", "startTime"):
        if not fields.has(name):
            fields.refuse(name, f"is required for {needed_for}")


def _section(fields: Fields) -> Section:
    if not fields.has("section"):
        return Section.GAMES
    section = fields.choice("section", {str(each): str(each) for each in Section})
    return Section(section or Section.GAMES)


def _event_variant(fields: Fields) -> EventVariant:
    if not fields.has("eventVariant"):
        return EventVariant.STANDARD
    variant = fields.choice("eventVariant", {str(each): str(each) for each in EventVariant})
    return EventVariant(variant or EventVariant.STANDARD)


def _check_source(fields: Fields, details: SportsDetails) -> None:
    """Refuse ids without their provider, and a game without a source or its own details."""
    has_id = fields.has("sourceEventId") or fields.has("sourceGameId")
    if has_id and not fields.has("sourceProvider"):
        fields.refuse("sourceProvider", "is required with sourceEventId or sourceGameId")
    if fields.has("sourceProvider") and has_id:
        return
    for name in ("leagueSlug", "eventDate", "teams"):
        if not fields.has(name) and not details.has_source:
            fields.refuse(
                name, "is required without sourceProvider and its sourceEventId or sourceGameId"
            )


def _teams(fields: Fields) -> tuple[SportsTeam, ...]:
    """Return the home and the away team, or none."""
    if not fields.has("teams"):
        return ()
    problems = len(fields.problems)
    teams = [_team(each) for each in objects(fields, "teams", TEAMS)]
    by_side = {team.host_status: team for team in teams if team is not None}
    if len(fields.problems) > problems:
        return ()
    if len(by_side) < TEAMS:
        fields.refuse("teams", "must be exactly one home team and one away team")
        return ()
    home, away = by_side[HostStatus.HOME], by_side[HostStatus.AWAY]
    if home.name.casefold() == away.name.casefold():
        fields.refuse("teams", "must have different names")
    return (home, away)


def _team(fields: Fields) -> SportsTeam | None:
    name = fields.text("name", OUTCOME_CHARS_MAX)
    abbreviation = fields.text("abbreviation", ABBREVIATION_CHARS_MAX)
    side = fields.choice("host_status", {str(each): str(each) for each in HostStatus})
    logo = fields.url("logo")
    return None if side is None else SportsTeam(name, abbreviation, HostStatus(side), logo)
