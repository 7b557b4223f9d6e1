"""The reads that are measured, each beside the SQL that returns the rows of its answer by an index, captions included."""

from typing import Final
from urllib.parse import urlencode

from foretell.bench.rigs.reads.builders import CODES
from foretell.bench.rigs.reads.discovery_cases import discovery_cases
from foretell.bench.rigs.reads.history import EXCHANGE, NOW_S, Names, a_condition
from foretell.bench.rigs.reads.history_cases import history_cases, largest_batch
from foretell.bench.rigs.reads.read_case import DATA, DISCOVERY, TRADING, ReadCase
from foretell.domain.portfolio.builder_volumes import first_day
from foretell.domain.portfolio.periods import Period
from foretell.store.index.activity_roles import role_of
from foretell.store.index.amount_classes import class_of

HELD: Final = """SELECT p.*, c.token_yes, c.token_no, q.best_bid_ticks, q.best_ask_ticks, m.question
    FROM positions p JOIN conditions c ON c.condition_id = p.condition_id
    LEFT JOIN markets m ON m.condition_id = p.condition_id
    LEFT JOIN quotes q ON q.condition_id = p.condition_id
    WHERE p.wallet = :user AND p.size_units > 0 ORDER BY p.size_units DESC LIMIT 100"""
HELD_500: Final = HELD.replace("LIMIT 100", "LIMIT 500")
CLOSED: Final = """SELECT p.*, c.token_yes, c.token_no, m.question, m.slug, m.icon, e.slug, y.payout_yes, y.payout_no
    FROM positions p JOIN conditions c ON c.condition_id = p.condition_id
    LEFT JOIN markets m ON m.condition_id = p.condition_id
    LEFT JOIN events e ON e.event_id = m.event_id
    LEFT JOIN payouts y ON y.condition_id = p.condition_id
    WHERE p.wallet = :user AND p.size_units = 0 ORDER BY p.realized_units DESC LIMIT 50"""
TOTALS: Final = "SELECT * FROM trading_totals WHERE wallet = :user"
ROWS_MAX: Final = 100
SELLS_MAX: Final = 50
"""A history of 100,000 fills has so many sells by takers in its hot market: at every size the page is full."""
NEWEST: Final = (
    f"ORDER BY timestamp_s DESC, block_number DESC, log_index DESC, part DESC LIMIT {ROWS_MAX}"
)
ACTS: Final = f"""SELECT a.*, c.token_yes, m.question, m.slug, m.icon, m.outcome_yes, m.outcome_no, e.slug, p.name
    FROM (SELECT * FROM {{}} {NEWEST}) a
    JOIN conditions c ON c.condition_id = a.condition_id
    LEFT JOIN markets m ON m.condition_id = a.condition_id
    LEFT JOIN events e ON e.event_id = m.event_id
    LEFT JOIN profiles p ON p.address = a.wallet
    ORDER BY a.timestamp_s DESC, a.block_number DESC, a.log_index DESC, a.part DESC"""  # noqa: S608 - the rig's own text
EXPORTED: Final = """SELECT a.*, f.fee_units, f.order_id FROM (
    SELECT * FROM activities WHERE wallet = :user AND kind = 'TRADE'
    ORDER BY timestamp_s, block_number, log_index LIMIT 100) a
    JOIN exchange_fills f ON f.block_number = a.block_number AND f.log_index = a.log_index AND f.part = a.part
    ORDER BY a.timestamp_s, a.block_number, a.log_index"""
HOLDERS: Final = """SELECT b.*, p.name FROM (
    SELECT * FROM (SELECT * FROM balances
        WHERE asset = (SELECT token_yes FROM conditions WHERE condition_id = :market)
        AND units > 0 ORDER BY units DESC, wallet DESC LIMIT 100) AS held_yes
    UNION ALL SELECT * FROM (SELECT * FROM balances
        WHERE asset = (SELECT token_no FROM conditions WHERE condition_id = :market)
        AND units > 0 ORDER BY units DESC, wallet DESC LIMIT 100) AS held_no
    ) b LEFT JOIN profiles p ON p.address = b.wallet"""
WORTH: Final = """SELECT p.size_units, p.token_id = c.token_yes, q.best_bid_ticks, q.best_ask_ticks, q.last_price_ticks,
    q.ticks_per_one, y.payout_yes, y.payout_no FROM positions p
    JOIN conditions c ON c.condition_id = p.condition_id
    LEFT JOIN quotes q ON q.condition_id = p.condition_id
    LEFT JOIN payouts y ON y.condition_id = p.condition_id
    WHERE p.wallet = :user AND p.size_units > 0"""
