"""The reads of the discovery API, each beside the SQL that returns the rows of its answer by an index."""

from typing import Final
from urllib.parse import urlencode

from foretell.bench.rigs.reads.history import Names
from foretell.bench.rigs.reads.read_case import DISCOVERY, ReadCase

LISTED: Final = """SELECT m.*, q.*, t.*, e.*, f.*, y.*, l.units, h.since_ms, s.line, g.details FROM ({}) chosen
    JOIN markets m ON m.{} = chosen.row_id
    JOIN events e ON e.event_id = m.event_id
    LEFT JOIN quotes q ON q.condition_id = m.condition_id
    LEFT JOIN market_totals t ON t.market_id = m.market_id
    LEFT JOIN event_totals f ON f.event_id = m.event_id
    LEFT JOIN payouts y ON y.condition_id = m.condition_id
    LEFT JOIN locked_collateral l ON l.condition_id = m.condition_id
    LEFT JOIN halted_markets h ON h.condition_id = m.condition_id
    LEFT JOIN sports_markets s ON s.market_id = m.market_id
    LEFT JOIN sports_events g ON g.event_id = m.event_id"""
"""A market is shown with its event, and an event with its markets."""
TAGS_OF_EVENT: Final = """SELECT t.* FROM event_tags e JOIN tags t ON t.tag_id = e.tag_id
    WHERE e.event_id = 7 ORDER BY t.tag_id"""
SPORTS: Final = """SELECT s.*, r.series_id, t.tag_id FROM sports s
    LEFT JOIN series r ON r.sport_id = s.sport_id LEFT JOIN sport_tags t ON t.sport_id = s.sport_id
    ORDER BY s.sport_id LIMIT 500"""
SERIES: Final = """SELECT s.*, t.volume_units, t.open_events FROM series s
    LEFT JOIN series_totals t ON t.series_id = s.series_id ORDER BY s.series_id DESC LIMIT 20"""
EVENTS_OF_SERIES: Final = """SELECT s.*, g.*, e.*, f.*, y.timestamp_s, l.units, m.neg_risk_market_id FROM (
    SELECT * FROM sports_events WHERE series_id = 7 ORDER BY event_id DESC LIMIT 100) g
    JOIN series s ON s.series_id = g.series_id
    JOIN events e ON e.event_id = g.event_id
    JOIN markets m ON m.event_id = g.event_id
    LEFT JOIN event_totals f ON f.event_id = g.event_id
    LEFT JOIN payouts y ON y.condition_id = m.condition_id
    LEFT JOIN locked_collateral l ON l.condition_id = m.condition_id"""
"""An event is open until its markets are paid, and has what they locked."""
FOUND: Final = """SELECT e.event_id AS row_id FROM events e JOIN event_totals t ON t.event_id = e.event_id
    WHERE e.title LIKE '%number%' AND e.title LIKE '%17%' ORDER BY t.day_units DESC, e.event_id DESC LIMIT 20"""
"""Of what is searched the titles alone, which no index finds by a word within them."""
PROFILE: Final = "SELECT * FROM profiles WHERE address = :address OR safe = :address"


def discovery_cases(names: Names) -> list[ReadCase]:
    """Return the reads of each route."""
    return [*_listings(), *_single_ones(), *_tags_and_texts(), *_games(), *_profiles(names)]


def _tags_and_texts() -> list[ReadCase]:
    """Return the reads of tags, and of what belongs to one event or market."""
    one_tag = "SELECT * FROM tags WHERE tag_id = 1"
    by_slug = "SELECT * FROM tags WHERE slug = 'politics'"
    one_event = "SELECT event_id FROM events WHERE event_id = 7"
    return [
        _case("tags", "/tags", "SELECT * FROM tags ORDER BY tag_id LIMIT 100"),
        _case("one tag by id", "/tags/1", one_tag),
        _case("one tag", "/tags/slug/politics", by_slug),
        _case("related tags by id", "/tags/1/related-tags", one_tag),
        _case("related tags", "/tags/slug/politics/related-tags", by_slug),
        _case("tags of an event", "/events/7/tags", TAGS_OF_EVENT),
        _case("comments of an event", "/events/7/comments/count", one_event),
        _case("tags of a market", "/markets/7/tags", TAGS_OF_EVENT),
        _case(
            *("description", "/markets/7/description"),
            "SELECT e.rules FROM markets m JOIN events e ON e.event_id = m.event_id WHERE m.market_id = 7",
        ),
    ]


