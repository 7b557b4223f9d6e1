"""The words of sports payloads: sections, variants, sides, and types of markets.

A type of market that is not in the table is accepted: it has the outcomes Yes and No.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

MARKET_TYPE_CHARS_MAX: Final = 64
MONEYLINE: Final = "moneyline"
SPREADS: Final = "spreads"
TOTALS: Final = "totals"
BOTH_TEAMS_TO_SCORE: Final = "both_teams_to_score"

YES_NO: Final = ("Yes", "No")
OVER_UNDER: Final = ("Over", "Under")
ODD_EVEN: Final = ("Odd", "Even")
HOME_AWAY: Final = ("Home", "Away")
"""The outcomes of a market between two teams whose names are unknown."""

_SNAKE_CASE: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*\Z")


class Section(enum.StrEnum):
    """The part of a sports page that shows an event."""

    GAMES = "games"
    PROPS = "props"


class EventVariant(enum.StrEnum):
    """The part of a game that an event covers; only the standard one has a template."""

    STANDARD = "standard"
    MORE_MARKETS = "more_markets"
    EXACT_SCORE = "exact_score"
    HALFTIME_RESULT = "halftime_result"
    CUSTOM = "custom"


class HostStatus(enum.StrEnum):
    """The side of a team."""

    HOME = "home"
    AWAY = "away"


class StatType(enum.StrEnum):
    """What a player's prop counts."""

    POINTS = "points"
    REBOUNDS = "rebounds"
    ASSISTS = "assists"
    RECEIVING_YARDS = "receiving_yards"
    RUSHING_YARDS = "rushing_yards"


TYPE_BY_VARIANT: Final[Mapping[EventVariant, str]] = MappingProxyType(
    {
        EventVariant.EXACT_SCORE: "soccer_exact_score",
        EventVariant.HALFTIME_RESULT: "soccer_halftime_result",
    }
)
"""The type of a market that names none."""

PROP_VARIANTS: Final = frozenset({EventVariant.STANDARD, EventVariant.CUSTOM})

_TYPES_OF_SIDES: Final = frozenset(
    {
        "moneyline",
        "child_moneyline",
        "spreads",
        "first_half_moneyline",
        "first_half_spreads",
        "tennis_first_set_winner",
        "tennis_set_handicap",
        "cricket_toss_winner",
        "map_handicap",
        "kill_handicap_match",
        "kill_most_2_way_match",
        "drake_most_2_way_match",
        "nashor_most_2_way_match",
        "tower_most_2_way_match",
        "inhibitor_most_2_way_match",
        "drake_handicap_match",
        "tower_handicap_match",
        "inhibitor_handicap_match",
    }
)
_TYPES_OF_TOTALS: Final = frozenset(
    {
        "totals",
        "team_totals",
        "first_half_totals",
        "tennis_match_totals",
        "tennis_first_set_totals",
        "tennis_set_totals",
        "kill_over_under_game",
        "points",
        "rebounds",
        "assists",
        "receiving_yards",
        "rushing_yards",
    }
)
_TYPES_OF_PARITY: Final = frozenset(
    {"cs2_odd_even_total_kills", "cs2_odd_even_total_rounds", "lol_odd_even_total_kills"}
)


@dataclass(frozen=True, slots=True)
class SportsTeam:
    """A team of a game; `logo` is a link, and without one the logo was uploaded."""

    name: str
    abbreviation: str
    host_status: HostStatus
    logo: str | None = None


@dataclass(frozen=True, slots=True)
class SportsMarket:
    """One market of a sports event; the first outcome is the one that Yes stands for.

    `slug` is the market's own part of its slug. `icon_asset_key` names a side or an uploaded image.
    """

    key: str
    slug: str
    question: str
    title: str
    short_title: str
    outcomes: tuple[str, str]
    market_type: str | None
    line: Decimal | None = None
    icon_asset_key: str | None = None
    group_item_title: str | None = None
    group_item_threshold: str | None = None
    player_name: str | None = None


def is_market_type(text: str) -> bool:
    """Return whether a text can name a type of market: words of a to z and digits, joined by _."""
    return len(text) <= MARKET_TYPE_CHARS_MAX and _SNAKE_CASE.match(text) is not None


def default_outcomes(market_type: str | None, teams: tuple[SportsTeam, ...]) -> tuple[str, str]:
    """Return the outcomes of a market that names none."""
    if market_type in _TYPES_OF_SIDES:
        return (teams[0].name, teams[1].name) if len(teams) == len(HOME_AWAY) else HOME_AWAY
    if market_type in _TYPES_OF_TOTALS:
        return OVER_UNDER
    return ODD_EVEN if market_type in _TYPES_OF_PARITY else YES_NO


def line_text(line: Decimal, *, has_sign: bool = False) -> str:
    """Return a line in the shortest form, such as 2.5, and on request +2.5."""
    text = f"{line.normalize() + 0:f}"
    return f"+{text}" if has_sign and line > 0 else text


def line_slug(line: Decimal) -> str:
    """Return the part of a slug for a line: 2.5 gives 2-5, and -1.5 gives minus-1-5."""
    return line_text(line).replace("-", "minus-").replace(".", "-")
