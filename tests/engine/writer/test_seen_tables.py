"""Tables that were taken back and reach the same block again, with other rows: wallets are read at any block."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.engine.writer.test_chain_feed import a_feed, block_hash
from tests.rigs.trading import TradingRig, a_rig
from tests.rigs.values import EXCHANGE, TOKEN, a_buy, a_placing, a_word, an_address

from foretell.domain.exchange.arrivals import chain_cancels
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.engine.writer import changed_rows, seen_tables
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.store.index.balances import load_balances
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.index.cancellations import CanceledOrder, record_canceled_orders
from foretell.store.index.unwind import unwind
from foretell.store.index.wallet_readings import WalletReading, record_readings
from foretell.store.tables import balance_changes, balances, blocks

pytestmark = pytest.mark.anyio

NAMES = ("eve", "bob")


@pytest.fixture
async def rig(database_file: Path, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """The product with a market; its feed has observed block 2, after which eve holds 500 units."""
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market")
        await index(rig, 1)
        await index(rig, 2, eve=500)
        yield rig


async def index(rig: TradingRig, *numbers: int, **units: int) -> None:
    """Store blocks, after which these wallets were found to hold so much."""
    readings = [
        WalletReading(an_address(name), held, [(EXCHANGE, True, held)])
        for name, held in units.items()
    ]
    async with rig.context.database.writing() as tx:
        await record_readings(tx, readings, numbers[-1])
        await record_blocks(
            tx, [Block(each, block_hash(each), block_hash(each - 1), 0) for each in numbers]
        )


async def take_back(rig: TradingRig, block_number: int) -> None:
    async with rig.context.database.writing() as tx:
        await unwind(tx, block_number)


def known(rig: TradingRig) -> list[int]:
    """Return what the engine takes the wallets to hold."""
    ledger = rig.host.engine.state.ledger
    return [ledger.look_up(an_address(name), COLLATERAL).confirmed_units for name in NAMES]


async def indexed(rig: TradingRig) -> list[int]:
    """Return what the tables have of the wallets."""
    keys = [(an_address(name), COLLATERAL) for name in NAMES]
    async with rig.context.database.reading() as tx:
        units_by_key = {row[:2]: row.units for row in await load_balances(tx, keys)}
    return [units_by_key.get(key, 0) for key in keys]


async def observed(rig: TradingRig, feed: ChainFeed) -> list[int]:
    await feed.run_once()
    assert known(rig) == await indexed(rig)
    return known(rig)


async def test_guard_units_that_were_unwound_and_do_not_come_again_are_gone(
    rig: TradingRig,
) -> None:
    """A finding: the engine had them for ever, and matched orders that could not settle."""
    feed = a_feed(rig)
    assert await observed(rig, feed) == [500, 0]
    await take_back(rig, 1)
    await feed.run_once()
    await index(rig, 2, 3, eve=0)
    assert await observed(rig, feed) == [0, 0]


async def test_guard_a_wallet_that_is_read_at_the_observed_block_when_it_comes_again_is_known(
    rig: TradingRig,
) -> None:
    """A finding: its owner could not trade, whatever happened later."""
    feed = a_feed(rig)
    assert await observed(rig, feed) == [500, 0]
    await take_back(rig, 1)
    await index(rig, 2, eve=500, bob=700)
    assert await observed(rig, feed) == [500, 700]


async def test_guard_tables_that_were_taken_back_while_no_engine_ran_are_compared(
    rig: TradingRig,
) -> None:
    assert await observed(rig, a_feed(rig)) == [500, 0]
    await take_back(rig, 1)
    await index(rig, 2, 3, eve=0, bob=7)
    assert await observed(rig, a_feed(rig)) == [0, 7]


async def test_guard_a_restored_database_that_reaches_the_observed_block_again_is_compared(
    rig: TradingRig,
) -> None:
    feed = a_feed(rig)
    assert await observed(rig, feed) == [500, 0]
    async with rig.context.database.writing() as tx:
        for table in (blocks, balances, balance_changes):
            await tx.execute(table.delete().where(table.c.block_number > 1))
    await feed.run_once()
    assert known(rig) == [500, 0], "tables that are behind show nothing"
    await index(rig, 2, 3, bob=7)
    assert await observed(rig, feed) == [0, 7]


async def test_what_was_compared_is_not_read_again(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, since = a_feed(rig), []
    find_end = feed.tables.find_end

    async def finding(*arguments: object) -> seen_tables.TablesEnd | None:
        end = await find_end(*arguments)  # type: ignore[arg-type]
        assert end is not None
        since.append(end.since)
        return end

    monkeypatch.setattr(feed.tables, "find_end", finding)
    for number in range(3, 6):
        await feed.run_once()
        await index(rig, number, bob=number)
    await feed.run_once()
    assert since == [-1, 2, 3, 4]
    assert known(rig) == [500, 5]


async def test_a_first_look_without_news_submits_nothing(rig: TradingRig) -> None:
    assert await observed(rig, a_feed(rig)) == [500, 0]
    sequence = rig.host.engine.sequence
    await a_feed(rig).run_once()
    assert rig.host.engine.sequence == sequence


async def test_attack_h5_cancels_of_orders_that_nobody_placed_are_not_read_into_each_start(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody pays for them with gas alone: an engine remembers few, and journals none of them again."""
    monkeypatch.setattr(chain_cancels, "CANCELS_KEPT_MIN", 5)
    feed, engine = a_feed(rig), rig.host.engine
    for number in range(3, 9):
        await index(rig, number)
        async with rig.context.database.writing() as tx:
            await record_canceled_orders(tx, some_cancels(number, 7))
        await feed.run_once()
    state, sequence = engine.state, engine.sequence
    assert len(state.canceled_orders) + len(state.canceled_earlier) <= 10
    await a_feed(rig).run_once()
    assert engine.sequence == sequence


