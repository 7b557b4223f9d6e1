"""Games of a history with their series and teams, and profiles of its wallets."""

from collections.abc import Sequence
from typing import Final

from foretell.store.bulk import RowsByTable
from foretell.store.tables import (
    profiles,
    series,
    sport_tags,
    sports,
    sports_events,
    sports_markets,
    teams,
)

SERIES: Final = 20
TEAMS_OF_SERIES: Final = 20
WALLETS_PER_PROFILE: Final = 10
MARKET_TYPES: Final = ("moneyline", "totals", "spreads")
SPORT: Final = 1
DETAILS: Final = '{"section": "games", "event_variant": "standard"}'
CATALOGUED: Final = (sports, sport_tags, series, teams, sports_events, sports_markets, profiles)


def catalogue_rows(
    games: Sequence[int], tag_id: int, wallets: Sequence[str], at_ms: int
) -> RowsByTable:
    """Return the rows of these games, all of one tag, whose markets have the same ids, and the profiles of some wallets."""
    leagues = range(1, SERIES + 1)
    times = at_ms, at_ms
    return {
        sports: [(SPORT, "football", "i", None, at_ms)],
        sport_tags: [(SPORT, tag_id)],
        series: [
            (each, f"league-{each}", f"League {each}", "i", SPORT, *times) for each in leagues
        ],
        teams: [
            (number, f"league-{number % SERIES + 1}", f"Team {number}", f"T{number}", "i", *times)
            for number in range(1, SERIES * TEAMS_OF_SERIES + 1)
        ],
        sports_events: [
            (game, SPORT, place % SERIES + 1, f"game-{game}", DETAILS)
            for place, game in enumerate(games)
        ],
        sports_markets: [
            (game, MARKET_TYPES[place % len(MARKET_TYPES)], None, None, None)
            for place, game in enumerate(games)
        ],
        profiles: [
            (wallet, wallet, f"Trader {number}", f"trader {number}", "", "i", at_ms)
            for number, wallet in enumerate(wallets)
            if number % WALLETS_PER_PROFILE == 0
        ],
    }
