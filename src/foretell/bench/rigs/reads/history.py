"""A generated history: every position, balance and volume is what the generated trades lead to.

The last wallet has a position in both tokens of 500 markets, and 1,000 that are closed. All others trade at random, hot
markets more often.
"""

from collections import Counter
from random import Random  # noqa: TID251 - the same plan gives the same rows
from typing import Any, Final, NamedTuple

from foretell.bench.rigs.reads.builders import BUILT, BroughtOrders
from foretell.bench.rigs.reads.catalogue import CATALOGUED, catalogue_rows
from foretell.bench.rigs.reads.matches import SIZE_UNITS, GeneratedMatch, Parties
from foretell.bench.rigs.reads.standings import Standings, counts_of
from foretell.domain.portfolio.positions import (
    NO_POSITION,
    Position,
    apply,
    purchase,
    sale,
)
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import keccak256
from foretell.indexer.listings import ListingContext, refresh_listings
from foretell.store.bulk import WriteRows, filling
from foretell.store.bulk_totals import fill_trading_totals
from foretell.store.database import Database
from foretell.store.index.activity_roles import role_of
from foretell.store.index.amount_classes import class_of
from foretell.store.tables import (
    activities,
    balance_changes,
    balances,
    blocks,
    conditions,
    event_tags,
    events,
    exchange_fills,
    fills,
    locked_collateral,
    markets,
    position_changes,
    positions,
    quote_points,
    quotes,
    rank_counts,
    ranking_cursors,
    ranking_marks,
    referred_wallets,
    standings,
    supplies,
    tags,
    trades,
    wins,
)

NOW_S: Final = 1_790_000_000
DAY_S: Final = 86_400
DAYS: Final = 400
TRADES_PER_BLOCK: Final = 5
TYPICAL_POSITIONS: Final = 6
REFERRER: Final = 18
"""The number of a wallet that referred those after it."""
REFERRED: Final = 50
FEE_UNITS: Final = 20_000
TRADES_PER_FEE: Final = 10
"""Of so many trades one pays a fee, as if few markets had one."""
ROWS_PER_INSERT: Final = 20_000
EXCHANGE: Final = f"0x{keccak256(b'exchange').hex()[:40]}"
"""It keeps some tokens for the last wallet."""
KEPT_MARKETS: Final = 50
KEPT_UNITS: Final = 10
CATEGORIES: Final = ("politics", "sports", "crypto", "weather", "world")
FILLED: Final = (
    blocks,
    conditions,
    events,
    event_tags,
    tags,
    markets,
    referred_wallets,
    activities,
    exchange_fills,
    trades,
    fills,
    quote_points,
    quotes,
    position_changes,
    positions,
    balance_changes,
    balances,
    supplies,
    locked_collateral,
    *CATALOGUED,
    *BUILT,
)
SUMMED: Final = (standings, rank_counts, wins, ranking_cursors, ranking_marks)


class HistoryPlan(NamedTuple):
    """The number of fills (two for each trade), of wallets and of markets."""

    fills: int
    wallets: int = 50_000
    markets: int = 5_000


class Names(NamedTuple):
    """What the reads ask for: a wallet with 1,000 positions and as many closed, a typical one, a hot market, its Yes, and more.

    `median` is in the middle of the ranking; `named` has a profile; `exchange` is that of every market.
    """

    whale: str
    typical: str
    condition_id: str
    token_id: str
    median: str = ""
    referrer: str = ""
    named: str = ""
    exchange: str = ""


def a_wallet(number: int) -> str:
    """Return the address of a wallet."""
    return f"0x{keccak256(b'wallet %d' % number).hex()[:40]}"


def a_condition(number: int) -> str:
    """Return the id of a market's condition."""
    return f"0x{keccak256(b'condition %d' % number).hex()}"


def a_token(market: int, *, is_yes: bool) -> str:
    """Return the id of a token."""
    return str(int.from_bytes(keccak256(b"token %d %d" % (market, is_yes))))


