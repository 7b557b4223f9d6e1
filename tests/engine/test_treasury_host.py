"""Several shards and their treasury over tables, in one process and over sockets."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from tests.engine.rig import (
    MARKETS,
    PLACES,
    TREASURY,
    EngineRig,
    a_purchase,
    an_engine_rig,
)
from tests.rigs.values import (
    EXCHANGE,
    TOKEN,
    a_placing,
    a_sell,
    an_address,
    an_asset,
    an_open_market,
)

from foretell.domain.errors.exchange import (
    EngineRestarting,
    EngineStopped,
    InsufficientBalance,
    NotEnoughFunds,
    TreasuryUnavailable,
)
from foretell.domain.exchange.allocations import total_of
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.treasury.treasury import look_up_allocation
from foretell.engine.allocations.collateral_feed import OVERDRAWN_MS_MAX
from foretell.engine.protocol.endpoint import EngineEndpoint
from foretell.engine.protocol.requests import (
    AccountReply,
    AccountRequest,
    CancelOrdersRequest,
    CheckOrderReply,
    CheckOrderRequest,
    EngineReply,
    EngineRequest,
    PlaceReply,
    PlaceRequest,
    ReportReply,
)
from foretell.engine.protocol.router import Shards
from foretell.runtime.loops import run_together
from foretell.store.database import Database
from foretell.store.index.unwind import unwind
from foretell.store.trading.trades import load_sequence

pytestmark = pytest.mark.anyio

SHARDS = range(len(PLACES))
RACERS = 20
HEATS = 50
HEAD_S_MAX = 0.004
ALICE = an_address("alice")


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[EngineRig]:
    """Two shards, and alice with a hundred tokens of collateral."""
    async with an_engine_rig(tmp_path, fresh_database) as rig:
        yield rig


@pytest.mark.parametrize("shard", SHARDS)
async def test_a_wallet_uses_all_of_its_balance_in_one_market(rig: EngineRig, shard: int) -> None:
    await rig.buy(shard, 100)
    assert (rig.allocated_tokens(shard), rig.free_tokens()) == (100, 0)


async def test_what_was_granted_to_one_shard_is_used_in_another(rig: EngineRig) -> None:
    await rig.buy(0, 10)
    assert rig.allocated_tokens(0) == 55
    await rig.buy(1, 90)
    assert (rig.allocated_tokens(0), rig.allocated_tokens(1)) == (10, 90)


async def test_over_sockets_all_of_a_balance_is_used_and_none_of_it_twice(
    rig: EngineRig,
) -> None:
    await rig.open_sockets()
    results = await asyncio.gather(
        *(rig.buy(shard, 5, salt=salt) for salt in range(15) for shard in SHARDS),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, NotEnoughFunds)]
    assert (len(refused), rig.reserved_tokens()) == (10, 100)
    await rig.index([("alice", COLLATERAL, 110 * TOKEN)])
    assert await rig.run_once()
    await rig.buy(0, 10, salt=99)


async def test_two_shards_that_race_for_a_last_unit_never_both_spend_it(
    fresh_database: Database, tmp_path: Path
) -> None:
    names, random = [f"racer {number}" for number in range(RACERS)], Random(7)
    async with an_engine_rig(tmp_path, fresh_database, 5, *names) as rig:
        winners: list[int] = []
        for heat in range(HEATS):
            heads = [random.uniform(-HEAD_S_MAX, HEAD_S_MAX) for _ in names]
            won = await asyncio.gather(
                *(race(rig, *racer, heat) for racer in zip(names, heads, strict=True))
            )
            assert [rig.reserved_tokens(name) for name in names] == [5] * RACERS
            winners += await asyncio.gather(*(cancel(rig, placed) for placed in won))
        assert (len(winners), set(winners)) == (RACERS * HEATS, set(SHARDS))


async def race(rig: EngineRig, name: str, head_s: float, heat: int) -> PlaceReply:
    """Return the order that won; the other one was refused, and one started a little ahead."""

    async def run(shard: int, after_s: float) -> EngineReply:
        await asyncio.sleep(max(after_s, 0))
        return await rig.hosts[shard].handle(PlaceRequest(a_purchase(shard, 5, name, salt=heat)))

    results = await asyncio.gather(run(0, head_s), run(1, -head_s), return_exceptions=True)
    (won,) = [result for result in results if isinstance(result, PlaceReply)]
    assert sum(isinstance(result, NotEnoughFunds) for result in results) == 1
    return won


async def cancel(rig: EngineRig, placed: PlaceReply) -> int:
    """Cancel an order, and return its shard."""
    order_id = placed.placement.order_id
    states = [host.engine.state for host in rig.hosts]
    (shard,) = [number for number in SHARDS if order_id in states[number].live_orders]
    signer = states[shard].live_orders[order_id].signer
    await rig.hosts[shard].handle(CancelOrdersRequest(signer, [order_id]))
    return shard


async def test_orders_of_a_wallet_in_both_shards_use_up_what_it_has(rig: EngineRig) -> None:
    results = await asyncio.gather(
        *(rig.buy(shard, 5, salt=salt) for salt in range(15) for shard in SHARDS),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, NotEnoughFunds)]
    assert (len(refused), rig.reserved_tokens()) == (10, 100)


@pytest.mark.parametrize("killed", SHARDS)
async def test_after_the_kill_of_a_shard_nothing_is_spent_twice(
    rig: EngineRig, killed: int
) -> None:
    buying = some_orders(rig)
    await asyncio.wait(buying, return_when=asyncio.FIRST_COMPLETED)
    await rig.restart_shard(killed)
    await asyncio.gather(*buying, return_exceptions=True)
    await rig.restart_treasury()
    await check_all_can_be_used(rig)


async def test_after_the_kill_of_the_treasury_nothing_is_spent_twice(rig: EngineRig) -> None:
    buying = some_orders(rig)
    await asyncio.wait(buying, return_when=asyncio.FIRST_COMPLETED)
    await rig.restart_treasury()
    await asyncio.gather(*buying, return_exceptions=True)
    await check_all_can_be_used(rig)


def some_orders(rig: EngineRig) -> list["asyncio.Task[object]"]:
    return [
        asyncio.ensure_future(rig.buy(shard, 5, salt=salt))
        for salt in range(10)
        for shard in SHARDS
    ]


async def check_all_can_be_used(rig: EngineRig) -> None:
    """Place what is missing, and more than there is."""
    assert rig.reserved_tokens() <= 100
    await asyncio.gather(
        *(rig.buy(shard, 5, salt=salt) for salt in range(20) for shard in SHARDS),
        return_exceptions=True,
    )
    assert rig.reserved_tokens() == 100


async def test_a_settled_trade_changes_the_allocations_of_both_sides(rig: EngineRig) -> None:
    token = an_asset(is_yes=True, market=MARKETS[0])
    await rig.index([("bob", token, 10 * TOKEN)])
    assert await rig.run_once()
    sale = a_placing(a_sell("bob", market=MARKETS[0]), market=an_open_market(MARKETS[0]))
    await rig.place(0, sale)
    await rig.buy(0, 5)
    (unsettled,) = rig.hosts[0].engine.state.unsettled_trades.values()
    free = rig.free_tokens()
    await rig.index(
        [("alice", COLLATERAL, 95 * TOKEN), ("bob", COLLATERAL, 5 * TOKEN), ("bob", token, 0)],
        [unsettled.trade],
    )
    assert await rig.run_once()
    state = rig.treasury.engine.state
    settled = {
        name: look_up_allocation(state, PLACES[0].name, an_address(name)).settled_units // TOKEN
        for name in ("alice", "bob")
    }
    assert settled == {"alice": -5, "bob": 5}
    assert (rig.free_tokens(), rig.free_tokens("bob")) == (free, 0)
    await rig.buy(1, 5, "bob")


async def test_a_lasting_withdrawal_on_the_chain_is_called_back_by_force(
    rig: EngineRig,
) -> None:
    await rig.buy(0, 40)
    await rig.buy(1, 20)
    await rig.index([("alice", COLLATERAL, 30 * TOKEN)])
    assert await rig.run_once()
    assert (rig.free_tokens(), rig.reserved_tokens()) == (-30, 60)
    rig.clock.move(OVERDRAWN_MS_MAX)
    await rig.run_once()
    assert (rig.free_tokens(), rig.reserved_tokens()) == (0, 20)


async def test_a_wallet_that_was_short_for_a_while_keeps_its_orders(rig: EngineRig) -> None:
    await rig.buy(0, 40)
    await rig.index([("alice", COLLATERAL, 30 * TOKEN)])
    await rig.run_once()
    await rig.index([("alice", COLLATERAL, 100 * TOKEN)])
    await rig.run_once()
    rig.clock.move(OVERDRAWN_MS_MAX)
    await rig.run_once()
    assert (rig.free_tokens(), rig.reserved_tokens()) == (60, 40)


async def test_a_deposit_that_a_reorg_takes_back_is_not_granted(rig: EngineRig) -> None:
    await rig.index([("alice", COLLATERAL, 500 * TOKEN), ("bob", COLLATERAL, 7 * TOKEN)])
    assert await rig.run_once()
    async with rig.database.writing() as tx:
        await unwind(tx, 1)
    rig.blocks = 1
    await rig.index([("carol", COLLATERAL, TOKEN)], fork="other")
    assert await rig.run_once()
    free = [rig.free_tokens(name) for name in ("alice", "bob", "carol")]
    assert free == [100, 0, 1]


async def test_a_block_counts_once_every_shard_has_observed_it(rig: EngineRig) -> None:
    await rig.index([("alice", COLLATERAL, 500 * TOKEN)])
    await rig.feeds[0].run_once()
    assert await rig.treasury.feed.run_once()
    assert rig.free_tokens() == 100
    await rig.feeds[1].run_once()
    assert not await rig.treasury.feed.run_once()
    assert rig.free_tokens() == 500


@dataclass
class Recorded:
    """An endpoint whose replies are recorded."""

    target: EngineEndpoint
    replies: list[EngineReply] = field(default_factory=list)

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the reply."""
        self.replies.append(await self.target.handle(request))
        return self.replies[-1]


