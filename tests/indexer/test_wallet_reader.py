"""Wallets that held collateral and had approved the exchange before the first indexed block."""

import pytest
from tests.indexer.late_installation import LateInstallation
from tests.indexer.rig import IndexerRig, dump, wipe
from tests.rigs.fault_proxy import Fault, change, proxying, refuse
from tests.rigs.sandbox import Sandbox, catch_up
from tests.rigs.values import an_address

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.values.hexadecimal import Address
from foretell.indexer.follow import follow
from foretell.indexer.wallet_reader import READING_INTERVAL_MS
from foretell.store.database import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def late(rig: IndexerRig, fresh_sandbox: Sandbox, database: Database) -> LateInstallation:
    await rig.act()
    return LateInstallation(fresh_sandbox, database, await fresh_sandbox.reader.head() + 1)


async def test_a_wallet_that_is_asked_for_has_what_it_held_before_the_first_block(
    late: LateInstallation, rig: IndexerRig
) -> None:
    ann, bob = rig.traders[0].address, rig.traders[1].address
    context = late.indexer()
    await late.sandbox.mine()
    await catch_up(context)
    assert await late.funds(ann) == (0, 0, 0)
    await late.ask(ann)
    late.now_ms += READING_INTERVAL_MS
    await late.sandbox.mine()
    await catch_up(context)
    assert await late.funds(ann) == await late.on_chain(ann)
    assert (await late.funds(ann))[0] > 0
    assert not await late.has_read(bob)
    for _ in range(10):
        await rig.act()
        await catch_up(context)
        assert await late.funds(ann) == await late.on_chain(ann)


async def test_logs_of_the_block_that_is_read_do_not_count_twice(
    late: LateInstallation, rig: IndexerRig
) -> None:
    ann, bob = rig.traders[0], rig.traders[1].address
    await late.ask(ann.address)
    deployment = late.sandbox.deployment
    await late.sandbox.call_all(
        ann,
        (deployment.collateral, Transfer(bob, 7)),
        (deployment.collateral, Approve(deployment.exchange, 5_000)),
    )
    await catch_up(late.indexer())
    assert await late.funds(ann.address) == await late.on_chain(ann.address)
    assert (await late.funds(ann.address))[1] == 5_000


async def test_a_reorg_over_the_block_that_was_read_reads_the_wallet_in_the_same_step(
    late: LateInstallation, rig: IndexerRig
) -> None:
    """The engine would cancel the orders of a wallet that has too little for one step."""
    ann = rig.traders[0].address
    await late.sandbox.mine()
    await catch_up(late.indexer())
    snapshot = await late.sandbox.rpc.send("evm_snapshot")
    await late.ask(ann)
    await late.sandbox.mine(2)
    await catch_up(late.indexer())
    assert await late.has_read(ann)
    assert await late.sandbox.rpc.send("evm_revert", snapshot)
    await late.sandbox.rpc.send("evm_increaseTime", 5)
    await rig.act()
    await late.sandbox.mine(3)
    step = await catch_up(late.indexer())
    assert step.unwound_blocks > 0
    assert await late.has_read(ann)
    assert await late.funds(ann) == await late.on_chain(ann)


async def test_a_reorg_that_cannot_read_its_wallets_again_writes_no_block(
    late: LateInstallation, rig: IndexerRig
) -> None:
    ann = rig.traders[0].address
    await late.sandbox.mine()
    await catch_up(late.indexer())
    snapshot = await late.sandbox.rpc.send("evm_snapshot")
    await late.ask(ann)
    await late.sandbox.mine()
    await catch_up(late.indexer())
    assert await late.sandbox.rpc.send("evm_revert", snapshot)
    await late.sandbox.rpc.send("evm_increaseTime", 5)
    await late.sandbox.mine(2)
    async with Rpc("http://127.0.0.1:1") as silent:
        with pytest.raises(ChainUnavailable):
            await catch_up(late.indexer(silent))
        held = (await dump(late.database))["blocks"]
        with pytest.raises(ChainUnavailable):
            await catch_up(late.indexer(silent))
        assert (await dump(late.database))["blocks"] == held
    assert not await late.has_read(ann)
    await catch_up(late.indexer())
    assert await late.funds(ann) == await late.on_chain(ann)


async def test_a_node_that_cannot_be_asked_for_a_new_wallet_does_not_stop_the_indexer(
    late: LateInstallation, rig: IndexerRig
) -> None:
    await late.ask(rig.traders[0].address)
    await late.sandbox.mine()
    async with Rpc("http://127.0.0.1:1") as silent:
        step = await catch_up(late.indexer(silent))
    assert step.last is not None
    assert step.last.block_number == step.head_number
    assert not await late.has_read(rig.traders[0].address)


