"""A history of trades whose sums by wallet an older version has kept, and all that is read of them.

Written so that commit 670d8ca4, the last one with migration 0020, runs it too: its rows are in `670d8ca4/sums.json.xz`.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final

from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_S, TOKEN, a_word, an_address

from foretell.domain.portfolio.periods import Period
from foretell.store.database import Database
from foretell.store.index.trading_totals import load_traded_markets, load_trading_totals
from foretell.store.queries.leaderboards import (
    RankingOrder,
    RankingScope,
    load_ranking_of,
    load_rankings,
    load_wins,
)
from foretell.store.trading.trades import Quote, record_quotes

DAY_S: Final = 86_400
WALLETS: Final = 24
HEAVY_FROM: Final = 8
"""Wallets of one amount that have counts of their own; 2,000 would make a large file."""
CATEGORY_BY_MARKET: Final = {"rain": "politics", "snow": "world"}
DAYS_AGO: Final = (45, 20, 5, 0)
"""Times of trades, so that each period begins after some and before others."""
ROWS_MAX: Final = 1_000
WINS_MAX: Final = 50


async def write_history(database: Database) -> None:
    """Write trades, wins and prices with the sums that rounds keep; the trades of the last day are in no round yet."""
    numbers = itertools.count(1)
    async with database.writing() as tx:
        rows = Rows(tx, numbers=numbers)
        for name, category in CATEGORY_BY_MARKET.items():
            await rows.open_named(name, main_category_slug=category)
    for part, days in enumerate(DAYS_AGO):
        at_s = NOW_S - days * DAY_S
        await write_trades(database, numbers, part, at_s)
        if days:
            await keep_rankings(database, at_s * 1_000, ROWS_MAX)


async def write_trades(database: Database, numbers: Iterator[int], part: int, at_s: int) -> None:
    """Write a trade and a position of each wallet, a win of some, and other prices."""
    async with database.writing() as tx:
        rows = Rows(tx, numbers=numbers)
        for place, name in enumerate(CATEGORY_BY_MARKET):
            bid = 40 + 5 * part + place
            await rows.quoted_at(name, at_s, bid, bid + 2)
            quote = Quote(a_word(name), 100, bid, bid + 2, None, None, 0, at_s * 1_000)
            await record_quotes(tx, [quote])
        for number in range(WALLETS):
            who, name = f"trader {number}", ("rain", "snow")[number % 2]
            units, gained = (1 + number % 3) * TOKEN, (part + 1) * (number % 4)
            cost = units // 2
            at = {"block_number": next(numbers)}
            await rows.buy(who, name, units, cost, timestamp_s=at_s, **at)
            await rows.hold(who, name, units, cost, realized_units=gained, changed_at_s=at_s, **at)
            won = {"realized_units": gained, "is_yes": False, "changed_at_s": at_s}
            await rows.hold(who, name, 0, 0, **won, **at)


async def read_sums(database: Database) -> Any:
    """Return all that readers see of the sums by wallet, in values that JSON has."""
    scopes = [
        RankingScope(period, category)
        for period in Period
        for category in (None, *CATEGORY_BY_MARKET.values())
    ]
    wallets = sorted(an_address(f"trader {number}") for number in range(WALLETS))
    found: dict[str, Any] = {}
    async with database.reading() as tx:
        for scope in scopes:
            name = f"{int(scope.period)} {scope.main_category}"
            for order in RankingOrder:
                page = await load_rankings(tx, scope, order, limit=ROWS_MAX, offset=0)
                found[f"{name} {order.value}"] = [list(each) for each in page]
                ranks = [await load_ranking_of(tx, scope, order, each) for each in wallets]
                found[f"{name} {order.value} ranks"] = [each and list(each) for each in ranks]
            wins = await load_wins(tx, scope, limit=WINS_MAX, offset=0)
            assert len(wins) < WINS_MAX
            found[f"{name} wins"] = [list(each) for each in wins]
        keys = itertools.product(wallets, map(a_word, CATEGORY_BY_MARKET))
        found["traded"] = sorted(map(list, await load_traded_markets(tx, keys)))
        found["totals"] = sorted(map(list, await load_trading_totals(tx, wallets)))
    return found