class History:
    """The rows of a history, by table; the same plan gives the same rows."""

    def __init__(self, plan: HistoryPlan, seed: int = 1) -> None:
        self._plan, self._random = plan, Random(seed)  # noqa: S311 - nothing is secret here
        self._parties = Parties(plan.wallets, plan.markets, self._random)
        self._wallets = [a_wallet(number) for number in range(plan.wallets)]
        self._conditions = [a_condition(number) for number in range(plan.markets)]
        self._tokens = [
            (a_token(number, is_yes=True), a_token(number, is_yes=False))
            for number in range(plan.markets)
        ]
        self._positions: dict[tuple[int, int, bool], tuple[Position, int, int]] = {}
        self._recent: dict[tuple[int, int, bool], None] = {}
        self._volume = [0] * plan.markets
        self._locked = [0] * plan.markets
        self._prices = [50] * plan.markets
        self._points: dict[tuple[str, int], tuple[Any, ...]] = {}
        categories = [CATEGORIES[number % len(CATEGORIES)] for number in range(plan.markets)]
        self._standings = Standings(NOW_S, categories)
        self._brought = BroughtOrders()
        self.rows: dict[str, list[tuple[Any, ...]]] = {table.name: [] for table in FILLED}

    @property
    def names(self) -> Names:
        """What the reads ask for."""
        hot = self._conditions[0], self._tokens[0][0]
        whale, typical = self._wallets[-1], self._wallets[17]
        referrer, named = self._wallets[REFERRER], self._wallets[0]
        exchange = self._wallets[0]
        return Names(whale, typical, *hot, referrer=referrer, named=named, exchange=exchange)

    @property
    def fills(self) -> int:
        """The number of fills."""
        return self._plan.fills

    @property
    def median_wallet(self) -> str:
        """The wallet in the middle of the ranking by gain, once the history is written."""
        return self._wallets[self._standings.median_wallet()]

    @property
    def typical_wallet(self) -> str:
        """A wallet with a closed position and few open ones, once the history is written.

        They are as many whatever the size of the history, so that a read of them does the same work.
        """
        held: Counter[int] = Counter()
        closed: Counter[int] = Counter()
        for (wallet, _, _), (position, _, _) in self._positions.items():
            (held if position.size_units else closed)[wallet] += 1
        numbers = range(self._plan.wallets)
        return self._wallets[
            min(numbers, key=lambda each: (closed[each] != 1, abs(held[each] - TYPICAL_POSITIONS)))
        ]

    async def write(self, database: Database) -> None:
        """Write everything but the sums, in parts of bounded size."""
        async with filling(database, FILLED) as write_rows:
            for number in range(self._plan.markets):
                self._list(number)
            for index in range(self._plan.fills // 2):
                self._trade(index)
                if index % ROWS_PER_INSERT == ROWS_PER_INSERT - 1:
                    await self._flush(write_rows)
            self._close()
            await self._flush(write_rows)

    async def write_sums(self, database: Database) -> None:
        """Write the sums by wallet and the totals of markets of what was written, the same as the indexer's."""
        kept, wallets = self._standings, self._wallets
        ranked = kept.standings(wallets)
        rows_by_table = {
            standings: ranked,
            rank_counts: counts_of(ranked),
            wins: kept.wins(self._positions, wallets, self._tokens),
            ranking_cursors: kept.cursors(),
            ranking_marks: kept.marks(self._conditions),
        }
        async with filling(database, SUMMED) as write_rows:
            for table, rows in rows_by_table.items():
                await write_rows(table, rows)
        await fill_trading_totals(database)
        await refresh_listings(ListingContext(database, lambda: NOW_S * 1000))

    async def _flush(self, write_rows: WriteRows) -> None:
        for table in FILLED:
            await write_rows(table, self.rows[table.name])
            self.rows[table.name] = []

    def _list(self, number: int) -> None:
        condition_id, (yes, no) = self._conditions[number], self._tokens[number]
        text, ends_ms = f"Will number {number} happen?", (NOW_S + DAY_S) * 1000
        event = (number + 1, f"event-{number}", text, self._wallets[0], 1, "binary")
        category = CATEGORIES[number % len(CATEGORIES)]
        self.rows["events"].append((*event, category, text, None, "i", ends_ms, ends_ms, ends_ms))
        self.rows["event_tags"].append((number + 1, number % len(CATEGORIES) + 1))
        ids = (number + 1, number + 1, condition_id, condition_id, "binary", f"r{number}")
        names = (f"market-{number}", text, text, "Yes", "No", yes, no)
        rest = (self._wallets[0], self._wallets[0], "dro_moov2", "m", "u", "i", False, None, None)
        self.rows["markets"].append((*ids, *names, *rest, 100, 1, 0, ends_ms, ends_ms))
        place = (0, number, 0)
        self.rows["conditions"].append(
            (*place, condition_id, self._wallets[0], condition_id, yes, no)
        )

    def _trade(self, index: int) -> None:
        count = self._plan.fills // 2
        taker, maker, market = self._parties.choose(index)
        block = 1 + index // TRADES_PER_BLOCK
        at_s = NOW_S - DAYS * DAY_S + DAYS * DAY_S * (index - index % TRADES_PER_BLOCK) // count
        if index % TRADES_PER_BLOCK == 0:
            self._standings.begin_block(block, at_s, self._positions)
        price = min(max(self._prices[market] + self._random.choice((-1, 0, 1)), 1), 99)
        self._prices[market] = price
        cost = SIZE_UNITS * price // 100
        held = self._positions.get((taker, market, True))
        is_selling = held is not None and held[0].size_units >= SIZE_UNITS and taker != maker
        is_closing = self._parties.is_closing(maker, market)
        match = GeneratedMatch(taker, maker, market, cost, is_selling, is_closing)
        parts = match.parts()
        if match.is_mint:
            self._locked[market] += SIZE_UNITS
        for part, (wallet, is_yes, is_sold, units) in enumerate(parts):
            self._move((wallet, market, is_yes), (is_sold, units), block, at_s)
            act = (self._wallets[wallet], "TRADE", self._conditions[market])
            token = self._tokens[market][not is_yes]
            traded = (token, "SELL" if is_sold else "BUY", SIZE_UNITS, units, part == 0, at_s)
            place, tx_hash = (block, 2 * index + part, 0), f"0x{index}"
            role = role_of(act[1], traded[1], is_taker=part == 0)
            self.rows["activities"].append((*place, *act, *traded, tx_hash, class_of(units), role))
            order_id = f"order-{index}" if part == 0 else f"maker-{index}"
            other = self._wallets[parts[1 - part][0]]
            fee = FEE_UNITS if part == 0 and index % TRADES_PER_FEE == 0 else 0
            filled = (order_id, act[0], other, traded[1], token, SIZE_UNITS, units, fee)
            self.rows["exchange_fills"].append((*place, *filled, part == 0, tx_hash))
        self._standings.trade((taker, maker), (parts[0].units, parts[1].units), market)
        self._match(index, match, at_s)

    def _move(
        self, key: tuple[int, int, bool], sold: tuple[bool, int], block: int, at_s: int
    ) -> None:
        before = self._positions.get(key, (NO_POSITION, 0, 0))[0]
        is_sold, units = sold
        change = (sale if is_sold else purchase)(SIZE_UNITS, units, 0)
        self._positions[key] = apply(before, change), at_s, block
        self._recent[key] = None

    def _match(self, index: int, match: GeneratedMatch, at_s: int) -> None:
        taker, maker, market, cost = match[:4]
        self._volume[market] += cost
        condition_id, wallet = self._conditions[market], self._wallets[taker]
        side = "SELL" if match.is_taker_selling else "BUY"
        head = (f"trade-{index}", index + 1, condition_id, self._tokens[market][0], True)
        brought = head[2:4], (wallet, side), (SIZE_UNITS, cost, at_s)
        self.rows["orders"] += self._brought.bring(index, *brought)
        sizes = (SIZE_UNITS, cost, SIZE_UNITS, 0, "CONFIRMED", f"0x{index}")
        times = (at_s * 1000, at_s * 1000)
        self.rows["trades"].append((*head, f"order-{index}", wallet, "key", side, *sizes, *times))
        price = self._prices[market]
        made = (f"trade-{index}", 0, f"maker-{index}", self._wallets[maker], "key")
        kind = "MINT" if match.is_mint else "COMPLEMENTARY"
        amounts = (price, 100, SIZE_UNITS, match.making_units, match.taking_units, kind)
        token = self._tokens[market][match.is_mint]
        of_maker = ("SELL" if match.is_maker_selling else "BUY", token, not match.is_mint)
        self.rows["fills"].append((*made, *of_maker, *amounts, at_s * 1000, index + 1))
        top = (100, max(price - 1, 1), min(price + 1, 99), price, self._volume[market])
        self._points[condition_id, at_s // 60] = top
        self._standings.quote(market, at_s, BookTop(*top[:4]))
        if (index + 1) % TRADES_PER_BLOCK == 0:
            self._end_block()

    def _end_block(self) -> None:
        """Keep the positions that the block changed, once each."""
        for wallet, market, is_yes in self._recent:
            position, at_s, block = self._positions[wallet, market, is_yes]
            owner, token = self._wallets[wallet], self._tokens[market][not is_yes]
            amounts = (position.size_units, position.cost_units, position.bought_units)
            gained = (position.spent_units, position.realized_units, at_s, block)
            self.rows["position_changes"].append(
                (owner, token, self._conditions[market], *amounts, *gained)
            )
            self.rows["balance_changes"].append((owner, token, position.size_units, block))
        self._recent.clear()

    def _close(self) -> None:
        self._end_block()
        count = self._plan.fills // 2
        last = 1 + (count - 1) // TRADES_PER_BLOCK
        self.rows["blocks"].append((last, a_condition(-1), a_condition(-2), NOW_S))
        for number, slug in enumerate(CATEGORIES):
            events_max = -(-(self._plan.markets - number) // len(CATEGORIES))
            self.rows["tags"].append((number + 1, slug.title(), slug, NOW_S * 1000, events_max))
        referrer, referred = self._wallets[REFERRER], self._wallets[REFERRER + 1 : -1]
        self.rows["referred_wallets"] = [(each, referrer, 0) for each in referred[:REFERRED]]
        games = [
            number + 1
            for number in range(self._plan.markets)
            if CATEGORIES[number % len(CATEGORIES)] == "sports"
        ]
        tag_id, at_ms = CATEGORIES.index("sports") + 1, NOW_S * 1000
        catalogued = catalogue_rows(games, tag_id, self._wallets, at_ms)
        for table, rows in {**catalogued, **self._brought.sums()}.items():
            self.rows[table.name] = rows
        tops = [BookTop(100, max(each - 1, 1), min(each + 1, 99), each) for each in self._prices]
        self._standings.close(last, self._positions, tops)
        held: Counter[str] = Counter()
        for (wallet, market, is_yes), (position, at_s, block) in self._positions.items():
            owner, token = self._wallets[wallet], self._tokens[market][not is_yes]
            held[token] += position.size_units
            amounts = (position.size_units, position.cost_units, position.bought_units)
            gained = (position.spent_units, position.realized_units, at_s, block)
            self.rows["positions"].append(
                (owner, token, self._conditions[market], *amounts, *gained)
            )
            kept = KEPT_UNITS if self._is_kept(wallet, market, position) else 0
            self.rows["balances"].append((owner, token, position.size_units - kept, block))
            if kept:
                self.rows["balances"].append((EXCHANGE, token, kept, block))
        self.rows["supplies"] = [(token, str(units)) for token, units in held.items()]
        for market, condition_id in enumerate(self._conditions):
            price, volume = self._prices[market], self._volume[market]
            top = (100, max(price - 1, 1), min(price + 1, 99), price, "BUY")
            self.rows["quotes"].append((condition_id, *top, volume, NOW_S * 1000, 0))
            self.rows["locked_collateral"].append((condition_id, self._locked[market], 1))
        self.rows["quote_points"] = [(*key, *top) for key, top in self._points.items()]

    def _is_kept(self, wallet: int, market: int, position: Position) -> bool:
        """Return whether the exchange keeps some of these tokens."""
        is_whale = wallet == self._plan.wallets - 1 and market < KEPT_MARKETS
        return is_whale and position.size_units > KEPT_UNITS