def some_cancels(block_number: int, count: int) -> list[CanceledOrder]:
    return [
        CanceledOrder(block_number, index, 0, EXCHANGE, a_word(f"{block_number} {index}"))
        for index in range(count)
    ]


async def test_guard_all_rows_are_compared_in_parts_between_which_orders_are_taken(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: the loop stood still until a start, or tables that were taken back, had been compared."""
    monkeypatch.setattr(changed_rows, "ROWS_PER_PART_MAX", 2)
    feed, engine = a_feed(rig), rig.host.engine
    names = [f"wallet {number}" for number in range(20)]
    await index(rig, 3, **dict.fromkeys(names, 500 * TOKEN), bob=500 * TOKEN)
    await feed.run_once()
    await rig.submit(a_placing(a_buy("bob", size_units=TOKEN * 10)))
    await take_back(rig, 2)
    await index(rig, 3, **dict.fromkeys(names[:10], 400 * TOKEN), bob=500 * TOKEN)
    comparing, largest = asyncio.create_task(feed.run_once()), noting_parts(monkeypatch)
    salts = itertools.count()
    while not comparing.done():
        await rig.submit(a_placing(a_buy("bob", 40, salt=str(next(salts)))))
        await asyncio.sleep(0)
    await comparing
    assert max(largest) <= 2
    assert len(engine.state.live_orders) == next(salts) + 1 > 10
    ledger = engine.state.ledger
    held = [ledger.look_up(an_address(each), COLLATERAL).confirmed_units for each in names]
    allowed = [
        ledger.allowed_units(an_address(each), EXCHANGE, of_collateral=True) for each in names
    ]
    assert held == allowed == [400 * TOKEN] * 10 + [0] * 10


def noting_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the number of rows, or of wallets, of each comparison is added."""
    sizes: list[int] = []

    def noted(compare: Callable[..., object], place: int) -> Callable[..., object]:
        def run(*arguments: Any) -> object:
            sizes.append(len(arguments[place]))
            return compare(*arguments)

        return run

    for name, place in (
        ("balances_seen", 1),
        ("balances_gone", 1),
        ("allowances_seen", 1),
        ("allowances_gone", 0),
    ):
        monkeypatch.setattr(changed_rows, name, noted(getattr(changed_rows, name), place))
    return sizes


async def test_each_unwinding_is_counted(rig: TradingRig) -> None:
    await take_back(rig, 1)
    await take_back(rig, 0)
    async with rig.context.database.reading() as tx:
        assert await tx.scalar(sa.text("SELECT times FROM index_unwinds")) == 2
