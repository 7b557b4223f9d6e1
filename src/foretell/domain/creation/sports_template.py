"""The template of a game: its standard markets, in a fixed order.

The moneyline has a Yes/No market for each team and on request for a draw. A spread belongs to the home
team: at -1.5 the home team covers it if it wins by more than 1.5. A total counts both teams.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from foretell.domain.creation.sports_details import TEAMS, SportsDetails, check_full
from foretell.domain.creation.sports_fields import optional_flag, read_line
from foretell.domain.creation.sports_types import (
    BOTH_TEAMS_TO_SCORE,
    MONEYLINE,
    OVER_UNDER,
    SPREADS,
    TOTALS,
    YES_NO,
    SportsMarket,
    SportsTeam,
    line_slug,
    line_text,
)
from foretell.domain.values.document_fields import Fields

LINES_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class SportsTemplate:
    """The choice of standard markets; lines count only if their markets are included."""

    include_draw: bool
    include_both_teams_to_score: bool
    include_spreads: bool
    include_totals: bool
    spread_lines: tuple[Decimal, ...]
    total_lines: tuple[Decimal, ...]


def read_template(fields: Fields) -> SportsTemplate | None:
    """Return the template in the fields of `sports`, None when there is none or it is refused."""
    if not fields.has("template"):
        return None
    check_full(fields, "a template")
    value: Any = fields.value("template")
    if not isinstance(value, dict):
        fields.refuse("template", "must be an object")
        return None
    inner = fields.inside("template", value)
    template = SportsTemplate(
        include_draw=optional_flag(inner, "includeDraw"),
        include_both_teams_to_score=optional_flag(inner, "includeBothTeamsToScore"),
        include_spreads=optional_flag(inner, "includeSpreads"),
        include_totals=optional_flag(inner, "includeTotals"),
        spread_lines=_lines(inner, "spreadLines"),
        total_lines=_lines(inner, "totalLines", is_positive=True),
    )
    for name, is_included, lines in (
        ("spreadLines", template.include_spreads, inner.value("spreadLines")),
        ("totalLines", template.include_totals, inner.value("totalLines")),
    ):
        if is_included and lines in (None, []):
            inner.refuse(name, "must have at least one line")
    return template


def _lines(fields: Fields, name: str, *, is_positive: bool = False) -> tuple[Decimal, ...]:
    """Return the lines of a list, each once."""
    entries = (fields.entries(name, LINES_MAX) or ()) if fields.has(name) else ()
    lines: list[Decimal] = []
    for index, entry in enumerate(entries):
        where = f"{name}/{index}"
        line = read_line(fields, where, entry)
        if line is None:
            continue
        if line in lines:
            fields.refuse(where, f"must differ from that of {lines.index(line)}")
        if is_positive and line <= 0:
            fields.refuse(where, "must be more than 0")
        lines.append(line)
    return tuple(lines)


def expand_template(template: SportsTemplate, details: SportsDetails) -> tuple[SportsMarket, ...]:
    """Return the markets of a template."""
    assert len(details.teams) == TEAMS, "a template is expanded for a home and an away team"
    assert details.event_date is not None, "a template's questions name the day"
    home, away = details.teams
    game = f"{home.name} against {away.name} on {details.event_date}"
    return (
        *_moneyline(template, details),
        *_both_to_score(template, game),
        *(_spread(line, home, away, game) for line in _included(template, SPREADS)),
        *(_total(line, game) for line in _included(template, TOTALS)),
    )


def _included(template: SportsTemplate, market_type: str) -> tuple[Decimal, ...]:
    if market_type == SPREADS:
        return template.spread_lines if template.include_spreads else ()
    return template.total_lines if template.include_totals else ()


def _moneyline(template: SportsTemplate, details: SportsDetails) -> Iterator[SportsMarket]:
    home, away = details.teams
    yield _win(home, away, details.event_date)
    if template.include_draw:
        yield SportsMarket(
            key="moneyline-draw",
            slug="draw",
            question=f"Will {home.name} against {away.name} on {details.event_date} end in a draw?",
            title="Draw",
            short_title="Draw",
            outcomes=YES_NO,
            market_type=MONEYLINE,
        )
    yield _win(away, home, details.event_date)


def _win(team: SportsTeam, other: SportsTeam, day: str | None) -> SportsMarket:
    return SportsMarket(
        key=f"moneyline-{team.host_status}",
        slug=str(team.host_status),
        question=f"Will {team.name} win against {other.name} on {day}?",
        title=team.name,
        short_title=team.abbreviation,
        outcomes=YES_NO,
        market_type=MONEYLINE,
        icon_asset_key=str(team.host_status),
    )


def _both_to_score(template: SportsTemplate, game: str) -> Iterator[SportsMarket]:
    if template.include_both_teams_to_score:
        yield SportsMarket(
            key="btts",
            slug="btts",
            question=f"{game}: will both teams score?",
            title="Both teams to score",
            short_title="Both score",
            outcomes=YES_NO,
            market_type=BOTH_TEAMS_TO_SCORE,
        )


def _spread(line: Decimal, home: SportsTeam, away: SportsTeam, game: str) -> SportsMarket:
    for_home = f"{home.abbreviation} {line_text(line, has_sign=True)}"
    return SportsMarket(
        key=f"spread-{line_slug(line)}",
        slug=f"spread-{line_slug(line)}",
        question=(
            f"{game}: which side covers the spread of {line_text(line, has_sign=True)}"
            f" for {home.name}?"
        ),
        title=f"Spread {for_home}",
        short_title=for_home,
        outcomes=(home.name, away.name),
        market_type=SPREADS,
        line=line,
    )


def _total(line: Decimal, game: str) -> SportsMarket:
    text = line_text(line)
    return SportsMarket(
        key=f"total-{line_slug(line)}",
        slug=f"total-{line_slug(line)}",
        question=f"{game}: is the total score over or under {text}?",
        title=f"Total {text}",
        short_title=f"O/U {text}",
        outcomes=OVER_UNDER,
        market_type=TOTALS,
        line=line,
    )
