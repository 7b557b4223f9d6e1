"""A shard that starts from an older journal, which has lost returns, while the treasury runs."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.engine.rig import (
    MARKETS,
    PLACES,
    EngineRig,
    an_engine_rig,
    block_hash,
    until,
)
from tests.rigs.values import TOKEN, a_placing, a_sell, an_address, an_asset, an_open_market

from foretell.domain.errors.exchange import (
    NotEnoughFunds,
    TreasuryUnavailable,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.trade import Trade
from foretell.domain.treasury.treasury import look_up_allocation
from foretell.engine.allocations import coordinator
from foretell.engine.allocations.collateral_feed import OVERDRAWN_MS_MAX
from foretell.runtime.loops import run_together
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

OLDER = 100
NORTH = PLACES[0].name
ALICE = an_address("alice")
TOKEN_ID = an_asset(is_yes=True, market=MARKETS[0])


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[EngineRig]:
    """Two shards, and alice with a hundred tokens of collateral."""
    async with an_engine_rig(tmp_path, fresh_database) as rig:
        yield rig


def copy_journal(rig: EngineRig) -> None:
    """Copy the journal of the first shard, as it lies on the disk now."""
    present = rig.folder / f"{NORTH} {rig.starts[NORTH]}"
    shutil.copytree(present, rig.folder / f"{NORTH} {OLDER}")


async def start_from_copy(rig: EngineRig) -> None:
    """Kill the first shard, and start it from the copy."""
    rig.starts[NORTH] = OLDER
    await rig.restart_shard(0)


async def lose_a_return(rig: EngineRig) -> None:
    """Have the first shard lose that it returned 45 tokens, which the second one uses."""
    await rig.buy(0, 10)
    copy_journal(rig)
    await rig.buy(1, 90)
    assert (rig.allocated_tokens(0), rig.allocated_tokens(1)) == (10, 90)
    block = rig.treasury.engine.state.observed_block
    assert await rig.treasury.coordinator.observe(block, block_hash(block), [], [])
    await start_from_copy(rig)
    assert (rig.allocated_tokens(0), rig.allocated_tokens(1)) == (55, 90)


async def test_a_shard_that_lost_a_return_makes_it_again_before_it_can_spend_the_units(
    rig: EngineRig,
) -> None:
    await lose_a_return(rig)
    assert not await rig.treasury.catch_up()
    assert (rig.allocated_tokens(0), rig.free_tokens()) == (10, 0)
    with pytest.raises(NotEnoughFunds):
        await rig.buy(0, 5, salt=2)
    assert rig.reserved_tokens() == 100


async def test_orders_that_were_placed_with_units_of_a_lost_return_are_closed(
    rig: EngineRig,
) -> None:
    await lose_a_return(rig)
    await rig.buy(0, 45, salt=2)
    assert rig.reserved_tokens() == 145
    assert not await rig.treasury.catch_up()
    assert (rig.reserved_tokens(), rig.allocated_tokens(0)) == (100, 10)


async def test_the_treasurys_loops_find_a_shard_that_lost_a_return(rig: EngineRig) -> None:
    running = asyncio.create_task(run_together(rig.treasury.loops().values()))
    await lose_a_return(rig)
    await until(lambda: rig.allocated_tokens(0) == 10)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_shard_whose_newer_commands_hide_what_it_lost_is_found_at_the_next_block(
    rig: EngineRig,
) -> None:
    """Its sequence is past that of its last report, so its report would have only what changed since."""
    await lose_a_return(rig)
    for salt in range(2, 10):
        await rig.buy(0, 5, salt=salt)
    await rig.index([("bob", COLLATERAL, TOKEN)])
    assert not await rig.run_once()
    assert not await rig.treasury.catch_up()
    assert await rig.run_once()
    assert (rig.allocated_tokens(0), rig.reserved_tokens(), rig.free_tokens()) == (10, 100, 0)


async def spend_a_lost_return(rig: EngineRig) -> Trade:
    """Have a trade of the first shard take 35 tokens that the second one has as well."""
    balances = [("bob", TOKEN_ID, 100 * TOKEN), ("carol", COLLATERAL, 100 * TOKEN)]
    await rig.index(balances)
    assert await rig.run_once()
    await lose_a_return(rig)
    await rig.feeds[0].run_once()
    await rig.buy(0, 35, salt=2)
    await sell(rig, "bob", 45)
    (unsettled,) = rig.hosts[0].engine.state.unsettled_trades.values()
    assert not await rig.treasury.catch_up()
    return unsettled.trade


async def sell(rig: EngineRig, name: str, tokens: int) -> None:
    """Sell outcome tokens in the first shard for so many tokens of collateral."""
    order = a_sell(name, size_units=2 * tokens * TOKEN, market=MARKETS[0], salt=str(tokens))
    await rig.place(0, a_placing(order, market=an_open_market(MARKETS[0])))


async def settle(rig: EngineRig, trade: Trade, collateral: int, tokens: int) -> None:
    """Have the trade on the chain, after which alice holds so much."""
    held = [("alice", COLLATERAL, collateral * TOKEN), ("alice", TOKEN_ID, tokens * TOKEN)]
    await rig.index(held, [trade])
    assert await rig.run_once()


def returned_tokens(rig: EngineRig) -> tuple[int, int]:
    """Return what the first shard returned of alice's, as the treasury and the shard count it."""
    there = look_up_allocation(rig.treasury.engine.state, NORTH, ALICE)
    here = rig.hosts[0].engine.state.allocations.look_up(ALICE)
    return there.returned_units // TOKEN, here.returned_units // TOKEN


