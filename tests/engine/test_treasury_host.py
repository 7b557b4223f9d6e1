"""Several shards and their treasury over tables, as they run, but for the sockets between them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from tests.engine.sharded import MARKETS, PLACES, TREASURY, Sharded, a_purchase, a_sharded
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
from foretell.engine.allocations import client, collateral_feed, coordinator
from foretell.engine.protocol.requests import (
    AccountReply,
    AccountRequest,
    CancelOrdersRequest,
    CheckOrderReply,
    CheckOrderRequest,
    EngineEndpoint,
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
async def sharded(fresh_database: Database, tmp_path: Path) -> AsyncIterator[Sharded]:
    """Two shards, and alice with a hundred tokens of collateral."""
    async with a_sharded(tmp_path, fresh_database) as sharded:
        yield sharded


@pytest.mark.parametrize("shard", SHARDS)
async def test_a_wallet_uses_all_of_its_balance_in_one_market(sharded: Sharded, shard: int) -> None:
    await sharded.buy(shard, 100)
    assert (sharded.slice_tokens(shard), sharded.free_tokens()) == (100, 0)


async def test_what_was_granted_to_one_shard_is_used_in_another(sharded: Sharded) -> None:
    await sharded.buy(0, 10)
    assert sharded.slice_tokens(0) == 55
    await sharded.buy(1, 90)
    assert (sharded.slice_tokens(0), sharded.slice_tokens(1)) == (10, 90)


async def test_over_sockets_all_of_a_balance_is_used_and_none_of_it_twice(
    sharded: Sharded,
) -> None:
    await sharded.open_sockets()
    results = await asyncio.gather(
        *(sharded.buy(shard, 5, salt=salt) for salt in range(15) for shard in SHARDS),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, NotEnoughFunds)]
    assert (len(refused), sharded.reserved_tokens()) == (10, 100)
    await sharded.index([("alice", COLLATERAL, 110 * TOKEN)])
    assert await sharded.run_once()
    await sharded.buy(0, 10, salt=99)


async def test_two_shards_that_race_for_a_last_unit_never_both_spend_it(
    fresh_database: Database, tmp_path: Path
) -> None:
    names, random = [f"racer {number}" for number in range(RACERS)], Random(7)
    async with a_sharded(tmp_path, fresh_database, 5, *names) as sharded:
        winners: list[int] = []
        for heat in range(HEATS):
            heads = [random.uniform(-HEAD_S_MAX, HEAD_S_MAX) for _ in names]
            won = await asyncio.gather(
                *(race(sharded, *racer, heat) for racer in zip(names, heads, strict=True))
            )
            assert [sharded.reserved_tokens(name) for name in names] == [5] * RACERS
            winners += await asyncio.gather(*(cancel(sharded, placed) for placed in won))
        assert (len(winners), set(winners)) == (RACERS * HEATS, set(SHARDS))


async def race(sharded: Sharded, name: str, head_s: float, heat: int) -> PlaceReply:
    """Return the order that won, the other one having been refused; one starts a little ahead."""

    async def run(shard: int, after_s: float) -> EngineReply:
        await asyncio.sleep(max(after_s, 0))
        return await sharded.hosts[shard].ask(PlaceRequest(a_purchase(shard, 5, name, salt=heat)))

    results = await asyncio.gather(run(0, head_s), run(1, -head_s), return_exceptions=True)
    (won,) = [result for result in results if isinstance(result, PlaceReply)]
    assert sum(isinstance(result, NotEnoughFunds) for result in results) == 1
    return won


async def cancel(sharded: Sharded, placed: PlaceReply) -> int:
    """Take an order out of its book, and return its shard."""
    order_id = placed.placement.order_id
    states = [host.engine.state for host in sharded.hosts]
    (shard,) = [number for number in SHARDS if order_id in states[number].live_orders]
    signer = states[shard].live_orders[order_id].signer
    await sharded.hosts[shard].ask(CancelOrdersRequest(signer, [order_id]))
    return shard


async def test_orders_of_a_wallet_in_both_shards_use_up_what_it_has(sharded: Sharded) -> None:
    results = await asyncio.gather(
        *(sharded.buy(shard, 5, salt=salt) for salt in range(15) for shard in SHARDS),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, NotEnoughFunds)]
    assert (len(refused), sharded.reserved_tokens()) == (10, 100)


@pytest.mark.parametrize("killed", SHARDS)
async def test_after_the_kill_of_a_shard_nothing_is_spent_twice(
    sharded: Sharded, killed: int
) -> None:
    buying = some_orders(sharded)
    await asyncio.wait(buying, return_when=asyncio.FIRST_COMPLETED)
    await sharded.restart_shard(killed)
    await asyncio.gather(*buying, return_exceptions=True)
    await sharded.restart_treasury()
    await check_all_can_be_used(sharded)


async def test_after_the_kill_of_the_treasury_nothing_is_spent_twice(sharded: Sharded) -> None:
    buying = some_orders(sharded)
    await asyncio.wait(buying, return_when=asyncio.FIRST_COMPLETED)
    await sharded.restart_treasury()
    await asyncio.gather(*buying, return_exceptions=True)
    await check_all_can_be_used(sharded)


def some_orders(sharded: Sharded) -> list["asyncio.Task[object]"]:
    return [
        asyncio.ensure_future(sharded.buy(shard, 5, salt=salt))
        for salt in range(10)
        for shard in SHARDS
    ]


async def check_all_can_be_used(sharded: Sharded) -> None:
    """Place what is missing, and more than there is."""
    assert sharded.reserved_tokens() <= 100
    await asyncio.gather(
        *(sharded.buy(shard, 5, salt=salt) for salt in range(20) for shard in SHARDS),
        return_exceptions=True,
    )
    assert sharded.reserved_tokens() == 100


async def test_a_settled_trade_moves_the_slices_of_both_sides(sharded: Sharded) -> None:
    token = an_asset(is_yes=True, market=MARKETS[0])
    await sharded.index([("bob", token, 10 * TOKEN)])
    assert await sharded.run_once()
    sale = a_placing(a_sell("bob", market=MARKETS[0]), market=an_open_market(MARKETS[0]))
    await sharded.place(0, sale)
    await sharded.buy(0, 5)
    (trade_id,) = sharded.hosts[0].engine.state.unsettled_trades
    free = sharded.free_tokens()
    await sharded.index(
        [("alice", COLLATERAL, 95 * TOKEN), ("bob", COLLATERAL, 5 * TOKEN), ("bob", token, 0)],
        [trade_id],
    )
    assert await sharded.run_once()
    state = sharded.treasury.engine.state
    settled = {
        name: look_up_allocation(state, PLACES[0].name, an_address(name)).settled_units // TOKEN
        for name in ("alice", "bob")
    }
    assert settled == {"alice": -5, "bob": 5}
    assert (sharded.free_tokens(), sharded.free_tokens("bob")) == (free, 0)
    await sharded.buy(1, 5, "bob")


async def test_what_is_withdrawn_on_the_chain_is_called_back_by_force_when_it_lasts(
    sharded: Sharded,
) -> None:
    await sharded.buy(0, 40)
    await sharded.buy(1, 20)
    await sharded.index([("alice", COLLATERAL, 30 * TOKEN)])
    assert await sharded.run_once()
    assert (sharded.free_tokens(), sharded.reserved_tokens()) == (-30, 60)
    sharded.clock.move(collateral_feed.OVERDRAWN_MS_MAX)
    await sharded.run_once()
    assert (sharded.free_tokens(), sharded.reserved_tokens()) == (0, 20)


async def test_a_wallet_that_was_short_for_a_while_keeps_its_orders(sharded: Sharded) -> None:
    await sharded.buy(0, 40)
    await sharded.index([("alice", COLLATERAL, 30 * TOKEN)])
    await sharded.run_once()
    await sharded.index([("alice", COLLATERAL, 100 * TOKEN)])
    await sharded.run_once()
    sharded.clock.move(collateral_feed.OVERDRAWN_MS_MAX)
    await sharded.run_once()
    assert (sharded.free_tokens(), sharded.reserved_tokens()) == (60, 40)


async def test_a_deposit_that_a_reorg_takes_back_is_not_granted(sharded: Sharded) -> None:
    await sharded.index([("alice", COLLATERAL, 500 * TOKEN), ("bob", COLLATERAL, 7 * TOKEN)])
    assert await sharded.run_once()
    async with sharded.database.writing() as tx:
        await unwind(tx, 1)
    sharded.blocks = 1
    await sharded.index([("carol", COLLATERAL, TOKEN)], fork="other")
    assert await sharded.run_once()
    free = [sharded.free_tokens(name) for name in ("alice", "bob", "carol")]
    assert free == [100, 0, 1]


async def test_a_block_counts_once_every_shard_has_observed_it(sharded: Sharded) -> None:
    await sharded.index([("alice", COLLATERAL, 500 * TOKEN)])
    await sharded.feeds[0].run_once()
    assert await sharded.treasury.feed.run_once()
    assert sharded.free_tokens() == 100
    await sharded.feeds[1].run_once()
    assert not await sharded.treasury.feed.run_once()
    assert sharded.free_tokens() == 500


@dataclass
class Overheard:
    """Somebody's answers, written down."""

    behind: EngineEndpoint
    answers: list[EngineReply] = field(default_factory=list)

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return the answer."""
        self.answers.append(await self.behind.ask(question))
        return self.answers[-1]


async def test_at_a_block_the_treasury_hears_of_changed_slices_alone(sharded: Sharded) -> None:
    await sharded.buy(0, 10)
    await sharded.index([("bob", COLLATERAL, 10 * TOKEN)])
    await sharded.run_once()
    await sharded.buy(0, 5, "bob")
    sharded.doors[PLACES[0].name].behind = overheard = Overheard(sharded.hosts[0])
    await sharded.index([("carol", COLLATERAL, TOKEN)])
    assert await sharded.run_once()
    (reported,) = overheard.answers
    assert isinstance(reported, ReportReply)
    assert [each.wallet for each in reported.allocations] == [an_address("bob")]


async def test_while_a_shard_is_down_others_use_what_it_does_not_hold(sharded: Sharded) -> None:
    await sharded.buy(0, 10)
    sharded.doors[PLACES[0].name].behind = None
    with pytest.raises(InsufficientBalance):
        await sharded.buy(1, 46)
    await sharded.buy(1, 45)


async def test_an_order_that_needs_a_treasury_that_is_down_is_not_taken(sharded: Sharded) -> None:
    sharded.doors[TREASURY].behind = None
    with pytest.raises(TreasuryUnavailable):
        await sharded.buy(0, 10)
    assert sharded.hosts[0].engine.state.placement_by_order == {}


class Silent:
    """Whoever is asked this says nothing."""

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Wait for ever."""
        del question
        await asyncio.Event().wait()
        raise AssertionError