STANDINGS: Final = """SELECT s.*, p.name, p.image FROM (
    SELECT * FROM standings WHERE period = {} AND category = '{}'
    ORDER BY {} DESC, wallet DESC LIMIT 25) s LEFT JOIN profiles p ON p.address = s.wallet"""
WINS: Final = """SELECT w.*, o.spent_units, m.slug, m.icon, e.title, e.slug, p.name FROM (
    SELECT * FROM wins WHERE period = 0
    ORDER BY realized_units DESC, wallet DESC, token_id DESC LIMIT 20) w
    JOIN positions o ON o.wallet = w.wallet AND o.token_id = w.token_id
    LEFT JOIN markets m ON m.condition_id = o.condition_id
    LEFT JOIN events e ON e.event_id = m.event_id
    LEFT JOIN profiles p ON p.address = w.wallet"""
TITLED: Final = """SELECT p.token_id, m.question FROM positions p
    JOIN markets m ON m.condition_id = p.condition_id WHERE p.wallet = :user AND p.size_units > 0"""
HELD_TOKENS: Final = """SELECT c.condition_id, l.units, y.payout_yes,
    yes.units, no.units FROM conditions c
    LEFT JOIN supplies yes ON yes.token_id = c.token_yes
    LEFT JOIN supplies no ON no.token_id = c.token_no
    LEFT JOIN locked_collateral l ON l.condition_id = c.condition_id
    LEFT JOIN payouts y ON y.condition_id = c.condition_id ORDER BY c.condition_id LIMIT 100"""


KEPT: Final = """SELECT b.wallet, p.token_id, p.condition_id, c.token_yes, m.question, e.slug FROM positions p
    JOIN balances b ON b.wallet = '{}' AND b.asset = p.token_id AND b.units > 0
    LEFT JOIN conditions c ON c.condition_id = p.condition_id
    LEFT JOIN markets m ON m.condition_id = p.condition_id
    LEFT JOIN events e ON e.event_id = m.event_id
    WHERE p.wallet = :user ORDER BY p.token_id LIMIT 100"""

REFERRED: Final = """SELECT now.exchange, sum(now.volume_high - coalesce(before.volume_high, 0)),
    sum(now.volume_low - coalesce(before.volume_low, 0)), max(now.traded_at_s) FROM (
        SELECT r.wallet, (SELECT a.block_number FROM activities a
            WHERE a.wallet = r.wallet AND a.timestamp_s >= r.from_s
            ORDER BY a.timestamp_s, a.block_number LIMIT 1) AS first_block
        FROM referred_wallets r WHERE r.referrer = :address) s
    JOIN traded_volumes now ON now.wallet = s.wallet AND now.exchange = '{exchange}'
        AND now.block_number = (SELECT max(v.block_number) FROM traded_volumes v
            WHERE v.wallet = s.wallet AND v.exchange = '{exchange}')
    LEFT JOIN traded_volumes before ON before.wallet = s.wallet AND before.exchange = '{exchange}'
        AND before.block_number = (SELECT max(v.block_number) FROM traded_volumes v
            WHERE v.wallet = s.wallet AND v.exchange = '{exchange}' AND v.block_number < s.first_block)
    WHERE now.block_number >= s.first_block GROUP BY now.exchange"""

BUILDERS: Final = """SELECT s.*, p.image FROM ({} ORDER BY 2 DESC, 3 DESC, 1 DESC LIMIT 25) s
    LEFT JOIN profiles p ON p.address = s.builder_code"""
BUILDERS_OF_ALL: Final = "SELECT builder_code, volume_high, volume_low, users FROM builder_totals"
BUILDERS_SINCE: Final = """SELECT builder_code || '' AS builder_code, sum(volume_high) AS high, sum(volume_low) AS low, sum(last_users)
    FROM builder_days WHERE day >= {} GROUP BY builder_code || ''"""
BUILDER_DAYS: Final = """SELECT d.*, p.image, (SELECT count(*) FROM builder_days o
        WHERE o.day = d.day AND (o.volume_high, o.volume_low) > (d.volume_high, d.volume_low))
    FROM (SELECT * FROM builder_days WHERE {}
    ORDER BY day DESC, volume_high DESC, volume_low DESC, builder_code DESC LIMIT 25) d
    LEFT JOIN profiles p ON p.address = d.builder_code"""

