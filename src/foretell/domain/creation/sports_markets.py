"""The markets that a sports payload lists: `markets`, and a player's `props`."""

from typing import Any, Final

from foretell.domain.creation.options import question_of
from foretell.domain.creation.slug_fields import checked_slug, read_slug
from foretell.domain.creation.sports_details import SportsDetails
from foretell.domain.creation.sports_fields import (
    objects,
    optional_key,
    optional_line,
    optional_text,
)
from foretell.domain.creation.sports_types import (
    OVER_UNDER,
    TYPE_BY_VARIANT,
    HostStatus,
    SportsMarket,
    StatType,
    default_outcomes,
    is_market_type,
    line_slug,
    line_text,
)
from foretell.domain.creation.text_limits import (
    OPTION_ID_CHARS_MAX,
    OUTCOME_CHARS_MAX,
)
from foretell.domain.values.document_fields import Fields

SPORTS_MARKETS_MAX: Final = 300
OUTCOMES: Final = 2
THRESHOLD_CHARS_MAX: Final = 32


def read_markets(
    fields: Fields, details: SportsDetails, event_title: str
) -> tuple[SportsMarket, ...]:
    """Return the listed markets in their order."""
    return tuple(
        _market(each, number, details, event_title)
        for number, each in enumerate(objects(fields, "markets", SPORTS_MARKETS_MAX), 1)
    )


def read_props(fields: Fields, event_title: str) -> tuple[SportsMarket, ...]:
    """Return a market for each prop: over or under a line of a player's count."""
    return tuple(
        _prop(each, number, event_title)
        for number, each in enumerate(objects(fields, "props", SPORTS_MARKETS_MAX), 1)
    )


def _market(fields: Fields, number: int, details: SportsDetails, event_title: str) -> SportsMarket:
    title = fields.text("title", OUTCOME_CHARS_MAX)
    market_type = _market_type(fields) or TYPE_BY_VARIANT.get(details.event_variant)
    return SportsMarket(
        key=_key(fields, f"market-{number}"),
        slug=read_slug(fields, "slug")
        if fields.has("slug")
        else checked_slug(fields, "title", title),
        question=question_of(fields, f"{event_title}: {title}"),
        title=title,
        short_title=fields.text("shortName", OUTCOME_CHARS_MAX),
        outcomes=_outcomes(fields) or default_outcomes(market_type, details.teams),
        market_type=market_type,
        line=optional_line(fields, "line"),
        icon_asset_key=optional_key(fields, "iconAssetKey", OPTION_ID_CHARS_MAX),
        group_item_title=optional_text(fields, "groupItemTitle", OUTCOME_CHARS_MAX),
        group_item_threshold=optional_text(fields, "groupItemThreshold", THRESHOLD_CHARS_MAX),
    )


def _key(fields: Fields, default: str) -> str:
    return fields.text("id", OPTION_ID_CHARS_MAX) if fields.has("id") else default


def _market_type(fields: Fields) -> str | None:
    value: Any = fields.value("sportsMarketType")
    if value is None:
        return None
    if not isinstance(value, str) or not is_market_type(value):
        fields.refuse("sportsMarketType", "must be words of a to z and digits, joined by _")
        return None
    return value


def _outcomes(fields: Fields) -> tuple[str, str] | None:
    """Return the two outcomes, or None when they are absent or refused."""
    if not fields.has("outcomes"):
        return None
    entries = fields.entries("outcomes", OUTCOMES)
    if entries is None:
        return None
    if len(entries) < OUTCOMES:
        fields.refuse("outcomes", "must have two entries")
        return None
    texts = fields.inside("outcomes", {str(index): each for index, each in enumerate(entries)})
    first, second = (texts.text(str(index), OUTCOME_CHARS_MAX) for index in range(OUTCOMES))
    if first and first.casefold() == second.casefold():
        fields.refuse("outcomes", "must differ from each other")
    return (first, second)


def _prop(fields: Fields, number: int, event_title: str) -> SportsMarket:
    player = fields.text("playerName", OUTCOME_CHARS_MAX)
    stat = fields.choice("statType", {str(each): str(each) for each in StatType}) or ""
    line = optional_line(fields, "line")
    if line is None and not fields.has("line"):
        fields.refuse("line", "is required for a prop")
    sides = {str(each): str(each) for each in HostStatus}
    side = fields.choice("teamHostStatus", sides) if fields.has("teamHostStatus") else None
    counted = stat.replace("_", " ")
    shown = "" if line is None else line_text(line)
    player_slug = checked_slug(fields, "playerName", player)
    return SportsMarket(
        key=_key(fields, f"prop-{number}"),
        slug=f"{player_slug}-{stat.replace('_', '-')}-{'' if line is None else line_slug(line)}",
        question=f"{event_title}: {player} over or under {shown} {counted}?",
        title=player,
        short_title=f"O/U {shown} {counted}",
        outcomes=OVER_UNDER,
        market_type=stat or None,
        line=line,
        icon_asset_key=side,
        player_name=player,
    )