async def test_a_fresh_index_of_the_asked_wallets_ends_with_the_same_funds(
    late: LateInstallation, rig: IndexerRig
) -> None:
    ann, bob = rig.traders[0].address, rig.traders[1].address
    await late.ask(ann)
    for _ in range(6):
        await rig.act()
        await catch_up(late.indexer(blocks_per_range_max=1))
    await late.ask(bob)
    late.now_ms += READING_INTERVAL_MS
    for _ in range(6):
        await rig.act()
        await catch_up(late.indexer(blocks_per_range_max=3))
    kept = await dump(late.database)
    before = [await late.funds(each) for each in (ann, bob)]
    assert before == [await late.on_chain(each) for each in (ann, bob)]
    await wipe(late.database)
    await catch_up(late.indexer())
    assert [await late.funds(each) for each in (ann, bob)] == before
    again = await dump(late.database)
    same = ("positions", "locked_collateral", "exchange_fills", "activities", "conditions")
    assert {name: again[name] for name in same} == {name: kept[name] for name in same}


async def test_wallets_are_read_a_few_at_a_time_and_each_once(
    late: LateInstallation,
) -> None:
    """A stranger that asks for many wallets costs the node a bounded number of calls."""
    strangers = [an_address(f"stranger {number}") for number in range(5)]
    await late.ask(*strangers)
    context = late.indexer()
    read = []
    for _ in range(5):
        late.now_ms += READING_INTERVAL_MS // 2
        await late.sandbox.mine()
        await catch_up(context)
        read.append(sum([await late.has_read(each) for each in strangers]))
    assert read == [2, 2, 4, 4, 5]
    assert await late.funds(strangers[0]) == (0, 0, 0)


@pytest.mark.parametrize(("again_max", "read"), [(2, [2, 4, 5]), (4, [4, 5, 5]), (9, [5, 5, 5])])
async def test_wallets_that_a_reorg_left_are_read_again_in_bounded_numbers(
    late: LateInstallation, rig: IndexerRig, again_max: int, read: list[int]
) -> None:
    wallets = [*(each.address for each in rig.traders[:2]), *map(an_address, ("x", "y", "z"))]
    await late.ask(*wallets)
    await late.sandbox.mine()
    bottom, snapshot = await late.sandbox.reader.head(), await late.sandbox.rpc.send("evm_snapshot")
    for _ in range(3):
        late.now_ms += READING_INTERVAL_MS
        await late.sandbox.mine()
        await catch_up(late.indexer())
    assert await how_many_are_read(late, wallets) == 5
    replaced = await late.sandbox.reader.head() - bottom
    assert await late.sandbox.rpc.send("evm_revert", snapshot)
    await late.sandbox.rpc.send(
        "evm_increaseTime", 7
    )  # empty blocks of the same times are the same blocks
    await late.sandbox.mine(replaced)
    context = late.indexer(again_max=again_max)
    again = []
    for _ in read:
        await late.sandbox.mine()
        await catch_up(context)
        again.append(await how_many_are_read(late, wallets))
    assert again == read
    for each in wallets:
        assert await late.funds(each) == await late.on_chain(each)


async def how_many_are_read(late: LateInstallation, wallets: list[Address]) -> int:
    return sum([await late.has_read(each) for each in wallets])


async def test_blocks_far_below_the_head_are_not_read(
    late: LateInstallation, rig: IndexerRig
) -> None:
    """A node without history answers only for the newest states."""
    ann = rig.traders[0].address
    await late.ask(ann)
    await late.sandbox.mine(200)
    context = late.indexer(blocks_per_range_max=50)
    await follow(context)
    assert not await late.has_read(ann)
    await catch_up(context)
    late.now_ms += READING_INTERVAL_MS
    await late.sandbox.mine()
    await catch_up(context)
    assert await late.funds(ann) == await late.on_chain(ann)


ONE_UNIT = change(lambda _: "0x" + "1".zfill(64))
REVERTED = refuse("execution reverted", 3)


@pytest.mark.parametrize("lie", [ONE_UNIT, REVERTED], ids=["another amount", "a revert"])
async def test_guard_one_false_answer_does_not_fix_the_funds_of_a_wallet(
    late: LateInstallation, rig: IndexerRig, lie: Fault
) -> None:
    """A finding: nothing ever corrected them, and its owner could not trade, or could without funds."""
    ann = rig.traders[0].address
    await late.ask(ann)
    sandbox = late.sandbox
    async with proxying(sandbox.rpc_url) as proxy, Rpc(proxy.url) as lying:
        context = late.indexer(lying)
        proxy.fail("eth_call", lie)
        await sandbox.mine()
        await catch_up(context)
        assert not await late.has_read(ann)
        late.now_ms += READING_INTERVAL_MS
        await sandbox.mine()
        await catch_up(context)
    assert await late.has_read(ann)
    assert await late.funds(ann) == await late.on_chain(ann)