LARGE_UNITS: Final = 9_000_000
"""No trade of the history costs so much more that it is in another class of costs."""
BOUGHT, SOLD = (role_of("TRADE", side, is_taker=True) for side in ("BUY", "SELL"))
"""The roles of takers."""


def acts_of(where: str, *roles: int) -> str:
    """Return the SQL of a page of activities: the newest of each role, and of those the newest."""
    also = f"{where} AND " if where else ""
    parts = (
        f"SELECT * FROM (SELECT * FROM activities WHERE {also}role = {role} {NEWEST}) AS of_{role}"  # noqa: S608 - as above
        for role in roles
    )
    return ACTS.format(f"({' UNION ALL '.join(parts)}) AS found")


def sells_of(where: str) -> str:
    """Return the SQL of a page of what takers sold."""
    return acts_of(where, SOLD).replace(f"LIMIT {ROWS_MAX}", f"LIMIT {SELLS_MAX}")


def cases(names: Names, *, is_sqlite: bool) -> list[ReadCase]:
    """Return the reads of each route; a partial index of SQLite is found by the words of its condition alone."""
    taken = "is_taker = 1" if is_sqlite else "is_taker"
    whale, market = {"user": names.whale}, {"market": names.condition_id}
    typical = {"user": names.typical}
    return [
        _data("positions, 1,000 held", "/positions", whale, HELD),
        _data("positions, typical", "/positions", typical, HELD),
        _data(
            "positions by value",
            "/positions",
            {**whale, "sortBy": "CURRENT", "offset": "800"},
            HELD + " OFFSET 800",
        ),
        _data("positions, 500 of 1,000 held", "/positions", {**whale, "limit": "500"}, HELD_500),
        _data("closed-positions", "/closed-positions", typical, CLOSED),
        _data(
            "closed-positions, 1,000 closed",
            "/closed-positions",
            {**whale, "limit": "50"},
            CLOSED,
        ),
        _data(
            "value, 1,000 held",
            "/value",
            whale,
            WORTH,
        ),
        _data("traded", "/traded", whale, TOTALS),
        _data("volume", "/volume", whale, TOTALS),
        _data("holders", "/holders", market, HOLDERS),
        _data("oi", "/oi", {}, "SELECT * FROM locked_collateral ORDER BY units DESC LIMIT 500"),
        _data(
            "live-volume",
            "/live-volume",
            market,
            "SELECT volume_units - failed_units FROM quotes WHERE condition_id = :market",
        ),
        *_of_activities(whale, market),
        *_of_amounts_and_titles(whale, taken),
        *_of_the_chain(names),
        *_rankings({"user": names.median}),
        *_of_builders(),
        *discovery_cases(names),
        *history_cases(names),
    ]


def _of_activities(whale: dict[str, str], market: dict[str, str]) -> list[ReadCase]:
    by_user, by_market = "wallet = :user", "condition_id = :market"
    sells = {"side": "SELL", "limit": str(SELLS_MAX)}
    takers = BOUGHT, SOLD
    return [
        _data("trades, newest", "/trades", {}, acts_of("", *takers)),
        _data("trades of a market", "/trades", market, acts_of(by_market, *takers)),
        _data("trades of a wallet", "/trades", whale, acts_of(by_user, *takers)),
        _data("sells, newest", "/trades", sells, sells_of("")),
        _data("sells of a market", "/trades", {**market, **sells}, sells_of(by_market)),
        _data("sells of a wallet that has none", "/trades", {**whale, **sells}, sells_of(by_user)),
        _data("activity", "/activity", whale, ACTS.format(f"activities WHERE {by_user}")),
    ]


def _of_amounts_and_titles(whale: dict[str, str], taken: str) -> list[ReadCase]:
    amount = {"filterType": "CASH", "filterAmount": "9"}
    large = acts_of(
        f"{taken} AND cost_class = {class_of(LARGE_UNITS)} AND cost_units + 0 >= {LARGE_UNITS}",
        *(BOUGHT, SOLD),
    )
    return [
        _data("trades of an amount", "/trades", amount, large),
        _data("positions by title", "/positions", {**whale, "title": "number 49"}, TITLED),
    ]


def _of_the_chain(names: Names) -> list[ReadCase]:
    """Return the reads that are for accounts: the causes of figures, exports, shares, and what is owed."""
    whale = {"user": names.whale}
    changes = f"""SELECT * FROM position_changes WHERE wallet = :user AND token_id = '{names.token_id}'
        ORDER BY block_number LIMIT 100"""  # noqa: S608 - the rig's own id
    return [
        _data("ledger", f"/positions/{names.token_id}/ledger", whale, changes),
        _data("export", "/export/trades.csv", {**whale, "limit": "100"}, EXPORTED),
        _data(
            "referrers",
            "/referrers",
            {"address": names.referrer},
            REFERRED.format(exchange=names.exchange),
        ),
        _data("solvency", "/solvency", {"limit": "100"}, HELD_TOKENS),
        _data("owed", "/owed", whale, KEPT.format(EXCHANGE)),
    ]