async def test_at_a_block_only_changed_allocations_are_reported(rig: EngineRig) -> None:
    await rig.buy(0, 10)
    await rig.index([("bob", COLLATERAL, 10 * TOKEN)])
    await rig.run_once()
    await rig.buy(0, 5, "bob")
    rig.endpoints[PLACES[0].name].target = recorded = Recorded(rig.hosts[0])
    await rig.index([("carol", COLLATERAL, TOKEN)])
    assert await rig.run_once()
    (reported,) = recorded.replies
    assert isinstance(reported, ReportReply)
    assert [each.wallet for each in reported.allocations] == [an_address("bob")]


async def test_while_a_shard_is_down_others_use_what_it_does_not_hold(rig: EngineRig) -> None:
    await rig.buy(0, 10)
    rig.endpoints[PLACES[0].name].target = None
    with pytest.raises(InsufficientBalance):
        await rig.buy(1, 46)
    await rig.buy(1, 45)


async def test_an_order_that_needs_a_treasury_that_is_down_is_not_taken(rig: EngineRig) -> None:
    rig.endpoints[TREASURY].target = None
    with pytest.raises(TreasuryUnavailable):
        await rig.buy(0, 10)
    assert rig.hosts[0].engine.state.placement_by_order == {}


class Silent:
    """An endpoint that does not reply."""

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Wait without end."""
        del request
        await asyncio.Event().wait()
        raise AssertionError


async def test_orders_are_refused_when_the_treasury_is_silent_for_too_long(
    fresh_database: Database, tmp_path: Path
) -> None:
    async with an_engine_rig(tmp_path, fresh_database, fund_deadline_s=0.05) as rig:
        rig.endpoints[TREASURY].target = Silent()
        results = await asyncio.gather(
            *(rig.buy(0, 5, salt=salt) for salt in range(3)), return_exceptions=True
        )
    assert [type(result) for result in results] == [TreasuryUnavailable] * 3


async def test_a_silent_shard_is_skipped(fresh_database: Database, tmp_path: Path) -> None:
    async with an_engine_rig(tmp_path, fresh_database, return_deadline_s=0.05) as rig:
        await rig.buy(0, 10)
        rig.endpoints[PLACES[0].name].target = Silent()
        with pytest.raises(InsufficientBalance):
            await rig.buy(1, 46)


async def test_an_order_is_checked_against_the_treasurys_collateral(rig: EngineRig) -> None:
    request = CheckOrderRequest(a_purchase(0, 100))
    assert await rig.hosts[0].handle(request) == CheckOrderReply()


async def test_a_shard_has_its_own_markets_alone(rig: EngineRig) -> None:
    markets = [list(host.engine.state.market_by_id) for host in rig.hosts]
    assert markets == [[an_open_market(name).condition_id] for name in MARKETS]


async def test_a_shard_observes_neither_collateral_nor_tokens_of_others(rig: EngineRig) -> None:
    tokens = [an_asset(is_yes=True, market=name) for name in MARKETS]
    await rig.index([("alice", token, TOKEN) for token in tokens])
    await rig.run_once()
    assets = [host.engine.state.ledger.accounts_held() for host in rig.hosts]
    assert assets == [[(ALICE, token)] for token in tokens]


async def test_every_shard_writes_tables_under_its_own_name(rig: EngineRig) -> None:
    for shard in SHARDS:
        await rig.buy(shard, 5)
        await rig.hosts[shard].projection.catch_up()
    async with rig.database.reading() as tx:
        written = [await load_sequence(tx, place.name) for place in PLACES]
    assert written == [host.engine.published_sequence for host in rig.hosts]


async def test_unallocated_collateral_counts_as_the_wallets(rig: EngineRig) -> None:
    await rig.buy(0, 10)
    request = AccountRequest(ALICE, COLLATERAL, [EXCHANGE])
    view = await Shards(rig.hosts, rig.treasury).account(request, None)
    assert (view.confirmed_units, view.reserved_units) == (100 * TOKEN, 10 * TOKEN)


async def test_a_treasury_reports_what_it_may_grant(rig: EngineRig) -> None:
    await rig.buy(0, 10)
    view = await rig.treasury.handle(AccountRequest(ALICE, COLLATERAL, [EXCHANGE]))
    assert isinstance(view, AccountReply)
    assert view.confirmed_units == 45 * TOKEN


async def test_loops_catch_up_with_shards_and_observe_the_chain(rig: EngineRig) -> None:
    await rig.restart_treasury()
    running = asyncio.create_task(run_together(rig.treasury.loops().values()))
    await rig.index([("alice", COLLATERAL, 7 * TOKEN)])
    for feed in rig.feeds:
        await feed.run_once()
    async with asyncio.timeout(60):
        while rig.free_tokens() != 7:  # noqa: ASYNC110 - in its own time
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@dataclass
class Absent:
    """A shard that is down or fails, and whether it was asked."""

    refusal: Exception
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Raise."""
        del request
        self.was_asked.set()
        raise self.refusal


