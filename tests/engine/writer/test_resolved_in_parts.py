"""Markets with many orders that resolve: closed in parts, also by a process that starts between two of them."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.engine.writer.test_seen_markets import a_feed, list_markets, mine
from tests.rigs.digest import digest
from tests.rigs.trading import TradingRig, a_rig
from tests.rigs.values import (
    TOKEN,
    a_buy,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import EngineBusy, MarketClosed
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import Command, ResolveMarket, decode_command
from foretell.domain.exchange.effects import MarketResolved, MarketRestored, OrderClosed
from foretell.domain.exchange.state import State
from foretell.domain.exchange.state_effects import restored_effects
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.seen_markets import SeenMarkets
from foretell.engine.writer.seen_tables import SeenTables
from foretell.store.index.unwind import unwind

pytestmark = pytest.mark.anyio

ORDERS, PER_COMMAND = 10, 3
PARTS = [3, 3, 3, 1]
OTHER = an_open_market("second")


def feed_of(rig: TradingRig, unwinds: int = 0) -> ChainFeed:
    """Return a feed that does not compare the funds of the engine, which are in no table here."""
    return dataclasses.replace(
        a_feed(rig), markets=SeenMarkets(PER_COMMAND), tables=SeenTables(unwinds)
    )


async def fill(rig: TradingRig) -> None:
    """Have ten orders of alice rest in the first of two markets, and report its payout."""
    await mine(rig, 1)
    await list_markets(rig, "first", "second")
    await feed_of(rig).run_once()
    await rig.submit(some_funds("alice", market="first"), some_funds("alice", market="second"))
    for number in range(ORDERS):
        await rig.rest(an_order("first", number), market=an_open_market("first"))
    await mine(rig, 2, "first")


def an_order(market: str, number: int) -> Any:
    return a_buy("alice", 40, 5 * TOKEN, market=market, salt=str(number))


def closed(committed: list[CommittedCommand]) -> list[int]:
    """Return how many orders each command closed."""
    counts = [
        sum(isinstance(each, OrderClosed) for each in command.effects) for command in committed
    ]
    return [count for count in counts if count]


def resolutions(committed: list[CommittedCommand]) -> int:
    return sum(isinstance(each, MarketResolved) for one in committed for each in one.effects)


def replayed(rig: TradingRig) -> State:
    state = State()
    for entry in rig.host.engine.journal.entries():
        apply(state, decode_command(entry.payload))
    return state


async def test_attack_h4_the_orders_of_a_market_that_resolves_are_closed_in_parts(
    database_file: Path, tmp_path: Path
) -> None:
    committed: list[CommittedCommand] = []
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await fill(rig)
        engine = rig.host.engine
        engine.subscribe(committed.append)
        has_begun = asyncio.Event()
        engine.subscribe(lambda each: has_begun.set() if closed([each]) else None)
        resolving = asyncio.create_task(feed_of(rig).run_once())
        await has_begun.wait()
        assert engine.state.live_orders
        with pytest.raises(MarketClosed):
            await rig.rest(an_order("first", 90), market=an_open_market("first"))
        elsewhere = await rig.rest(an_order("second", 90), market=OTHER)
        assert not resolving.done(), "others are served between two parts"
        await resolving
        assert closed(committed) == PARTS
        assert resolutions(committed) == 1
        assert list(engine.state.live_orders) == [elsewhere]
        assert digest(replayed(rig)) == digest(engine.state)


@pytest.mark.parametrize("is_unwound", [False, True])
@pytest.mark.parametrize("parts", range(1, len(PARTS)))
async def test_attack_h4_a_start_between_two_parts_goes_on(
    *,
    database_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parts: int,
    is_unwound: bool,
) -> None:
    """Also if the chain has lost the payout: no order was taken since."""
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await fill(rig)
        with monkeypatch.context() as patching:
            stop_after(parts, patching)
            with pytest.raises(EngineBusy):
                await feed_of(rig).run_once()
        assert len(rig.host.engine.state.live_orders) == ORDERS - parts * PER_COMMAND
    async with a_rig(tmp_path / "journal", database_file) as rig:
        if is_unwound:
            async with rig.context.database.writing() as tx:
                await unwind(tx, 1)
        committed: list[CommittedCommand] = []
        engine = rig.host.engine
        engine.subscribe(committed.append)
        assert offered(engine) == [(), None, None]
        await feed_of(rig, int(is_unwound)).run_once()
        assert closed(committed) == PARTS[parts:]
        assert not engine.state.live_orders
        assert digest(replayed(rig)) == digest(engine.state)


def offered(engine: Engine) -> list[Any]:
    """Return what a new subscriber learns of the levels and the best prices of the market that resolves."""
    (restored,) = (
        each
        for each in restored_effects(engine.state)
        if isinstance(each, MarketRestored) and each.market == an_open_market("first")
    )
    return [restored.levels, restored.best_bid_ticks, restored.best_ask_ticks]


def stop_after(parts: int, patching: pytest.MonkeyPatch) -> None:
    """Have the engine refuse resolutions after the first ones, as if the process ended there."""
    submit, left = Engine.submit, parts

    async def refusing(self: Engine, command: Command) -> Any:
        nonlocal left
        if isinstance(command, ResolveMarket):
            if not left:
                raise EngineBusy
            left -= 1
        return await submit(self, command)

    patching.setattr(Engine, "submit", refusing)


@pytest.mark.parametrize("parts", range(1, len(PARTS)))
async def test_a_feed_whose_resolution_was_refused_goes_on(
    database_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await fill(rig)
        feed = feed_of(rig)
        with monkeypatch.context() as patching:
            stop_after(parts, patching)
            with pytest.raises(EngineBusy):
                await feed.run_once()
        async with rig.context.database.writing() as tx:
            await unwind(tx, 1)
        await feed.run_once()
        assert not rig.host.engine.state.live_orders
