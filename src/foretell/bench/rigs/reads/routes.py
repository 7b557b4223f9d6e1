"""The reads that are measured, each beside the SQL that returns the same rows by an index."""

from typing import Final, NamedTuple
from urllib.parse import urlencode

from foretell.bench.rigs.reads.history import Names

DATA: Final = "data"
DISCOVERY: Final = "discovery"

HELD: Final = """SELECT p.*, c.token_yes, c.token_no, q.best_bid_ticks, q.best_ask_ticks, m.question
    FROM positions p JOIN conditions c ON c.condition_id = p.condition_id
    LEFT JOIN markets m ON m.condition_id = p.condition_id
    LEFT JOIN quotes q ON q.condition_id = p.condition_id
    WHERE p.wallet = :user AND p.size_units > 0 ORDER BY p.size_units DESC LIMIT 100"""
TOTALS: Final = "SELECT * FROM trading_totals WHERE wallet = :user"
ACTS: Final = "SELECT * FROM activities WHERE {} ORDER BY timestamp_s DESC LIMIT 100"
STANDINGS: Final = """SELECT * FROM standings WHERE period = {} AND category = '{}'
    ORDER BY {} DESC, wallet DESC LIMIT 25"""
MARKETS: Final = """SELECT m.*, q.*, e.ends_at_ms FROM markets m
    JOIN events e ON e.event_id = m.event_id JOIN quotes q ON q.condition_id = m.condition_id
    ORDER BY m.market_id DESC LIMIT 20"""


class ReadCase(NamedTuple):
    """A request, and the SQL that returns the rows of its answer."""

    name: str
    api: str
    path: str
    query: str
    sql: str
    values: dict[str, str]


def cases(names: Names) -> list[ReadCase]:
    """Return the reads of each route."""
    whale, market = {"user": names.whale}, {"market": names.condition_id}
    typical = {"user": names.typical}
    by_user, by_market = ACTS.format("wallet = :user"), ACTS.format("condition_id = :market")
    holders = """SELECT * FROM balances WHERE asset = :market AND units > 0
        ORDER BY units DESC, wallet DESC LIMIT 100"""
    token = {"market": names.token_id}
    return [
        _data("positions, 1,000 held", "/positions", whale, HELD),
        _data("positions, typical", "/positions", typical, HELD),
        _data(
            "positions by value",
            "/positions",
            {**whale, "sortBy": "CURRENT", "offset": "800"},
            HELD + " OFFSET 800",
        ),
        _data("closed-positions", "/closed-positions", typical, HELD),
        _data(
            "value, 1,000 held",
            "/value",
            whale,
            """SELECT p.size_units, q.best_bid_ticks, q.best_ask_ticks FROM positions p
            JOIN quotes q ON q.condition_id = p.condition_id
            WHERE p.wallet = :user AND p.size_units > 0""",
        ),
        _data("traded", "/traded", whale, TOTALS),
        _data("volume", "/volume", whale, TOTALS),
        ReadCase("holders", DATA, "/holders", urlencode(market), holders, token),
        _data("oi", "/oi", {}, "SELECT * FROM locked_collateral ORDER BY units DESC LIMIT 500"),
        _data(
            "live-volume",
            "/live-volume",
            market,
            "SELECT volume_units FROM quotes WHERE condition_id = :market",
        ),
        _data("trades, newest", "/trades", {}, ACTS.format("is_taker")),
        _data("trades of a market", "/trades", market, by_market),
        _data("trades of a wallet", "/trades", whale, by_user),
        _data("activity", "/activity", whale, by_user),
        *_rankings(typical),
        *_listings(),
    ]


def dear_cases(names: Names) -> list[ReadCase]:
    """Return the dearest reads, which have no bare SQL to compare with."""
    whale, market = {"user": names.whale}, {"market": names.condition_id}
    wanted: list[tuple[str, str, dict[str, str]]] = [
        (DATA, "/trades", {"limit": "10000", "takerOnly": "false"}),
        (DATA, "/activity", {**whale, "sortBy": "TOKENS", "limit": "500"}),
        (DATA, "/positions", {**whale, "sortBy": "CASHPNL", "limit": "500"}),
        (DATA, "/trades", {**market, "filterType": "TOKENS", "filterAmount": "1000000"}),
        (DISCOVERY, "/markets", {"order": "liquidity", "limit": "500"}),
        (DISCOVERY, "/events", {"order": "volume1yr", "limit": "500"}),
    ]
    return [ReadCase(path, api, path, urlencode(query), "", {}) for api, path, query in wanted]


def _rankings(typical: dict[str, str]) -> list[ReadCase]:
    return [
        _data("leaderboard DAY PNL", "/v1/leaderboard", {}, STANDINGS.format(1, "", "gain_units")),
        _data(
            "leaderboard MONTH VOL",
            "/v1/leaderboard",
            {"timePeriod": "MONTH", "orderBy": "VOL"},
            STANDINGS.format(30, "", "volume_units"),
        ),
        _data(
            "leaderboard ALL politics",
            "/v1/leaderboard",
            {"timePeriod": "ALL", "category": "POLITICS"},
            STANDINGS.format(0, "politics", "gain_units"),
        ),
        _data(
            "leaderboard of a wallet",
            "/v1/leaderboard",
            {**typical, "timePeriod": "ALL"},
            """SELECT count(*) FROM standings WHERE period = 0 AND category = ''
            AND gain_units > (SELECT gain_units FROM standings
            WHERE period = 0 AND category = '' AND wallet = :user)""",
        ),
        _data(
            "biggest wins",
            "/v1/leaderboard/biggest-wins",
            {"timePeriod": "ALL"},
            "SELECT * FROM wins WHERE period = 0 ORDER BY realized_units DESC LIMIT 20",
        ),
    ]


def _listings() -> list[ReadCase]:
    return [
        _listing("markets, newest", "/markets", {}),
        _listing("markets by volume24hr", "/markets", {"order": "volume24hr"}),
        _listing("markets by volume1yr", "/markets", {"order": "volume1yr"}),
        _listing("events, newest", "/events", {}),
    ]


def _data(name: str, path: str, query: dict[str, str], sql: str) -> ReadCase:
    values = {key: value for key, value in query.items() if f":{key}" in sql}
    return ReadCase(name, DATA, path, urlencode(query), sql, values)


def _listing(name: str, path: str, query: dict[str, str]) -> ReadCase:
    return ReadCase(name, DISCOVERY, path, urlencode(query), MARKETS, {})
