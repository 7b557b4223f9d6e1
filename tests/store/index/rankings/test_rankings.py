"""The standings against a slow computation from all history, after random changes in random steps."""

import os
import random
from collections import Counter
from fractions import Fraction
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows, an_event_row
from tests.rigs.values import NOW_S, a_token_pair, a_word

from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.prices import BookTop, current_price, value_units
from foretell.domain.portfolio.rank_buckets import bucket_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.queries.leaderboards import (
    RankingOrder,
    RankingScope,
    load_ranking_of,
    load_rankings,
)
from foretell.store.tables import (
    activities,
    events,
    markets,
    payouts,
    position_changes,
    quote_points,
    quotes,
    rank_counts,
    standings,
    wins,
)

pytestmark = pytest.mark.anyio

DAY_S: Final = 86_400
WALLETS: Final = ("ann", "bob", "carol", "dave")
MARKETS: Final = ("rain", "snow", "hail")
CATEGORY: Final = {"rain": "weather", "snow": "weather", "hail": "politics"}
STEPS: Final = 30
SEEDS: Final = int(os.environ.get("FORETELL_TEST_RANKINGS", "1"))

Sums = Counter[tuple[int, str, str]]


class History:
    """A market place over forty days, whose standings are kept now and then."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database, self.random = database, random.Random(seed)
        self.now_s = NOW_S
        self.block = 1
        self.listed: set[str] = set()

    async def play(self) -> None:
        async with self.database.writing() as tx:
            for name in MARKETS:
                await Rows(tx, self._blocks()).prepare(name)
        for _ in range(STEPS):
            self.now_s += self.random.choice([1, 600, DAY_S // 2, DAY_S, 3 * DAY_S])
            async with self.database.writing() as tx:
                rows = Rows(tx, self._blocks())
                for _ in range(self.random.randint(1, 4)):
                    await self._change(rows)
            if self.random.random() < 0.3:
                await self.keep()
        await self.keep()

    async def keep(self) -> None:
        await keep_rankings(self.database, self.now_s * 1000, self.random.choice([2, 3, 50]))

    def _blocks(self) -> int:
        self.block += 20
        return self.block

    async def _change(self, rows: Rows) -> None:
        name = self.random.choice(MARKETS)
        who = self.random.choice(WALLETS)
        units = self.random.randint(1, 999)
        kind = self.random.choice(["hold", "hold", "close", "buy", "quote", "list", "resolve"])
        if kind in {"hold", "close"}:
            size, cost = (0, 0) if kind == "close" else (units, self.random.randint(0, units))
            await rows.hold(
                who,
                name,
                size,
                cost,
                realized_units=self.random.randint(-50, 50),
                is_yes=self.random.random() < 0.5,
                changed_at_s=self.now_s,
            )
        elif kind == "buy":
            await rows.buy(who, name, 2 * units, units, timestamp_s=self.now_s)
        elif kind == "quote":
            await self._quote(rows, name)
        elif kind == "list" and name not in self.listed:
            self.listed.add(name)
            await self._list(rows, name)
        elif kind == "resolve" and self.random.random() < 0.3:
            await self._resolve(rows, name)

    async def _quote(self, rows: Rows, name: str) -> None:
        bid = self.random.randint(1, 80)
        await rows.quoted_at(name, self.now_s, bid, bid + 5)
        top = (a_word(name), 100, bid, bid + 5, None, None, 0, self.now_s * 1000 + bid, 0)
        await rows.tx.upsert_rows(quotes, [top])

    async def _list(self, rows: Rows, name: str) -> None:
        event = an_event_row(name, main_category_slug=CATEGORY[name])
        await rows.list_event(event)

    async def _resolve(self, rows: Rows, name: str) -> None:
        known = sa.select(payouts).where(payouts.c.condition_id == a_word(name))
        if await rows.tx.first(known) is None:
            await rows.resolve(name, self.random.randint(0, 2), 1, self.now_s)


class SlowRankings:
    """The standings and wins, computed from every row of the history."""

    def __init__(self, tables: dict[str, list[Any]], now_s: int) -> None:
        self._tables, self._now_s = tables, now_s
        slugs = {row.event_id: row.main_category_slug for row in tables["events"]}
        self._category = {row.condition_id: slugs[row.event_id] for row in tables["markets"]}
        self._yes = {a_word(name): str(a_token_pair(name).yes) for name in MARKETS}

    def gains(self) -> Sums:
        now, sums = self._gains(None), Sums()
        for period in Period:
            before = self._gains(self._since(period)) if period else Counter[tuple[str, str]]()
            for (category, wallet), units in now.items():
                sums[period, category, wallet] = units - before[category, wallet]
        return Sums({key: units for key, units in sums.items() if units})

    def volumes(self) -> Sums:
        sums = Sums()
        for period in Period:
            since_s = self._since(period) if period else 0
            for act in self._tables["activities"]:
                if act.timestamp_s >= since_s:
                    for category in {"", self._category.get(act.condition_id, "")}:
                        sums[period, category, act.wallet] += act.cost_units
        return sums

    def wins(self) -> set[tuple[Any, ...]]:
        last = {(row.wallet, row.token_id): row for row in self._tables["position_changes"]}
        return {
            (
                period,
                row.wallet,
                row.token_id,
                self._category.get(row.condition_id, ""),
                row.realized_units,
            )
            for row in last.values()
            for period in Period
            if row.size_units == 0
            and row.realized_units > 0
            and (not period or row.changed_at_s >= self._since(period))
        }

    def _since(self, period: Period) -> int:
        return self._now_s - period.seconds

    def _gains(self, at_s: int | None) -> Counter[tuple[str, str]]:
        last: dict[tuple[str, str], Any] = {}
        for row in self._tables["position_changes"]:
            if at_s is None or row.changed_at_s < at_s:
                last[row.wallet, row.token_id] = row
        sums = Counter[tuple[str, str]]()
        for row in last.values():
            price = self._price(row.condition_id, at_s)
            if row.token_id != self._yes[row.condition_id]:
                price = 1 - price
            worth = value_units(row.size_units, price)
            for category in {"", self._category.get(row.condition_id, "")}:
                sums[category, row.wallet] += row.realized_units + worth - row.cost_units
        return sums

    def _price(self, condition_id: str, at_s: int | None) -> Fraction:
        paid = [
            Payout(row.payout_yes, row.payout_no)
            for row in self._tables["payouts"]
            if row.condition_id == condition_id and (at_s is None or row.timestamp_s < at_s)
        ]
        tops = [
            BookTop._make(row[2:6])
            for row in self._tables["quote_points"]
            if row.condition_id == condition_id and (at_s is None or row.minute < at_s // 60)
        ]
        return current_price(tops[-1] if tops else None, paid[0] if paid else None, is_yes=True)


async def read_tables(database: Database) -> dict[str, list[Any]]:
    ordered = {
        position_changes: position_changes.c.block_number,
        quote_points: quote_points.c.minute,
        activities: activities.c.block_number,
        payouts: payouts.c.block_number,
        markets: markets.c.market_id,
        events: events.c.event_id,
    }
    async with database.reading() as tx:
        return {
            table.name: list(await tx.all(sa.select(table).order_by(column)))
            for table, column in ordered.items()
        }


CLOSED_BEFORE_LISTED: Final = 1
"""A seed in which a win is closed before its market is listed, and before a period's sum has come to it."""


