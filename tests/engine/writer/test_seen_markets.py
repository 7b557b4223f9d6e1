"""A feed reads each market and each payout once, and misses none."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.rows import Rows
from tests.rigs.trading import TradingRig, a_rig
from tests.rigs.values import EXCHANGE, NOW_S, a_word

from foretell.domain.errors.exchange import EngineBusy
from foretell.domain.exchange.commands import Command
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.sharding import ShardPlace
from foretell.engine.writer import seen_markets
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.index.conditions import PayoutReport, record_payouts
from foretell.store.index.unwind import unwind
from foretell.store.tables import markets

pytestmark = pytest.mark.anyio

MARKETS = ["first", "second", "third"]


@pytest.fixture
async def rig(database_file: Path, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """An engine without markets over tables with one block."""
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await mine(rig, 1)
        yield rig


async def mine(rig: TradingRig, number: int, *paid: str, name: str = "block") -> None:
    """Store a block that has the payouts of markets."""
    block = Block(number, a_word(f"{name} {number}"), a_word(f"block {number - 1}"), NOW_S)
    payouts = [
        PayoutReport(number, index, 0, a_word(market), 1, 0, a_word(f"report of {market}"), NOW_S)
        for index, market in enumerate(paid)
    ]
    async with rig.context.database.writing() as tx:
        await record_blocks(tx, [block])
        await record_payouts(tx, payouts)


async def list_markets(rig: TradingRig, *names: str) -> None:
    async with rig.context.database.writing() as tx:
        for name in names:
            await Rows(tx, numbers=rig.numbers).open_named(name)


def a_feed(rig: TradingRig, place: ShardPlace | None = None) -> ChainFeed:
    return ChainFeed(
        rig.host.engine,
        rig.context.database,
        [EXCHANGE],
        confirmations=1,
        place=place or ShardPlace(),
    )


def trading(rig: TradingRig) -> set[Bytes32]:
    markets = rig.host.engine.state.market_by_id
    return {condition_id for condition_id, market in markets.items() if market.is_open}


def words(*names: str) -> set[Bytes32]:
    return {a_word(name) for name in names}


async def test_each_market_and_each_payout_is_read_once(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: all markets were read each second, and with many of them every order of that moment waited."""
    rows = list[int]()

    def count(name: str) -> None:
        load = getattr(seen_markets, name)

        async def counted(*given: Any) -> Any:
            found = await load(*given)
            rows.append(len(found))
            return found

        monkeypatch.setattr(seen_markets, name, counted)

    for name in ("load_markets_from", "load_payouts_since", "load_payouts"):
        count(name)
    feed = a_feed(rig)
    await list_markets(rig, *MARKETS)
    await mine(rig, 2, "first")
    await feed.run_once()
    assert sorted(rows) == [1, 3], "the markets, and the payout"
    rows.clear()
    for _ in range(3):
        await feed.run_once()
    await mine(rig, 3)
    await feed.run_once()
    assert sum(rows) == 4, "the last market, which shows that the tables were not set back"


async def test_markets_that_open_later_are_opened(rig: TradingRig) -> None:
    feed = a_feed(rig)
    await list_markets(rig, "first")
    await feed.run_once()
    assert trading(rig) == words("first")
    await list_markets(rig, "second", "third")
    await feed.run_once()
    assert trading(rig) == words(*MARKETS)


@pytest.mark.parametrize("lost", [1, 2])
async def test_markets_that_follow_lost_ones_are_opened(rig: TradingRig, lost: int) -> None:
    """A finding: a standby without the last commits gives the next markets the numbers of those that were lost."""
    feed = a_feed(rig)
    await list_markets(rig, "first", "second", "third")
    await feed.run_once()
    gone = [a_word(name) for name in MARKETS[-lost:]]
    async with rig.context.database.writing() as tx:
        await tx.execute(markets.delete().where(markets.c.condition_id.in_(gone)))
    later = ["fourth", "fifth", "sixth"]
    for name in later:
        await list_markets(rig, name)
        await feed.run_once()
    assert words(*later) <= trading(rig)


async def test_a_payout_resolves_its_market_whichever_is_first(rig: TradingRig) -> None:
    feed = a_feed(rig)
    await list_markets(rig, "first", "second")
    await feed.run_once()
    await mine(rig, 2, "second", "third")
    await feed.run_once()
    assert trading(rig) == words("first")
    await list_markets(rig, "third")
    await feed.run_once()
    assert trading(rig) == words("first")
    assert a_word("third") in rig.host.engine.state.market_by_id
    await mine(rig, 3, "first")
    await feed.run_once()
    assert trading(rig) == set()


async def test_a_payout_in_a_block_that_replaced_another_resolves_its_market(
    rig: TradingRig,
) -> None:
    """The block is not above the last one whose payouts were read."""
    feed = a_feed(rig)
    await list_markets(rig, *MARKETS)
    for number in (2, 3):
        await mine(rig, number)
    await feed.run_once()
    async with rig.context.database.writing() as tx:
        await unwind(tx, 1)
    await feed.run_once()
    await mine(rig, 2, "second", name="another")
    await feed.run_once()
    assert trading(rig) == words("first", "third")


@pytest.mark.parametrize("taken", range(3))
async def test_what_an_engine_refused_is_submitted_by_the_next_run(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """Two markets open, one of them resolves; the engine is busy after some of it."""
    engine, left = rig.host.engine, taken
    feed = a_feed(rig)
    await feed.run_once()
    await list_markets(rig, "first", "second")
    await mine(rig, 2, "second")

    async def submit(command: Command) -> Any:
        nonlocal left
        if not left:
            raise EngineBusy
        left -= 1
        return await engine.__class__.submit(engine, command)

    with monkeypatch.context() as patching:
        patching.setattr(engine, "submit", submit)
        with pytest.raises(EngineBusy):
            await feed.run_once()
    await feed.run_once()
    assert trading(rig) == words("first")
    assert len(engine.state.market_by_id) == 2


async def test_tokens_of_other_shards_stay_known(rig: TradingRig) -> None:
    place = next(
        one for one in (ShardPlace(0, 2), ShardPlace(1, 2)) if not one.has(a_word("first"))
    )
    feed = a_feed(rig, place)
    await list_markets(rig, "first")
    for _ in range(2):
        await feed.run_once()
        assert trading(rig) == set()
        assert len(feed.markets.foreign_tokens) == 2
