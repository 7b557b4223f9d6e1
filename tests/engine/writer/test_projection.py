import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.builders.sums import a_code
from tests.rigs.clock import Clock
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_state,
    a_word,
    an_address,
    an_observation,
    an_open_market,
    an_order_id,
    some_funds,
)

from foretell.domain.errors.storage import StoreUnavailable, TablesSetBack
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    CancelOrders,
    ChangeTick,
    Command,
    ExpireOrders,
    ResolveMarket,
    SplitTrade,
    TradeSeen,
)
from foretell.domain.exchange.order import OrderType
from foretell.domain.exchange.trade import TradeStatus, part_id_of, trade_id_of
from foretell.domain.portfolio.prices import BookTop
from foretell.engine.writer import projection as projection_module
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.projection import Projection
from foretell.journal.files.journal import FileJournal
from foretell.runtime.worker import PollIntervals
from foretell.store.database import Database
from foretell.store.tables import failed_volumes, metadata, projections, quote_points, trades
from foretell.store.trading.orders import load_order
from foretell.store.trading.projected import PROJECTED
from foretell.store.trading.quote_points import load_first_minute
from foretell.store.trading.trades import load_market_trades, load_quotes, load_trades_by_id

pytestmark = pytest.mark.anyio

MARKET = a_word("market")
TAKER = a_buy("alice", price_ticks=41, size_units=10 * TOKEN)
GTD = a_buy("alice", price_ticks=20, expiration_s=NOW_S + 124)
TRADE_ID = trade_id_of(an_order_id(TAKER), 0)


def some_commands() -> list[Command]:
    """Return commands of every kind, with every kind of effect on orders and trades."""
    resting = a_sell("bob", price_ticks=40, size_units=6 * TOKEN)
    canceled = a_placing(a_buy("bob", price_ticks=10))
    return [
        an_open_market(),
        some_funds("alice", "bob", "carol"),
        a_placing(resting, at_ms=NOW_MS + 1_000, builder=a_code(1)),
        a_placing(TAKER, at_ms=NOW_MS + 61_000, builder=a_code(2)),
        a_settlement(TRADE_ID, TradeStatus.RETRYING, ""),
        ChangeTick(NOW_MS + 61_500, MARKET, 1_000),
        canceled,
        CancelOrders(NOW_MS + 62_000, an_address("bob"), (canceled.order_id,)),
        a_placing(GTD, OrderType.GTD, at_ms=NOW_MS + 63_000),
        ExpireOrders(NOW_MS + 64_000),
        a_placing(a_buy("carol", price_ticks=59, is_yes=False), at_ms=NOW_MS + 65_000),
        a_placing(a_buy("carol", price_ticks=30)),
        an_observation(
            allowances=[AllowanceSeen(an_address("carol"), EXCHANGE, is_collateral=True, units=0)]
        ),
        a_settlement(TRADE_ID, TradeStatus.CONFIRMED, a_word("tx")),
        ResolveMarket(NOW_MS + 200_000, MARKET),
    ]


@pytest.fixture
async def database(database_file: Path) -> AsyncIterator[Database]:
    async with Database(f"sqlite+aiosqlite:///{database_file}") as database:
        yield database


async def play(folder: Path, database: Database, *runs: list[Command]) -> None:
    """Submit the commands of each run and let the tables catch up; restart between runs."""
    for commands in runs:
        engine = Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
        projection = Projection(database)
        engine.subscribe(projection.on_committed)
        await projection.start()
        await engine.start()
        for command in commands:
            await engine.submit(command)
        await projection.catch_up()
        await engine.close()


