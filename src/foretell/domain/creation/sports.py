"""The `sports` object of a payload: a game, and the markets that it has.

Markets come from a template, a list, and players' props, in this order. A listed market with the id of
a standard one takes its place, so that each market is there once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from foretell.domain.creation.sports_details import SportsDetails, read_details
from foretell.domain.creation.sports_markets import SPORTS_MARKETS_MAX, read_markets, read_props
from foretell.domain.creation.sports_template import (
    SportsTemplate,
    expand_template,
    read_template,
)
from foretell.domain.creation.sports_types import (
    PROP_VARIANTS,
    EventVariant,
    HostStatus,
    Section,
    SportsMarket,
    SportsTeam,
)
from foretell.domain.values.document_fields import Fields


@dataclass(frozen=True, slots=True)
class SportsEvent:
    """A game with all its markets, each with the place in the document that it comes from."""

    details: SportsDetails
    template: SportsTemplate | None
    markets: tuple[SportsMarket, ...]
    places: tuple[str, ...]

    @property
    def logo_sides(self) -> frozenset[HostStatus]:
        """The sides whose logo something shows: a team, or a market by its icon."""
        keys = {market.icon_asset_key for market in self.markets}
        shown = {side for side in HostStatus if str(side) in keys}
        return frozenset(shown | {team.host_status for team in self.details.teams})

    @property
    def sides_without_logo(self) -> frozenset[HostStatus]:
        """The sides of the teams that give no logo, so that it must be uploaded."""
        return frozenset(team.host_status for team in self.details.teams if team.logo is None)

    @property
    def icon_ids(self) -> frozenset[str]:
        """The ids that an uploaded image may have: those of markets, and the icons they name."""
        icons = {market.icon_asset_key for market in self.markets} - {None, *map(str, HostStatus)}
        return frozenset({market.key for market in self.markets} | {str(icon) for icon in icons})

    def team(self, side: str) -> SportsTeam | None:
        """Return the team of a side, if it is given."""
        return next((team for team in self.details.teams if team.host_status == side), None)


def read_sports(
    fields: Fields, event_title: str, *, has_other_markets: bool = False
) -> SportsEvent | None:
    """Return the event in the fields of the payload's `sports`, None when it is refused.

    It needs a market of its own unless the payload has other ones.
    """
    problems = len(fields.problems)
    details = read_details(fields)
    template = read_template(fields)
    listed = read_markets(fields, details, event_title)
    props = read_props(fields, event_title)
    if not has_other_markets and not _has_markets(fields):
        fields.refuse(
            "markets", "must have at least one entry, unless there is a template or props"
        )
    _check_section(fields, details)
    if len(fields.problems) > problems:
        return None
    standard = () if template is None else expand_template(template, details)
    return _merged(fields, SportsEvent(details, template, standard, ()), listed, props)


def _has_markets(fields: Fields) -> bool:
    return any(fields.value(name) not in (None, []) for name in ("template", "markets", "props"))


def _check_section(fields: Fields, details: SportsDetails) -> None:
    """Refuse markets that the section or the variant does not have."""
    is_props = details.section is Section.PROPS
    if is_props and details.event_variant not in PROP_VARIANTS:
        fields.refuse("eventVariant", "must be standard or custom in the section props")
    if fields.has("props") and not is_props:
        fields.refuse("props", "are for the section props only")
    if fields.has("template"):
        if is_props:
            fields.refuse("template", "is for the section games only")
        if details.event_variant is not EventVariant.STANDARD:
            fields.refuse("template", "is for the variant standard only")
    if details.event_variant is EventVariant.CUSTOM and fields.value("markets") in (None, []):
        fields.refuse("markets", "must have at least one entry in the variant custom")


def _merged(
    fields: Fields,
    event: SportsEvent,
    listed: Sequence[SportsMarket],
    props: Sequence[SportsMarket],
) -> SportsEvent | None:
    """Return the event with all its markets, or refuse too many and equal ones."""
    places = {market.key: "template" for market in event.markets}
    markets = {market.key: market for market in event.markets}
    standard_keys = frozenset(markets)
    for name, group in (("markets", listed), ("props", props)):
        for index, market in enumerate(group):
            place = places.get(market.key, "template")
            if market.key in markets and not (market.key in standard_keys and place == "template"):
                fields.refuse(f"{name}/{index}/id", f"must differ from that of {place}")
                continue
            places[market.key] = f"{name}/{index}"
            markets[market.key] = market
    if len(markets) > SPORTS_MARKETS_MAX:
        fields.refuse("markets", f"must be at most {SPORTS_MARKETS_MAX} together with the template")
    _check_distinct(fields, list(markets.values()), list(places.values()))
    return SportsEvent(
        event.details, event.template, tuple(markets.values()), tuple(places.values())
    )


def _check_distinct(fields: Fields, markets: Sequence[SportsMarket], places: Sequence[str]) -> None:
    """Refuse markets with the slug or the question of an earlier one."""
    for name in ("slug", "question"):
        first_by_text: dict[str, str] = {}
        for market, place in zip(markets, places, strict=True):
            first = first_by_text.setdefault(getattr(market, name), place)
            if first != place:
                fields.refuse(f"{place}/{name}", f"must differ from that of {first}")