async def test_orders_do_not_wait_for_ever_for_a_treasury_that_is_silent(
    sharded: Sharded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "FUND_DEADLINE_S", 0.05)
    sharded.doors[TREASURY].behind = Silent()
    results = await asyncio.gather(
        *(sharded.buy(0, 5, salt=salt) for salt in range(3)), return_exceptions=True
    )
    assert [type(result) for result in results] == [TreasuryUnavailable] * 3


async def test_a_shard_that_is_silent_is_passed_over(
    sharded: Sharded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "GIVE_BACK_DEADLINE_S", 0.05)
    await sharded.buy(0, 10)
    sharded.doors[PLACES[0].name].behind = Silent()
    with pytest.raises(InsufficientBalance):
        await sharded.buy(1, 46)


async def test_an_order_is_judged_with_what_the_treasury_has(sharded: Sharded) -> None:
    question = CheckOrderRequest(a_purchase(0, 100))
    assert await sharded.hosts[0].ask(question) == CheckOrderReply()


async def test_a_shard_has_its_own_markets_alone(sharded: Sharded) -> None:
    markets = [list(host.engine.state.market_by_id) for host in sharded.hosts]
    assert markets == [[an_open_market(name).condition_id] for name in MARKETS]


async def test_a_shard_observes_neither_collateral_nor_tokens_of_others(sharded: Sharded) -> None:
    tokens = [an_asset(is_yes=True, market=name) for name in MARKETS]
    await sharded.index([("alice", token, TOKEN) for token in tokens])
    await sharded.run_once()
    assets = [host.engine.state.ledger.accounts_held() for host in sharded.hosts]
    assert assets == [[(ALICE, token)] for token in tokens]


