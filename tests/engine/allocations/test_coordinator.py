"""The coordinator between a treasury and its shards, over journals in files."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.engine.rig import PATIENT_S, LocalShard, LocalTreasury
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    a_word,
    an_address,
    an_open_market,
    some_funds,
)
from typing_extensions import override

from foretell.domain.errors.exchange import (
    EngineRestarting,
    EngineStopped,
    InsufficientBalance,
    TreasuryUnavailable,
)
from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    PlaceOrder,
    ReturnAllocation,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.treasury.commands import AdmitShard, GrantAllocation, TakeBack
from foretell.domain.treasury.treasury import free_units, look_up_allocation
from foretell.engine.allocations.client import AllocationClient
from foretell.engine.allocations.coordinator import AllocationCoordinator
from foretell.engine.answers import place as place_order
from foretell.engine.protocol.requests import PlaceReply, PlaceRequest
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.treasury_engine import TreasuryEngine
from foretell.journal.files.journal import FileJournal

pytestmark = pytest.mark.anyio

ALICE, BOB = an_address("alice"), an_address("bob")
NORTH, SOUTH = "north", "south"
SHARDS = (NORTH, SOUTH)
SEGMENT_BYTES = 64 * 1024
PLENTY = 10**12
AFTER = "after"


class Exchange(NamedTuple):
    """Two shards with a market each, and their treasury."""

    folder: Path
    treasury: TreasuryEngine
    shards: dict[str, Engine]
    coordinator: AllocationCoordinator
    allocation_clients: dict[str, AllocationClient]

    async def buy(self, shard: str, tokens: int, salt: int = 1) -> PlaceOrder:
        """Place alice's order that costs this many tokens of collateral."""
        command = a_purchase(shard, tokens, salt)
        await self.place(shard, command)
        return command

    async def place(self, shard: str, command: PlaceOrder) -> None:
        """Place an order in a shard, with collateral from the treasury."""
        await place(self.allocation_clients[shard], self.shards[shard], command)

    async def observe(self, block: int, tokens: int) -> bool:
        """Submit alice's balance at a block that the shards have observed."""
        allowances = [AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=PLENTY)]
        return await self.coordinator.observe(
            block, a_word(f"block {block}"), [a_balance(tokens)], allowances
        )

    def free_tokens(self) -> int:
        return free_units(self.treasury.state, ALICE) // TOKEN

    def allocated_tokens(self, shard: str) -> int:
        return self.shards[shard].state.allocations.look_up(ALICE).units // TOKEN


async def place(allocation_client: AllocationClient, engine: Engine, command: PlaceOrder) -> None:
    assert isinstance(
        await allocation_client.handle(place_order, engine, PlaceRequest(command)), PlaceReply
    )


def some_allocation_clients(coordinator: AllocationCoordinator) -> dict[str, AllocationClient]:
    treasury = LocalTreasury(coordinator)
    return {name: AllocationClient(name, treasury, fund_deadline_s=PATIENT_S) for name in SHARDS}


def local(shards: dict[str, Engine]) -> dict[str, LocalShard]:
    return {name: LocalShard(engine) for name, engine in shards.items()}


def a_balance(tokens: int) -> BalanceSeen:
    return BalanceSeen(ALICE, COLLATERAL, tokens * TOKEN)


def a_purchase(shard: str, tokens: int, salt: int = 1) -> PlaceOrder:
    order = a_buy("alice", size_units=2 * tokens * TOKEN, market=shard, salt=str(salt))
    return a_placing(order, market=an_open_market(shard))


def a_journal(folder: Path) -> FileJournal:
    return FileJournal(folder, segment_bytes=SEGMENT_BYTES)


@contextlib.asynccontextmanager
async def an_exchange(folder: Path, totals_per_command_max: int = 1_000) -> AsyncIterator[Exchange]:
    """Start from what the journals in the folder say."""
    treasury = TreasuryEngine(a_journal(folder / "treasury"), lambda: NOW_MS)
    shards = {name: Engine(a_journal(folder / name), lambda: NOW_MS) for name in SHARDS}
    await treasury.start()
    for engine in shards.values():
        await engine.start()
    try:
        coordinator = AllocationCoordinator(
            treasury,
            local(shards),
            totals_per_command_max=totals_per_command_max,
            return_deadline_s=PATIENT_S,
        )
        await coordinator.start()
        yield Exchange(folder, treasury, shards, coordinator, some_allocation_clients(coordinator))
    finally:
        await treasury.close()
        for engine in shards.values():
            await engine.close()


