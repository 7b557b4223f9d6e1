"""The volumes of builders that `foretell index rebuild` adds up again between the batches of an engine."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, Final

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs
from tests.rigs.builders.decided_trading import HOUR_MS, PEOPLE, Trading
from tests.rigs.builders.sums import BUILDER_TABLES, a_code, kept_sums, slow_sums
from tests.rigs.rows import Rows
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    an_address,
    an_open_market,
    an_order_id,
    some_funds,
)
from typing_extensions import override

from foretell.domain.errors.storage import RebuildRunning
from foretell.domain.exchange.commands import Command, SplitTrade
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.domain.portfolio.builder_volumes import DAY_MS
from foretell.indexer.rebuild import Pacing, RebuildContext, rebuild_builders
from foretell.store.database import Database, Transaction
from foretell.store.tables import (
    builder_days,
    builder_recounts,
    builder_totals,
    builder_users,
    fills,
    next_builder_days,
    next_builder_totals,
    next_builder_users,
    trades,
)
from foretell.store.trading.builder_days import hold_builder_sums
from foretell.store.trading.builder_recount import begin_recount, end_recount

pytestmark = pytest.mark.anyio

MARKETS: Final = ("market", "rain", "snow", "hail")
CODES: Final = (None, a_code(1), a_code(2))
UNKNOWN: Final = a_code(9)
"""A builder without orders."""
NEXT_TABLES: Final = (
    builder_recounts,
    next_builder_days,
    next_builder_users,
    next_builder_totals,
)
BEFORE: Final = 12
MEANWHILE: Final = 40
ROWS_MAX: Final = 2
STOPS: Final = (2, 5, 8, 14, 17, 23, 30)

Look = Callable[[], Awaitable[None]]


class Watched(Pacing):
    """Pauses in which others act."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look

    @override
    async def pause(self) -> None:
        await self._look()


class Killed(Exception):
    """The process ended after a step."""


@pytest.fixture
async def trading(trading: Trading) -> Trading:
    """Trading in all markets."""
    for market in MARKETS[1:]:
        await trading.write(an_open_market(market), some_funds(*PEOPLE, market=market))
    return trading


async def rebuild(database: Database, look: Look, rows_max: int = ROWS_MAX) -> int:
    context = RebuildContext(database, lambda: NOW_MS, rows_max, pacing=Watched(look))
    return await rebuild_builders(context)


def some_trades(trading: Trading, rng: random.Random, number: int) -> Iterator[Command]:
    """Yield a match of one taker with two makers in some market, and what becomes of any trade that has not settled."""
    at_ms = NOW_MS + number * 7 * HOUR_MS
    name = rng.choice(MARKETS)
    market = an_open_market(name)
    ann, bob, carol = rng.sample(PEOPLE, 3)
    makers = [a_sell(who, 50, 5 * TOKEN, market=name, salt=f"{number}") for who in (bob, carol)]
    taker = a_buy(ann, 50, 10 * TOKEN, market=name, salt=f"{number}")
    for order in (*makers, taker):
        yield a_placing(order, market=market, at_ms=at_ms, builder=rng.choice(CODES))
    if rng.random() < 0.7:
        unsettled = rng.choice(list(trading.state.unsettled_trades.values()))
        trade_id, parts = unsettled.trade.trade_id, unsettled.trade.fills
        yield a_settlement(trade_id, TradeStatus.RETRYING, "")
        if len(parts) > 1 and rng.random() < 0.7:
            yield SplitTrade(at_ms, trade_id, ((parts[1].maker_order_id,), ()), ())
        if rng.random() < 0.7:
            yield a_settlement(trade_id, TradeStatus.FAILED, "")


async def trade_on(trading: Trading, rng: random.Random, numbers: Iterator[int]) -> None:
    for command in some_trades(trading, rng, next(numbers)):
        trading.decide(command)
        if rng.random() < 0.3:
            await trading.projection.catch_up()
    await trading.projection.catch_up()