async def test_every_shard_tells_the_tables_under_its_name(sharded: Sharded) -> None:
    for shard in SHARDS:
        await sharded.buy(shard, 5)
        await sharded.hosts[shard].projection.catch_up()
    async with sharded.database.reading() as tx:
        told = [await load_sequence(tx, place.name) for place in PLACES]
    assert told == [host.engine.published_sequence for host in sharded.hosts]


async def test_what_is_in_no_slice_counts_as_the_wallets(sharded: Sharded) -> None:
    await sharded.buy(0, 10)
    question = AccountRequest(ALICE, COLLATERAL, [EXCHANGE])
    shards = Shards(sharded.hosts, sharded.treasury)
    view = await shards.account(question, None)
    assert (view.confirmed_units, view.reserved_units) == (100 * TOKEN, 10 * TOKEN)


async def test_a_treasury_says_what_it_may_grant(sharded: Sharded) -> None:
    await sharded.buy(0, 10)
    view = await sharded.treasury.ask(AccountRequest(ALICE, COLLATERAL, [EXCHANGE]))
    assert isinstance(view, AccountReply)
    assert view.confirmed_units == 45 * TOKEN


async def test_loops_greet_shards_and_watch_the_chain(sharded: Sharded) -> None:
    await sharded.restart_treasury()
    running = asyncio.create_task(run_together(sharded.treasury.loops().values()))
    await sharded.index([("alice", COLLATERAL, 7 * TOKEN)])
    for feed in sharded.feeds:
        await feed.run_once()
    async with asyncio.timeout(10):
        while sharded.free_tokens() != 7:  # noqa: ASYNC110 - in its own time
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@dataclass
class Absent:
    """A shard that is down, and who was there to see it."""

    refusal: Exception
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Refuse, or break down."""
        del question
        self.was_asked.set()
        raise self.refusal


@pytest.mark.parametrize("refusal", [EngineRestarting(), ZeroDivisionError()])
async def test_a_block_is_taken_in_when_a_shard_that_was_down_is_back(
    sharded: Sharded, refusal: Exception
) -> None:
    sharded.doors[PLACES[0].name].behind = absent = Absent(refusal)
    running = asyncio.create_task(sharded.treasury.feed.run())
    await sharded.index([("alice", COLLATERAL, 7 * TOKEN)])
    for feed in sharded.feeds:
        await feed.run_once()
    async with asyncio.timeout(10):
        await absent.was_asked.wait()
        sharded.doors[PLACES[0].name].behind = sharded.hosts[0]
        while sharded.free_tokens() != 7:  # noqa: ASYNC110 - in its own time
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_treasury_whose_journal_fails_ends_what_runs_it(sharded: Sharded) -> None:
    running = asyncio.create_task(run_together(sharded.treasury.loops().values()))
    sharded.treasury.engine._fail(OSError("the disk is gone"))
    with pytest.RaisesGroup(EngineStopped):
        await running


async def test_before_it_has_heard_of_every_shard_a_treasury_grants_nothing(
    fresh_database: Database, tmp_path: Path
) -> None:
    sharded = Sharded(tmp_path, fresh_database)
    async with sharded.closing:
        await sharded.start()
        sharded.doors[PLACES[1].name].behind = None
        sharded.folder = tmp_path / "new"
        sharded.starts.clear()
        await sharded.restart_treasury()
        with pytest.raises(TreasuryUnavailable):
            await sharded.treasury.coordinator.fund(PLACES[0].name, ALICE, total_of(1))
        assert sharded.treasury.coordinator.unjoined_shards == [PLACES[1].name]