@contextlib.asynccontextmanager
async def a_new_exchange(
    folder: Path, tokens: int = 100, totals_per_command_max: int = 1_000
) -> AsyncIterator[Exchange]:
    async with an_exchange(folder, totals_per_command_max) as exchange:
        for name, engine in exchange.shards.items():
            await engine.submit(an_open_market(name))
            await engine.submit(some_funds("alice", "bob", market=name))
        assert await exchange.observe(1, tokens)
        yield exchange


@contextlib.asynccontextmanager
async def after_a_kill(exchange: Exchange) -> AsyncIterator[Exchange]:
    """Start from the journals as they lie on the disk now, as a kill -9 leaves them."""
    folder = exchange.folder / AFTER
    shutil.copytree(exchange.folder, folder, ignore=shutil.ignore_patterns(AFTER))
    async with an_exchange(folder) as again:
        yield again


@pytest.mark.parametrize("shard", SHARDS)
async def test_one_market_can_use_the_whole_balance(tmp_path: Path, shard: str) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        await exchange.buy(shard, 100)
        assert (exchange.allocated_tokens(shard), exchange.free_tokens()) == (100, 0)


async def test_what_one_shard_does_not_need_another_gets(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        await exchange.buy(NORTH, 10)
        assert exchange.allocated_tokens(NORTH) == 55
        await exchange.buy(SOUTH, 90)
        assert (exchange.allocated_tokens(NORTH), exchange.allocated_tokens(SOUTH)) == (10, 90)


async def test_no_two_shards_spend_the_same_unit(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        await exchange.buy(NORTH, 60)
        with pytest.raises(InsufficientBalance):
            await exchange.buy(SOUTH, 41)
        await exchange.buy(SOUTH, 40)


async def test_while_an_allocation_suffices_the_treasury_is_not_asked(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        await exchange.buy(NORTH, 10)
        treasury = TreasuryEngine(a_journal(tmp_path / "down"), lambda: NOW_MS)
        allocation_clients = some_allocation_clients(
            AllocationCoordinator(treasury, local(exchange.shards), return_deadline_s=PATIENT_S)
        )
        alone = exchange._replace(allocation_clients=allocation_clients)
        await alone.buy(NORTH, 45, salt=2)
        with pytest.raises(TreasuryUnavailable):
            await alone.buy(NORTH, 5, salt=3)
        await treasury.close()


async def test_of_orders_that_race_for_a_balance_as_many_win_as_it_covers(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path, tokens=30) as exchange:
        results = await asyncio.gather(
            *(exchange.buy(shard, 10, salt) for salt in range(5) for shard in SHARDS),
            return_exceptions=True,
        )
        won = [result for result in results if isinstance(result, PlaceOrder)]
        reserved = [
            engine.state.ledger.look_up(ALICE, COLLATERAL).reserved_units
            for engine in exchange.shards.values()
        ]
        assert (len(won), sum(reserved)) == (3, 30 * TOKEN)


async def test_missing_tokens_are_not_asked_of_the_treasury(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        order = a_sell("carol", market=NORTH)
        with pytest.raises(InsufficientBalance):
            await exchange.place(NORTH, a_placing(order, market=an_open_market(NORTH)))


async def test_collateral_that_would_not_help_is_not_asked_for(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        order = a_buy("carol", market=NORTH)
        with pytest.raises(InsufficientBalance):
            await exchange.place(NORTH, a_placing(order, market=an_open_market(NORTH)))
        assert exchange.treasury.state.allocations_by_wallet == {}


async def test_a_grant_that_a_kill_kept_from_its_shard_arrives_after_it(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path / "journals") as exchange:
        await exchange.treasury.submit(GrantAllocation(NOW_MS, NORTH, ALICE, total_of(100 * TOKEN)))
        assert exchange.allocated_tokens(NORTH) == 0
        async with after_a_kill(exchange) as again:
            assert (again.allocated_tokens(NORTH), again.free_tokens()) == (100, 0)


async def test_a_return_that_a_kill_kept_from_the_treasury_arrives_after_it(
    tmp_path: Path,
) -> None:
    async with a_new_exchange(tmp_path / "journals") as exchange:
        await exchange.buy(NORTH, 10)
        wanted = ReturnAllocation(NOW_MS, NORTH, ALICE, total_of(45 * TOKEN))
        await exchange.shards[NORTH].submit(wanted)
        assert exchange.free_tokens() == 45
        async with after_a_kill(exchange) as again:
            assert (again.allocated_tokens(NORTH), again.free_tokens()) == (10, 90)


async def test_after_a_kill_in_the_middle_of_many_orders_nothing_is_spent_twice(
    tmp_path: Path,
) -> None:
    async with a_new_exchange(tmp_path / "journals") as exchange:
        buying = [
            asyncio.create_task(exchange.buy(shard, 5, salt))
            for salt in range(20)
            for shard in SHARDS
        ]
        await asyncio.wait(buying, return_when=asyncio.FIRST_COMPLETED)
        async with after_a_kill(exchange) as again:
            allocations = [
                again.shards[name].state.allocations.look_up(ALICE).units for name in SHARDS
            ]
            assert sum(allocations) + free_units(again.treasury.state, ALICE) == 100 * TOKEN
            results = await asyncio.gather(
                *(again.buy(shard, 5, salt) for salt in range(20) for shard in SHARDS),
                return_exceptions=True,
            )
            assert sum(isinstance(result, PlaceOrder) for result in results) == 20
        await asyncio.gather(*buying, return_exceptions=True)


async def test_a_settled_trade_leaves_as_much_to_spend_and_to_grant(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        north = exchange.shards[NORTH]
        await exchange.place(
            NORTH, a_placing(a_sell("bob", market=NORTH), market=an_open_market(NORTH))
        )
        await exchange.buy(NORTH, 5)
        (trade_id,) = north.state.unsettled_trades
        free = exchange.free_tokens()
        mined = a_settlement(trade_id, TradeStatus.MINED)
        for engine in exchange.shards.values():
            await engine.submit(
                msgspec.structs.replace(mined, block_number=2, block_hash=a_word("block 2"))
            )
        assert await exchange.observe(2, 95)
        assert exchange.free_tokens() == free
        assert look_up_allocation(exchange.treasury.state, NORTH, ALICE).settled_units == -5 * TOKEN
        assert look_up_allocation(exchange.treasury.state, NORTH, BOB).settled_units == 5 * TOKEN


async def test_a_block_that_the_shards_have_not_observed_is_not_applied(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        assert not await exchange.observe(2, 500)
        assert exchange.free_tokens() == 100


async def test_an_observation_too_large_for_one_command_is_submitted_in_parts(
    tmp_path: Path,
) -> None:
    async with a_new_exchange(tmp_path / "journals", totals_per_command_max=2) as exchange:
        wallets = [an_address(f"trader {number}") for number in range(5)]
        balances = [BalanceSeen(wallet, COLLATERAL, TOKEN) for wallet in wallets]
        allowances = [
            AllowanceSeen(wallet, EXCHANGE, is_collateral=True, units=TOKEN) for wallet in wallets
        ]
        assert await exchange.coordinator.observe(1, a_word("block 1"), balances, allowances)
        treasury = exchange.treasury
        assert [free_units(treasury.state, wallet) for wallet in wallets] == [TOKEN] * 5
        for wallet in wallets:
            await treasury.submit(GrantAllocation(NOW_MS, NORTH, wallet, total_of(TOKEN)))
        async with after_a_kill(exchange) as again:
            allocations = again.shards[NORTH].state.allocations
            assert [allocations.look_up(wallet).units for wallet in wallets] == [TOKEN] * 5


async def test_a_withdrawal_is_called_back_and_by_force_closes_orders(
    tmp_path: Path,
) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        await exchange.buy(NORTH, 40)
        await exchange.buy(SOUTH, 20)
        assert await exchange.observe(1, 30)
        await exchange.coordinator.call_back(forced=[])
        assert exchange.free_tokens() == -30
        assert [len(engine.state.live_orders) for engine in exchange.shards.values()] == [1, 1]
        await exchange.coordinator.call_back(forced=[ALICE])
        assert exchange.free_tokens() == 0
        assert [len(engine.state.live_orders) for engine in exchange.shards.values()] == [0, 1]


async def test_a_shard_that_is_down_keeps_its_allocation_and_no_other_waits_for_it(
    tmp_path: Path,
) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        await exchange.buy(NORTH, 10)
        down = Engine(a_journal(tmp_path / "down"), lambda: NOW_MS)
        without = AllocationCoordinator(exchange.treasury, local(exchange.shards | {NORTH: down}))
        await without.catch_up(SOUTH)
        rest = exchange._replace(allocation_clients=some_allocation_clients(without))
        with pytest.raises(InsufficientBalance):
            await rest.buy(SOUTH, 46)
        await rest.buy(SOUTH, 45)
        await down.close()


async def test_a_treasury_that_lost_its_journal_is_refused(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path / "journals") as exchange:
        await exchange.buy(NORTH, 10)
        (lost := tmp_path / "lost").mkdir()
        shutil.copytree(exchange.folder / NORTH, lost / NORTH)
        with pytest.raises(EngineStopped, match="the treasury's journal says 0"):
            async with an_exchange(lost):
                pass


async def test_a_shard_that_lost_its_journal_gets_what_it_had_and_no_more(tmp_path: Path) -> None:
    async with a_new_exchange(tmp_path / "journals") as exchange:
        await exchange.buy(NORTH, 10)
        await exchange.buy(SOUTH, 90)
        (lost := tmp_path / "lost").mkdir()
        shutil.copytree(exchange.folder / "treasury", lost / "treasury")
        async with an_exchange(lost) as again:
            assert (again.allocated_tokens(NORTH), again.allocated_tokens(SOUTH)) == (10, 90)
            assert again.free_tokens() == 0


async def test_a_shard_that_came_back_empty_gets_nothing_until_it_has_caught_up(
    tmp_path: Path,
) -> None:
    async with a_new_exchange(tmp_path) as exchange:
        await exchange.buy(NORTH, 10)
        empty = Engine(a_journal(tmp_path / "empty"), lambda: NOW_MS)
        await empty.start()
        await empty.submit(some_funds("alice", "bob", market=NORTH))
        shards = local(exchange.shards)
        coordinator = AllocationCoordinator(exchange.treasury, shards)
        await coordinator.start()
        shards[NORTH] = LocalShard(empty)
        assert not await coordinator.observe(1, a_word("block 1"), [], [])
        assert coordinator.unjoined_shards == [NORTH]
        with pytest.raises(TreasuryUnavailable):
            await coordinator.fund(NORTH, ALICE, total_of(TOKEN))
        await empty.close()


async def test_before_every_shard_was_admitted_no_block_is_applied(tmp_path: Path) -> None:
    treasury = TreasuryEngine(a_journal(tmp_path), lambda: NOW_MS)
    await treasury.start()
    coordinator = AllocationCoordinator(
        treasury, dict.fromkeys(SHARDS, LocalTreasury(AllocationCoordinator(treasury, {})))
    )
    assert not await coordinator.observe(1, a_word("block 1"), [a_balance(1)], [])
    await treasury.close()


class FailingJournal(FileJournal):
    """A journal whose disk fails at the first append."""

    @override
    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Keep the callback of a failure."""
        super().start(on_synced, on_failed)
        self.fail = on_failed

    @override
    def append(self, payload: bytes, command_id: bytes | None = None) -> int:
        """Take it, and fail before it is written."""
        assert payload
        asyncio.get_running_loop().call_soon(self.fail, OSError("the disk is gone"))
        return 1


async def test_a_treasury_whose_journal_fails_stops(tmp_path: Path) -> None:
    journal = FailingJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    treasury = TreasuryEngine(journal, lambda: NOW_MS)
    await treasury.start()
    admit = AdmitShard(NOW_MS, NORTH)
    results = await asyncio.gather(
        treasury.submit(admit), treasury.submit(admit), treasury.sync(), return_exceptions=True
    )
    assert [type(result) for result in results] == [EngineStopped] * 3
    with pytest.raises(EngineStopped, match="the disk is gone"):
        await treasury.submit(admit)
    await treasury.close()


async def test_a_fault_while_a_command_is_taken_stops_the_treasury(tmp_path: Path) -> None:
    treasury = TreasuryEngine(a_journal(tmp_path), lambda: NOW_MS)
    await treasury.start()
    unknown = GrantAllocation(NOW_MS, NORTH, ALICE, total_of(0))
    await treasury.submit(unknown)
    with pytest.raises(AssertionError):
        await treasury.submit(TakeBack(NOW_MS, NORTH, (AllocationTotal(ALICE, total_of(1)),)))
    with pytest.raises(EngineStopped, match="AssertionError"):
        await treasury.submit(unknown)
    await treasury.close()


async def test_a_treasury_takes_nothing_before_it_read_its_journal(tmp_path: Path) -> None:
    treasury = TreasuryEngine(a_journal(tmp_path), lambda: NOW_MS)
    with pytest.raises(EngineRestarting):
        await treasury.sync()
    await treasury.close()


async def test_a_caller_that_stops_waiting_keeps_no_other_from_its_result(tmp_path: Path) -> None:
    treasury = TreasuryEngine(a_journal(tmp_path), lambda: NOW_MS)
    await treasury.start()
    impatient = asyncio.create_task(treasury.submit(AdmitShard(NOW_MS, NORTH)))
    await asyncio.sleep(0)
    impatient.cancel()
    await treasury.submit(AdmitShard(NOW_MS, SOUTH))
    assert list(treasury.state.shards) == [NORTH, SOUTH]
    await treasury.close()