async def spoil(database: Database) -> None:
    """Write rows that are wrong, delete some that should be there, and add some that should not."""
    async with database.writing() as tx:
        users = builder_users.c
        await tx.execute(builder_users.delete().where(users.wallet == an_address("alice")))
        bob = users.wallet == an_address("bob")
        await tx.execute(builder_users.update().where(bob).values(fills=users.fills + 1))
        await tx.execute(builder_days.update().values(volume_low=1, users=9))
        await tx.execute(builder_totals.delete())
        for number in range(2 * ROWS_MAX + 1):
            wallet = an_address(f"unknown {number}")
            await tx.insert_rows(builder_users, [(UNKNOWN, wallet, number, 1)])
            await tx.insert_rows(builder_days, [(UNKNOWN, number, 0, 1, 1, 1, 1)])
        await tx.insert_rows(builder_totals, [(UNKNOWN, 0, 5, 5, 5)])


async def rows_of(database: Database, tables: Collection[sa.Table]) -> set[tuple[Any, ...]]:
    async with database.reading() as tx:
        return {(table.name, *row) for table in tables for row in await tx.all(sa.select(table))}


@pytest.mark.parametrize("rows_max", [1, 3])
@pytest.mark.parametrize("seed", range(3))
async def test_volumes_rebuilt_between_batches_of_an_engine_are_the_sums_of_trades(
    trading: Trading, seed: int, rows_max: int
) -> None:
    rng, numbers = random.Random(seed), iter(range(1_000))
    for _ in range(BEFORE):
        await trade_on(trading, rng, numbers)
    await spoil(trading.database)
    acts = 0

    async def act() -> None:
        nonlocal acts
        if acts < MEANWHILE and rng.random() < 0.4:
            acts += 1
            await trade_on(trading, rng, numbers)

    async with Database(trading.database.url) as other:
        with capture_logs():
            builders = await rebuild(other, act, rows_max)
    assert acts > BEFORE
    expected = await slow_sums(trading.database)
    assert await kept_sums(trading.database) == expected
    assert builders == len(expected["builder_totals"]) == 2
    assert await rows_of(trading.database, NEXT_TABLES) == set()
    await trade_on(trading, rng, numbers)
    assert await kept_sums(trading.database) == await slow_sums(trading.database)
    assert await rows_of(trading.database, NEXT_TABLES) == set()


async def test_each_row_is_as_before_until_it_is_exact(trading: Trading) -> None:
    rng, numbers = random.Random(1), iter(range(1_000))
    for _ in range(BEFORE):
        await trade_on(trading, rng, numbers)
    exact = await rows_of(trading.database, BUILDER_TABLES)
    await spoil(trading.database)
    before = await rows_of(trading.database, BUILDER_TABLES)
    seen = [before]

    async def look() -> None:
        now = await rows_of(trading.database, BUILDER_TABLES)
        assert now <= before | exact
        assert now & exact >= seen[-1] & exact, "what is exact stays"
        seen.append(now)

    await rebuild(trading.database, look)
    assert seen[-1] == exact
    assert max(len(was ^ now) for was, now in itertools.pairwise(seen)) <= 2 * ROWS_MAX


@pytest.mark.parametrize("last", STOPS)
async def test_a_rebuild_that_ends_after_a_step_leaves_nothing_that_the_next_does_not_mend(
    trading: Trading, last: int
) -> None:
    rng, numbers = random.Random(last), iter(range(1_000))
    for _ in range(BEFORE):
        await trade_on(trading, rng, numbers)
    exact = await rows_of(trading.database, BUILDER_TABLES)
    steps = 0

    async def end() -> None:
        nonlocal steps
        steps += 1
        if steps == last:
            raise Killed

    with pytest.raises(Killed):
        await rebuild(trading.database, end)
    assert await rows_of(trading.database, BUILDER_TABLES) == exact
    for _ in range(3):
        await trade_on(trading, rng, numbers)
    assert await kept_sums(trading.database) == await slow_sums(trading.database)
    await spoil(trading.database)

    async def nothing() -> None:
        """Change nothing."""

    await rebuild(trading.database, nothing)
    assert await kept_sums(trading.database) == await slow_sums(trading.database)
    assert await rows_of(trading.database, NEXT_TABLES) == set()