async def test_what_trades_took_of_a_lost_return_is_owed_and_the_shard_gets_no_more_of_the_wallet(
    rig: EngineRig,
) -> None:
    await spend_a_lost_return(rig)
    assert returned_tokens(rig) == (45, 10)
    with pytest.raises(TreasuryUnavailable, match="the shard owes it units of the wallet"):
        await rig.buy(0, 5, salt=3)
    await rig.buy(0, 5, "carol")


async def test_of_what_was_spent_twice_the_chain_decides_and_other_orders_close(
    rig: EngineRig,
) -> None:
    trade = await spend_a_lost_return(rig)
    await settle(rig, trade, collateral=55, tokens=90)
    assert rig.free_tokens() == -35
    rig.clock.move(OVERDRAWN_MS_MAX)
    await rig.run_once()
    assert (rig.free_tokens(), rig.reserved_tokens()) == (0, 0)


async def test_what_is_owed_is_returned_once_a_sale_of_the_wallet_brings_it_back(
    rig: EngineRig,
) -> None:
    trade = await spend_a_lost_return(rig)
    await settle(rig, trade, collateral=55, tokens=90)
    await rig.buy(0, 40, "carol")
    await sell(rig, "alice", 40)
    assert not await rig.treasury.catch_up()
    assert returned_tokens(rig) == (45, 10)
    sale = list(rig.hosts[0].engine.state.unsettled_trades.values())[-1].trade
    await settle(rig, sale, collateral=95, tokens=10)
    assert not await rig.treasury.catch_up()
    assert returned_tokens(rig) == (45, 45)
    assert rig.allocated_tokens(0) == 5


async def test_a_shard_that_was_not_started_again_is_compared_at_an_interval(
    rig: EngineRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await rig.treasury.coordinator.find_due() == []
    monkeypatch.setattr(coordinator, "COMPARED_EVERY_S", 0.0)
    assert await rig.treasury.coordinator.find_due() == [place.name for place in PLACES]


async def test_a_shard_that_is_down_is_not_excluded(rig: EngineRig) -> None:
    rig.endpoints[NORTH].target = None
    assert await rig.treasury.coordinator.find_due() == []
    rig.endpoints[NORTH].target = rig.hosts[0]
    await rig.buy(0, 10)