MARKETS_CHEAP_MAX: Final = 7
"""A query that names more condition ids is dear by its length."""
MARKETS_NAMED_MAX: Final = 200
"""So many condition ids fit the head of a request."""


def dear_cases(names: Names) -> list[ReadCase]:
    """Return the dearest reads, which have no bare SQL to compare with.

    Some of them are not dear by the rules, and the serving process answers them: the most that these let pass.
    """
    whale, market = {"user": names.whale}, {"market": names.condition_id}
    few, many = (
        {"market": ",".join(map(a_condition, range(number)))}
        for number in (MARKETS_CHEAP_MAX, MARKETS_NAMED_MAX)
    )
    wanted: list[tuple[str, str, dict[str, str]]] = [
        (DATA, "/trades", {"limit": "10000", "takerOnly": "false"}),
        (DATA, "/activity", {**whale, "sortBy": "TOKENS", "limit": "500"}),
        (DATA, "/positions", {**whale, "sortBy": "CASHPNL", "limit": "500"}),
        (DATA, "/positions", {**whale, "sortBy": "CURRENT", "limit": "500"}),
        (DATA, "/positions", {**whale, "sortBy": "CURRENT", "limit": "100", "offset": "900"}),
        (DATA, "/closed-positions", {**whale, "sortBy": "TITLE", "limit": "50", "offset": "900"}),
        (DATA, "/holders", few),
        (DATA, "/holders", {**many, "limit": "500"}),
        (DATA, "/oi", many),
        (DATA, "/trades", {**market, "filterType": "TOKENS", "filterAmount": "1000000"}),
        (DISCOVERY, "/markets", {"order": "liquidity", "limit": "500"}),
        (DISCOVERY, "/events", {"order": "volume1yr", "limit": "500"}),
        (DISCOVERY, "/public-search", {"q": "number", "limit_per_type": "50", "page": "2"}),
        (DATA, "/referrers", {"address": names.referrer}),
        (DATA, "/solvency", {"limit": "500"}),
        (DATA, "/export/trades.csv", {**whale, "limit": "50000"}),
        (DATA, "/v1/leaderboard", {"user": names.median, "timePeriod": "ALL"}),
        (TRADING, "/markets", {}),
        (TRADING, "/simplified-markets", {}),
    ]
    named = [
        ReadCase(path, api, path, urlencode(query, safe=","), "", {}) for api, path, query in wanted
    ]
    return [*named, largest_batch()]


def _rankings(median: dict[str, str]) -> list[ReadCase]:
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
            {**median, "timePeriod": "ALL"},
            """SELECT s.*, p.name, (SELECT sum(wallets) FROM rank_counts
            WHERE period = 0 AND category = '' AND counted = 'gain' AND bucket > 0)
            FROM standings s LEFT JOIN profiles p ON p.address = s.wallet
            WHERE s.period = 0 AND s.category = '' AND s.wallet = :user""",
        ),
        _data(
            "biggest wins",
            "/v1/leaderboard/biggest-wins",
            {"timePeriod": "ALL"},
            WINS,
        ),
    ]


def _of_builders() -> list[ReadCase]:
    month = {"timePeriod": "MONTH"}
    since, one = first_day(Period.MONTH, NOW_S * 1000), {"builder": CODES[0]}
    of_one = f"builder_code = :builder AND day >= {since}"
    board, days = "/builders/leaderboard", "/builders/volume"
    return [
        _data("builders MONTH", board, month, BUILDERS.format(BUILDERS_SINCE.format(since))),
        _data("builders ALL", board, {"timePeriod": "ALL"}, BUILDERS.format(BUILDERS_OF_ALL)),
        _data("days of builders", days, month, BUILDER_DAYS.format(f"day >= {since}")),
        _data("days of a builder", days, {**month, **one}, BUILDER_DAYS.format(of_one)),
    ]


def _data(name: str, path: str, query: dict[str, str], sql: str) -> ReadCase:
    values = {key: value for key, value in query.items() if f":{key}" in sql}
    return ReadCase(name, DATA, path, urlencode(query), sql, values)