@pytest.mark.parametrize("state", [None, False, True])
async def test_a_rebuild_whose_place_another_took_ends(
    trading: Trading,
    state: bool | None,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Another one begins before this one does, or it ends this one while trades are counted or rows are swapped."""
    await trade_on(trading, random.Random(1), iter(range(1)))
    exact = await rows_of(trading.database, BUILDER_TABLES)

    async def begin_another() -> None:
        async with trading.database.writing() as tx:
            if await tx.scalar(sa.select(builder_recounts.c.is_complete)) == state:
                await end_recount(tx)
                if state is not False:
                    await begin_recount(tx)

    with pytest.raises(RebuildRunning):
        await rebuild(trading.database, begin_another)
    assert await rows_of(trading.database, BUILDER_TABLES) == exact


async def test_a_split_waits_for_a_step_of_a_rebuild(trading: Trading) -> None:
    """The step reads trades before their fills."""
    makers = [a_sell(who, 50, 5 * TOKEN) for who in ("bob", "carol")]
    taker = a_buy("alice", 50, 10 * TOKEN)
    await trading.write(*(a_placing(each, builder=a_code(1)) for each in (*makers, taker)))
    trade_id = trade_id_of(an_order_id(taker), 0)
    await trading.write(a_settlement(trade_id, TradeStatus.RETRYING, ""))
    trading.decide(SplitTrade(NOW_MS, trade_id, ((an_order_id(makers[1]),), ()), ()))
    async with Database(trading.database.url) as other, other.writing() as tx:
        await hold_builder_sums(tx)
        splitting = asyncio.create_task(trading.projection.catch_up())
        done, _ = await asyncio.wait([splitting], timeout=0.3)
        assert not done
        assert await tx.scalar(sa.select(sa.func.count()).select_from(trades)) == 1
    await splitting
    async with trading.database.reading() as tx:
        assert await tx.scalar(sa.select(sa.func.count()).select_from(trades)) == 2


class Counter:
    """The most rows that a step has read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read = self.most = 0
        read_all = Transaction.all

        async def count(tx: Transaction, *arguments: Any) -> Any:
            rows = await read_all(tx, *arguments)
            self.read += len(rows)
            return rows

        monkeypatch.setattr(Transaction, "all", count)

    def end_step(self) -> None:
        self.most, self.read = max(self.most, self.read), 0


async def match_many(database: Database, count: int, days_between: int) -> None:
    """Write trades of two wallets with orders of one builder, on one day or each on its own, and none of their sums."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for number in range(count):
            await rows.match("rain", TOKEN, NOW_MS + number * days_between * DAY_MS)
        pairs = await tx.all(
            sa.select(trades.c.taker_order_id, fills.c.maker_order_id).join_from(
                trades, fills, fills.c.trade_id == trades.c.trade_id
            )
        )
        for order_id in (each for pair in pairs for each in pair):
            brought = {"order_id": order_id, "builder": a_code(1)}
            await rows.rest("bob", "rain", Side.BUY, 50, 10, **brought)


@pytest.mark.parametrize("days_between", [0, 1])
@pytest.mark.parametrize("trades_count", [60])
async def test_a_step_reads_and_changes_no_more_rows_when_a_builder_has_more_trades(
    database: Database, monkeypatch: pytest.MonkeyPatch, days_between: int, trades_count: int
) -> None:
    """All of two wallets: on one day, or each on a day of its own."""
    rows_max = 4
    await match_many(database, trades_count, days_between)
    kept = [await rows_of(database, (*BUILDER_TABLES, *NEXT_TABLES))]
    most_changed = 0
    counter = Counter(monkeypatch)

    async def look() -> None:
        nonlocal most_changed
        counter.end_step()
        kept.append(await rows_of(database, (*BUILDER_TABLES, *NEXT_TABLES)))
        counter.read = 0
        most_changed = max(most_changed, len(kept[-2] ^ kept[-1]))

    await rebuild(database, look, rows_max)
    assert len(kept) > trades_count / rows_max
    parts = 2 * rows_max
    last_days = builders = places = 2
    assert most_changed <= 2 * parts + last_days + builders + places
    assert counter.most <= 12 * rows_max
    assert await kept_sums(database) == await slow_sums(database)