def _games() -> list[ReadCase]:
    types = """SELECT DISTINCT market_type FROM sports_markets
        WHERE market_type IS NOT NULL ORDER BY market_type LIMIT 1000"""
    return [
        _case("sports", "/sports", SPORTS),
        _case("types of markets", "/sports/market-types", types),
        _case("teams", "/teams", "SELECT * FROM teams ORDER BY team_id LIMIT 20"),
        _case("series", "/series", SERIES),
        _case("one series", "/series/7", EVENTS_OF_SERIES),
        _case(
            *("comments of a series", "/series/7/comments/count"),
            "SELECT * FROM series WHERE series_id = 7",
        ),
    ]


def _profiles(names: Names) -> list[ReadCase]:
    values = {"address": names.named}
    return [
        ReadCase("profile", DISCOVERY, "/public-profile", urlencode(values), PROFILE, values),
        ReadCase(
            *("profile of a wallet", DISCOVERY, f"/profiles/user_address/{names.named}", ""),
            *(PROFILE, values),
        ),
    ]


def _case(name: str, path: str, sql: str) -> ReadCase:
    return ReadCase(name, DISCOVERY, path, "", sql, {})


def _single_ones() -> list[ReadCase]:
    """Return the reads of one market and one event."""
    return [
        ReadCase(name, DISCOVERY, path, "", LISTED.format(chosen, row_id), {})
        for name, path, chosen, row_id in (
            (
                *("one market", "/markets/slug/market-7"),
                *("SELECT market_id AS row_id FROM markets WHERE slug = 'market-7'", "market_id"),
            ),
            (
                *("one event", "/events/slug/event-7"),
                *("SELECT event_id AS row_id FROM events WHERE slug = 'event-7'", "event_id"),
            ),
            (
                *("one market by id", "/markets/7"),
                *("SELECT market_id AS row_id FROM markets WHERE market_id = 7", "market_id"),
            ),
            (
                *("one event by id", "/events/7"),
                *("SELECT event_id AS row_id FROM events WHERE event_id = 7", "event_id"),
            ),
        )
    ]


def _listings() -> list[ReadCase]:
    """Return the lists of markets and events."""
    newest = "SELECT {0} AS row_id FROM {1} ORDER BY {0} DESC LIMIT 20"
    by_total = (
        "SELECT market_id AS row_id FROM market_totals ORDER BY {} DESC, market_id DESC LIMIT 20"
    )
    return [
        ReadCase(name, DISCOVERY, path, urlencode(query), LISTED.format(chosen, row_id), {})
        for name, path, query, chosen, row_id in (
            ("markets, newest", "/markets", {}, newest.format("market_id", "markets"), "market_id"),
            (
                *("markets by volume24hr", "/markets", {"order": "volume24hr"}),
                *(by_total.format("day_units"), "market_id"),
            ),
            (
                *("markets by volume1yr", "/markets", {"order": "volume1yr"}),
                *(by_total.format("year_units"), "market_id"),
            ),
            (
                *("markets by liquidity", "/markets", {"order": "liquidity"}),
                *(by_total.format("liquidity_units"), "market_id"),
            ),
            (
                *("markets by slug", "/markets", {"order": "slug"}),
                *(by_total.format("slug"), "market_id"),
            ),
            (
                *("markets by price", "/markets", {"order": "lastTradePrice"}),
                *(by_total.format("last_price"), "market_id"),
            ),
            (
                *("markets, by keyset", "/markets/keyset", {}),
                *(newest.format("market_id", "markets"), "market_id"),
            ),
            ("events, newest", "/events", {}, newest.format("event_id", "events"), "event_id"),
            (
                *("events, by keyset", "/events/keyset", {}),
                *(newest.format("event_id", "events"), "event_id"),
            ),
            (
                *("events, with their number", "/events/pagination", {}),
                *(newest.format("event_id", "events"), "event_id"),
            ),
            (
                *("search", "/public-search", {"q": "number 17", "limit_per_type": "20"}),
                *(FOUND, "event_id"),
            ),
        )
    ]