async def dump(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row that the projection writes."""
    async with database.reading() as tx:
        return {
            table.name: sorted((tuple(row) for row in await tx.all(sa.select(table))), key=repr)
            for table in (*PROJECTED, projections)
        }


async def test_the_tables_hold_what_happened(tmp_path: Path, database: Database) -> None:
    await play(tmp_path / "journal", database, some_commands())
    async with database.reading() as tx:
        taker = await load_order(tx, an_order_id(TAKER))
        expired = await load_order(tx, an_order_id(GTD))
        (trade,) = await load_trades_by_id(tx, [TRADE_ID])
        quote = (await load_quotes(tx))[MARKET]
    assert taker is not None
    assert (taker.matched_units, taker.close_reason) == (10 * TOKEN, "filled")
    assert expired is not None
    assert (expired.status.value, expired.close_reason) == ("CANCELED", "expired")
    assert (trade.status, trade.tx_hash) == (TradeStatus.CONFIRMED, a_word("tx"))
    assert len(trade.trade.fills) == len(trade.fill_tokens) == 1
    assert (quote.best_bid_ticks, quote.best_ask_ticks) == (None, None)
    assert (quote.ticks_per_one, quote.last_price_ticks, quote.last_side) == (1_000, 410, "SELL")
    assert quote.volume_units == 6 * TOKEN * 40 // 100 + 4 * TOKEN * 59 // 100


async def test_the_last_side_of_a_market_is_in_terms_of_yes_for_a_taker_of_no_too(
    tmp_path: Path, database: Database
) -> None:
    maker, taker = a_sell("bob", 40, is_yes=False), a_buy("alice", 40, is_yes=False)
    story: list[Command] = [
        an_open_market(),
        some_funds("alice", "bob"),
        a_placing(maker),
        a_placing(taker),
    ]
    await play(tmp_path / "journal", database, story)
    async with database.reading() as tx:
        quote = (await load_quotes(tx))[MARKET]
    assert (quote.last_price_ticks, quote.last_side) == (60, "SELL")
    market = a_state(*story).market_by_id[MARKET]
    assert market.last_side is not None
    assert (market.last_price_ticks, market.last_side.name) == (60, "SELL")


async def test_the_top_of_the_book_is_kept_once_a_minute(
    tmp_path: Path, database: Database
) -> None:
    await play(tmp_path / "journal", database, some_commands()[:4])
    minute = NOW_S // 60
    async with database.reading() as tx:
        assert await load_first_minute(tx, MARKET) == minute
        rows = await tx.all(sa.select(quote_points).order_by(quote_points.c.minute))
    assert [(row.minute, BookTop._make(row[2:6])) for row in rows] == [
        (minute, BookTop(100, None, 40, None)),
        (minute + 1, BookTop(100, 41, None, 40)),
    ]


@pytest.mark.parametrize("cut", range(1, 15))
async def test_a_restart_resumes_where_it_stopped(
    tmp_path: Path, database_file: Path, database: Database, cut: int
) -> None:
    fresh = Path(shutil.copy(database_file, tmp_path / "fresh.db"))
    commands = some_commands()
    await play(tmp_path / "one", database, commands[:cut], commands[cut:])
    async with Database(f"sqlite+aiosqlite:///{fresh}") as other:
        await play(tmp_path / "another", other, commands)
        assert await dump(database) == await dump(other)


SPLITTING = a_buy("alice", price_ticks=41, size_units=20 * TOKEN)
SPLIT_ID = trade_id_of(an_order_id(SPLITTING), 0)


def some_split_commands() -> list[Command]:
    """Return commands that split a trade of three fills into three with outcomes of their own."""
    makers = [
        a_placing(a_sell(name, 40, 6 * TOKEN), builder=a_code(number % 2))
        for number, name in enumerate(["bob", "carol", "dave"])
    ]
    _, second, third = (placing.order_id for placing in makers)
    part_id = part_id_of(SPLIT_ID, second)
    return [
        an_open_market(),
        some_funds("alice", "bob", "carol", "dave"),
        *makers,
        a_placing(SPLITTING, builder=a_code(1)),
        a_settlement(SPLIT_ID, TradeStatus.RETRYING, ""),
        SplitTrade(NOW_MS + 1_000, SPLIT_ID, ((second, third),), (second,)),
        SplitTrade(NOW_MS + 2_000, part_id, ((third,),), ()),
        an_observation(
            trades=[
                TradeSeen(SPLIT_ID, TradeStatus.MINED, a_word("tx")),
                TradeSeen(part_id, TradeStatus.FAILED, ""),
            ],
            at_ms=NOW_MS + 3_000,
        ),
    ]


@pytest.mark.parametrize("cut", range(1, 10))
async def test_a_split_is_written_alike_wherever_the_tables_were_cut(
    tmp_path: Path, database_file: Path, database: Database, cut: int
) -> None:
    fresh = Path(shutil.copy(database_file, tmp_path / "fresh.db"))
    commands = some_split_commands()
    await play(tmp_path / "one", database, commands[:cut], commands[cut:])
    async with Database(f"sqlite+aiosqlite:///{fresh}") as other:
        await play(tmp_path / "another", other, commands)
        assert await dump(database) == await dump(other)


async def test_the_tables_hold_every_part_of_a_split_trade(
    tmp_path: Path, database: Database
) -> None:
    await play(tmp_path / "journal", database, some_split_commands())
    async with database.reading() as tx:
        rows = await load_market_trades(tx, MARKET, 10)
    assert {len(row.trade.fills) for row in rows} == {1}
    assert {row.sequence for row in rows} == {6}
    assert sorted(row.status.value for row in rows) == ["FAILED", "MINED", "RETRYING"]
    assert [row.trade.size_units for row in rows] == [6 * TOKEN] * 3
    assert [row.trade.taker_fill_units for row in rows] == [6 * TOKEN * 41 // 100] * 3


async def test_what_failed_to_settle_is_taken_off_the_volume_since_its_match(
    tmp_path: Path, database: Database
) -> None:
    await play(tmp_path / "journal", database, some_split_commands())
    async with database.reading() as tx:
        matched = await tx.all(sa.select(trades.c.status, trades.c.cost_units))
        quote = (await load_quotes(tx))[MARKET]
        points = await tx.all(sa.select(quote_points).order_by(quote_points.c.minute))
    failed = sum(row.cost_units for row in matched if row.status == "FAILED")
    assert failed > 0
    assert quote.failed_units == failed
    assert quote.volume_units == sum(row.cost_units for row in matched)
    async with database.reading() as tx:
        kept = await tx.all(sa.select(failed_volumes))
    assert points[-1].volume_units == quote.volume_units
    assert [(row.length_minutes, row.units) for row in kept] == [(1, failed), (1_440, failed)]
    assert kept[0].first_minute == NOW_S // 60


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_command_of_an_earlier_minute_changes_no_point_of_that(
    tmp_path: Path, database: Database, *, is_restarted: bool
) -> None:
    resting, late = (
        a_sell("bob", price_ticks=40, size_units=6 * TOKEN),
        a_buy("bob", price_ticks=10),
    )
    commands = [
        an_open_market(),
        some_funds("alice", "bob"),
        a_placing(resting, at_ms=NOW_MS + 1_000),
        a_placing(late, at_ms=NOW_MS + 2_000),
        a_placing(TAKER, at_ms=NOW_MS + 61_000),
    ]
    cancel = CancelOrders(NOW_MS + 3_000, an_address("bob"), (an_order_id(late),))
    runs = [commands, [cancel]] if is_restarted else [[*commands, cancel]]
    await play(tmp_path / "journal", database, *runs)
    async with database.reading() as tx:
        points = await tx.all(sa.select(quote_points).order_by(quote_points.c.minute))
        quote = (await load_quotes(tx))[MARKET]
    assert [row.volume_units for row in points] == [0, quote.volume_units]
    assert [row.minute * 60_000 for row in points] == [NOW_MS, NOW_MS + 60_000]
    assert quote.updated_at_ms == NOW_MS + 61_000


async def test_tables_that_are_lost_are_made_again_from_the_journal(
    tmp_path: Path, database_file: Path, database: Database
) -> None:
    fresh = Path(shutil.copy(database_file, tmp_path / "fresh.db"))
    await play(tmp_path / "journal", database, some_commands())
    async with Database(f"sqlite+aiosqlite:///{fresh}") as other:
        await play(tmp_path / "journal", other, [])
        assert await dump(other) == await dump(database)


async def test_a_start_writes_what_would_be_too_much_to_hold(
    tmp_path: Path, database_file: Path, database: Database
) -> None:
    fresh = Path(shutil.copy(database_file, tmp_path / "fresh.db"))
    await play(tmp_path / "journal", database, some_commands())
    async with Database(f"sqlite+aiosqlite:///{fresh}") as other:
        engine = Engine(FileJournal(tmp_path / "journal"), Clock().now_ms, replay_batch=2)
        projection = Projection(other, held_at_start_max=4)
        engine.subscribe(projection.on_committed)
        await projection.start()
        await engine.start(projection.sequence, projection.drain_if_large)
        assert len(projection.pending) < 4 <= projection.sequence
        await projection.catch_up()
        await engine.close()
        assert await dump(other) == await dump(database)


async def test_the_tables_catch_up_after_a_storage_failure(
    tmp_path: Path, database: Database
) -> None:
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    projection = Projection(database)
    engine.subscribe(projection.on_committed)
    await projection.start()
    await engine.start()
    for command in some_commands()[:3]:
        await engine.submit(command)
    await rename(database, "quotes", "hidden")
    with pytest.raises(StoreUnavailable):
        await projection.catch_up()
    await rename(database, "hidden", "quotes")
    assert (projection.sequence, (await dump(database))["orders"]) == (0, [])
    await projection.catch_up()
    await engine.close()
    assert projection.sequence == engine.sequence
    assert len((await dump(database))["orders"]) == 1


async def test_the_loop_writes_by_itself(tmp_path: Path, database: Database) -> None:
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    projection = Projection(database)
    engine.subscribe(projection.on_committed)
    await projection.start()
    await engine.start()
    running = asyncio.create_task(projection.run())
    for command in some_commands():
        await engine.submit(command)
    async with asyncio.timeout(60):
        while projection.sequence < engine.sequence - 1:  # noqa: ASYNC110 - what is waited for
            await asyncio.sleep(0.005)
    running.cancel()
    await engine.close()
    assert not projection.is_behind
    assert set(await dump(database)) <= set(metadata.tables)


async def test_two_processes_that_have_the_same_commands_write_them_once(
    tmp_path: Path, database_file: Path, database: Database
) -> None:
    fresh = Path(shutil.copy(database_file, tmp_path / "fresh.db"))
    engine = Engine(FileJournal(tmp_path / "one", segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    both = Projection(database), Projection(database)
    for projection in both:
        engine.subscribe(projection.on_committed)
        await projection.start()
    await engine.start()
    for command in some_commands():
        await engine.submit(command)
        await asyncio.gather(*(projection.catch_up() for projection in both))
    await engine.close()
    assert {projection.sequence for projection in both} == {engine.published_sequence}
    async with Database(f"sqlite+aiosqlite:///{fresh}") as other:
        await play(tmp_path / "another", other, some_commands())
        assert await dump(database) == await dump(other)


async def test_tables_that_were_set_back_are_not_written_with_a_gap(
    tmp_path: Path, database: Database
) -> None:
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    projection = Projection(database)
    engine.subscribe(projection.on_committed)
    await projection.start()
    await engine.start()
    for command in some_commands()[:3]:
        await engine.submit(command)
    await projection.catch_up()
    async with database.writing() as tx:
        await tx.execute(projections.update().values(sequence=2))
    await engine.submit(some_commands()[3])
    for _ in range(2):
        with pytest.raises(TablesSetBack, match="3 was written, and they are at 2"):
            await projection.run_once()
    assert projection.set_back.is_set()
    await engine.close()


async def test_a_request_ends_the_pause_of_a_busy_projection(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection_module, "BUSY_COMMANDS", 1)
    monkeypatch.setattr(projection_module, "PACE", PollIntervals(60.0, 60.0))
    engine = Engine(FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES), Clock().now_ms)
    projection = Projection(database)
    engine.subscribe(projection.on_committed)
    await projection.start()
    await engine.start()
    running = asyncio.create_task(projection.run())
    async with asyncio.timeout(60):
        for command in some_commands():
            await engine.submit(command)
            projection.flush_now()
            while projection.sequence < engine.published_sequence:  # noqa: ASYNC110 - waited for
                await asyncio.sleep(0.002)
    running.cancel()
    await engine.close()


async def rename(database: Database, table: str, name: str) -> None:
    async with database.writing() as tx:
        await tx.execute(sa.text(f"ALTER TABLE {table} RENAME TO {name}"))