@pytest.mark.parametrize("heavy_from", [1, 2, 2_000])
@pytest.mark.parametrize("seed", sorted({CLOSED_BEFORE_LISTED, *range(SEEDS)}))
async def test_the_standings_equal_a_slow_computation_from_all_history(
    monkeypatch: pytest.MonkeyPatch, database: Database, seed: int, heavy_from: int
) -> None:
    """Every bucket has parts, or those that two wallets are in, or none; a step reads little."""
    monkeypatch.setattr("foretell.store.index.rankings.parts.HEAVY_FROM", heavy_from)
    monkeypatch.setattr("foretell.store.index.rankings.history.ACTIVITIES_PER_TRADE_MAX", 1)
    monkeypatch.setattr("foretell.store.index.rankings.prices.QUOTES_PER_READ_MAX", 2)
    history = History(database, seed)
    await history.play()
    slow = SlowRankings(await read_tables(database), history.now_s)
    async with database.reading() as tx:
        kept = await tx.all(sa.select(standings))
        won = await tx.all(sa.select(wins))
        counted = await tx.all(sa.select(rank_counts))
        ranks = {
            (scope, order): [
                (await load_ranking_of(tx, scope, order, Address(row.wallet)), row.wallet)
                for row in await load_rankings(tx, scope, order, limit=99, offset=0)
            ]
            for scope in (RankingScope(Period.ALL, None), RankingScope(Period.MONTH, "weather"))
            for order in RankingOrder
        }
    assert {tuple(row[:3]): row.gain_units for row in kept if row.gain_units} == slow.gains()
    assert {tuple(row[:3]): row.volume_units for row in kept if row.volume_units} == slow.volumes()
    assert {tuple(row) for row in won} == slow.wins()
    assert len(kept) > len(WALLETS)
    gains = Counter((*row[:2], "gain", bucket_of(row.gain_units)) for row in kept)
    volumes = Counter(
        (*row[:2], "volume", bucket_of(row.volume_units)) for row in kept if row.volume_units > 0
    )
    assert {tuple(row[:4]): row.wallets for row in counted} == {**gains, **volumes}
    for ranked in ranks.values():
        assert [(each.rank, each.wallet) for each, _ in ranked if each] == [
            (place, wallet) for place, (_, wallet) in enumerate(ranked, start=1)
        ]
    assert sum(map(len, ranks.values())) > len(WALLETS)