@pytest.mark.parametrize("refusal", [EngineRestarting(), ZeroDivisionError()])
async def test_a_block_is_applied_when_a_shard_that_was_down_is_back(
    rig: EngineRig, refusal: Exception
) -> None:
    rig.endpoints[PLACES[0].name].target = absent = Absent(refusal)
    running = asyncio.create_task(rig.treasury.feed.run())
    await rig.index([("alice", COLLATERAL, 7 * TOKEN)])
    for feed in rig.feeds:
        await feed.run_once()
    async with asyncio.timeout(60):
        await absent.was_asked.wait()
        rig.endpoints[PLACES[0].name].target = rig.hosts[0]
        while rig.free_tokens() != 7:  # noqa: ASYNC110 - in its own time
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_treasury_whose_journal_fails_ends_its_loops(rig: EngineRig) -> None:
    running = asyncio.create_task(run_together(rig.treasury.loops().values()))
    rig.treasury.engine.fail(OSError("the disk is gone"))
    with pytest.RaisesGroup(EngineStopped):
        await running


async def test_a_treasury_grants_nothing_before_every_shard_has_joined(
    fresh_database: Database, tmp_path: Path
) -> None:
    rig = EngineRig(tmp_path, fresh_database)
    async with rig.closing:
        await rig.start()
        rig.endpoints[PLACES[1].name].target = None
        rig.folder = tmp_path / "new"
        rig.starts.clear()
        await rig.restart_treasury()
        with pytest.raises(TreasuryUnavailable):
            await rig.treasury.coordinator.fund(PLACES[0].name, ALICE, total_of(1))
        assert rig.treasury.coordinator.unjoined_shards == [PLACES[1].name]
