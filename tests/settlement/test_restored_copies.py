"""Copies of an older time that are restored: what was settled since is found on the chain (A-09)."""

import shutil
from typing import Final

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from tests.rigs.fault_proxy import (
    Answer,
    Fault,
    FaultProxy,
    Forward,
    Request,
    change,
    honest,
    refuse,
)
from tests.rigs.sandbox import SandboxMarket, catch_up
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_batches import matched

from foretell.chain.broadcaster import REPLACED_PREFIX
from foretell.chain.sender import REPLACED_AT_ONCE_MAX
from foretell.chain.unknown_nonces import NONCES_AHEAD_MAX
from foretell.domain.contracts.calldata import ADD_OPERATOR
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.settlement import Settlement, named_settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.exchange.wallets.wallet_bars import DAY_MS
from foretell.settlement.landed_trades import CURE, HEAD_ASKED_EVERY_MS
from foretell.settlement.settle import run_once
from foretell.store.outbox.settlements import name_settlements
from foretell.store.trading.trades import load_trade_ids

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED
FURTHER: Final = 7
"""The number of the sandbox's account that settles beside the first one."""
COPY: Final = "copy"
"""The folder of the copy, in the installation's own."""
PASSES: Final = 5
"""Passes after which a trade was examined, split, and sent."""


async def copy(rig: SettlementRig) -> None:
    """Copy the journal and the database as they are now."""
    await rig.projection.catch_up()
    await rig.stop()
    shutil.copytree(rig.folder, rig.folder / COPY, ignore=shutil.ignore_patterns(COPY))
    await rig.start()


async def restore(rig: SettlementRig) -> None:
    """Start again from the copy."""
    await rig.stop()
    for each in rig.folder.iterdir():
        if each.name != COPY:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    shutil.copytree(rig.folder / COPY, rig.folder, dirs_exist_ok=True)
    await rig.start()


@pytest.mark.case("A-09")
async def test_a_trade_that_was_settled_since_is_found_and_not_sent_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """Both orders have more to fill, so the exchange would settle the trade a second time."""
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    first = await bob.buy(market, 40, 10 * UNIT)
    second = await bob.buy(market, 40, 20 * UNIT, salt="900")
    await copy(rig)
    await rig.settle()
    fills = await rig.fill_count()
    await restore(rig)
    await rig.settle()
    assert await rig.statuses([*first.trade_ids, *second.trade_ids]) == [CONFIRMED] * 2
    assert (await rig.fill_count(), await rig.sent()) == (fills, [])
    await rig.check_ledger()


@pytest.mark.case("A-09")
async def test_nothing_is_sent_before_the_index_has_the_blocks_from_before_the_start(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    await bob.buy(market, 40, 10 * UNIT)
    await copy(rig)
    await rig.settle()
    await restore(rig)
    for _ in range(3):
        assert await run_once(rig.context)
        rig.clock.move(1_000)
    assert await rig.sent() == []
    await catch_up(rig.indexer)
    await rig.settle()
    assert await rig.sent() == []


async def test_a_node_that_names_a_wrong_newest_block_once_stops_settlement_for_a_minute_only(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    proxy.fail("eth_blockNumber", change(lambda _: hex(10**9)))
    await catch_up(rig.indexer)
    with capture_logs() as logs:
        for _ in range(3):
            await rig.act()
            rig.clock.move(HEAD_ASKED_EVERY_MS // 3 - 1)
        assert (await rig.sent(), logs) == ([], [])
        rig.clock.move(3)
        await rig.act()
        await rig.act()
    assert [(each["event"], each["head"], each["cure"]) for each in logs[:1]] == [
        ("index lacks blocks", 10**9, CURE)
    ]
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]


async def test_an_index_that_lacks_blocks_is_logged_once_a_minute_and_nothing_is_sent(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    await bob.buy(market, 40, 10 * UNIT)
    await rig.projection.catch_up()
    await rig.sandbox.mine()
    assert await run_once(rig.context)
    await rig.sandbox.mine()
    proxy.fail("eth_blockNumber", honest, change(lambda _: "0x0"), honest)
    with capture_logs() as logs:
        for _ in range(9):
            assert await run_once(rig.context)
            rig.clock.move(HEAD_ASKED_EVERY_MS // 3)
    heads = [each["head"] - each["indexed"] for each in logs]
    assert heads == [1, 1], "neither a later block nor one that the index has long read counts"
    assert await rig.sent() == []


@pytest.mark.case("A-09")
async def test_a_trade_that_was_named_and_is_settled_since_is_not_sent_under_its_name(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    async with rig.database.writing() as tx:
        assert await name_settlements(tx, [named_settlement(Settlement(trade_id))])
    await copy(rig)
    await rig.settle()
    fills = await rig.fill_count()
    await restore(rig)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert (await rig.fill_count(), await rig.sent()) == (fills, [])


@pytest.mark.case("A-09")
async def test_a_trade_of_which_a_part_was_settled_since_is_split_and_that_part_found(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    await alice.sell(market, 40, 10 * UNIT)
    bad = await carol.sell(market, 40, 20 * UNIT)
    taker = await bob.buy(market, 40, 25 * UNIT)
    await copy(rig)
    await carol.cancel_on_chain((await rig.order_row(bad.order_id)).signed)
    await rig.settle()
    fills = await rig.fill_count()
    await restore(rig)
    await rig.settle()
    async with rig.database.reading() as tx:
        trade_ids = (await load_trade_ids(tx, [taker.order_id]))[taker.order_id]
    assert sorted(await rig.statuses(trade_ids)) == [CONFIRMED, TradeStatus.FAILED]
    assert (await rig.fill_count(), await rig.sent()) == (fills, [])
    await rig.check_ledger()


async def half_dead(rig: SettlementRig, market: SandboxMarket, traders: list[Trader]) -> str:
    """Match a trade of which the greater fill reverts; return its taker's order.

    Both orders of the other fill have more left than it takes, so the chain would take it twice.
    """
    alice, bob, carol = traders
    await alice.sell(market, 41, 50 * UNIT)
    bad = await carol.sell(market, 40, 20 * UNIT)
    taker = await bob.buy(market, 41, 30 * UNIT)
    await rig.projection.catch_up()
    await carol.cancel_on_chain((await rig.order_row(bad.order_id)).signed)
    return taker.order_id


async def send(rig: SettlementRig) -> None:
    """Run passes, with the blocks that are there, until something is on its way."""
    for _ in range(PASSES):
        await rig.act()
        await rig.see()
        rig.clock.move(1_000)
    assert await rig.sent()


async def check_settled_once(rig: SettlementRig, taker: str, fills: int) -> None:
    """Assert that one fill of a taker is on the chain, once."""
    async with rig.database.reading() as tx:
        trade_ids = (await load_trade_ids(tx, [taker]))[taker]
    assert sorted(await rig.statuses(trade_ids)) == [CONFIRMED, TradeStatus.FAILED]
    assert await rig.fill_count() == fills + 2
    await rig.check_ledger()


@pytest.mark.case("A-09")
async def test_a_trade_whose_unknown_transaction_waits_at_the_node_is_not_sent_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    taker = await half_dead(rig, market, traders)
    fills = await rig.fill_count()
    await copy(rig)
    await rig.automine(is_on=False)
    await send(rig)
    await restore(rig)
    for _ in range(PASSES):
        await rig.act()
        await rig.see()
        rig.clock.move(1_000)
    assert await rig.sent() == []
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.sent() == []
    await check_settled_once(rig, taker, fills)


async def wait_with_unknown(rig: SettlementRig) -> None:
    """Start from the copy while the node has a transaction that waits, and let the deadline pass."""
    await copy(rig)
    await rig.automine(is_on=False)
    await send(rig)
    await restore(rig)
    for _ in range(PASSES):
        await rig.act()
        rig.clock.move(1_000)
    assert await rig.sent() == []
    assert REGISTRY.get_sample_value("foretell_unknown_settlement_transactions") == 1
    rig.clock.move(rig.options.unknown_wait_ms)


def replacing(rig: SettlementRig) -> str:
    return f"{REPLACED_PREFIX}{rig.context.operator.address}"


@pytest.mark.case("A-09")
async def test_an_unknown_transaction_that_waits_too_long_is_replaced_and_its_trade_is_sent_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    taker = await half_dead(rig, market, traders)
    fills = await rig.fill_count()
    await wait_with_unknown(rig)
    for _ in range(PASSES):
        await rig.act()
        (replacement,) = await rig.sent()
        assert replacement.tx_id.startswith(replacing(rig)), "nothing is sent before it is final"
        rig.clock.move(1_000)
    await rig.automine(is_on=True)
    await rig.settle()
    replacement, *others = await rig.sent()
    assert replacement.mined_hash in {each.tx_hash for each in replacement.attempts}
    assert [each.tx_id.partition(":")[0] for each in others] == ["settle"]
    assert REGISTRY.get_sample_value("foretell_unknown_settlement_transactions") == 0
    await check_settled_once(rig, taker, fills)


@pytest.mark.case("A-09")
async def test_a_trade_whose_unknown_transaction_is_mined_in_spite_of_its_replacement_is_found(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    taker = await half_dead(rig, market, traders)
    fills = await rig.fill_count()
    await wait_with_unknown(rig)
    proxy.fail_always("eth_sendRawTransaction", refuse("replacement transaction underpriced"))
    await rig.act()
    proxy.heal()
    await rig.automine(is_on=True)
    await rig.sandbox.mine()
    await rig.settle()
    (replacement,) = await rig.sent()
    assert replacement.tx_id.startswith(replacing(rig))
    assert (replacement.status, replacement.mined_hash) == (TxStatus.CANCELED, None)
    await check_settled_once(rig, taker, fills)


def lose_first_for_ever() -> Fault:
    """The node never gets the first transaction, whose sender gets no answer, and gets all others."""
    lost: list[str] = []

    async def fault(request: Request, forward: Forward) -> Answer | None:
        lost[:] = lost or request["params"]
        return None if request["params"] == lost else await forward()

    return fault


@pytest.mark.case("A-09")
async def test_transactions_behind_a_gap_of_nonces_are_replaced_and_nothing_is_settled_twice(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    trade_ids = await matched(market, traders, 2)
    fills = await rig.fill_count()
    await copy(rig)
    await rig.automine(is_on=False)
    proxy.fail_always("eth_sendRawTransaction", lose_first_for_ever())
    await rig.act()
    lost, queued = await rig.sent()
    assert await rig.sandbox.rpc.send("txpool_status") == {"pending": "0x0", "queued": "0x1"}
    await restore(rig)
    proxy.heal()
    await rig.automine(is_on=True)
    for _ in range(PASSES):
        await rig.act()
        rig.clock.move(1_000)
    assert await rig.sent() == [], "the first transaction would release the queued one"
    assert REGISTRY.get_sample_value("foretell_unknown_settlement_transactions") == 2
    rig.clock.move(rig.options.unknown_wait_ms)
    await rig.act()
    replacements = await rig.sent()
    assert [each.account_nonce for each in replacements] == [
        lost.account_nonce,
        queued.account_nonce,
    ]
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED, CONFIRMED]
    assert await rig.fill_count() == fills + 4
    assert await rig.sandbox.rpc.send("eth_getTransactionReceipt", queued.newest.tx_hash) is None
    await rig.check_ledger()


async def name_far_ahead(request: Request, forward: Forward) -> Answer | None:
    """The node counts far more waiting transactions than it has."""
    answer = await forward()
    if request["params"][1] == "pending":
        answer["result"] = hex(2**70)
    return answer


@pytest.mark.case("D-07")
async def test_a_node_that_names_ever_more_unknown_transactions_has_some_replaced_at_once(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    await half_dead(rig, market, traders)
    await wait_with_unknown(rig)
    proxy.fail_always("eth_getTransactionCount", name_far_ahead)
    assert len((await rig.context.operator.unknown_txs()).nonces) == NONCES_AHEAD_MAX
    for _ in range(PASSES):
        await rig.act()
        rig.clock.move(1_000)
    replacements = await rig.sent()
    assert len(replacements) == REPLACED_AT_ONCE_MAX
    first = replacements[0].account_nonce
    assert [each.account_nonce - first for each in replacements] == [*range(REPLACED_AT_ONCE_MAX)]


@pytest.mark.case("A-09")
async def test_without_a_deadline_unknown_transactions_are_never_replaced(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.change(unknown_wait_ms=0)
    await half_dead(rig, market, traders)
    await wait_with_unknown(rig)
    rig.clock.move(30 * DAY_MS)
    await rig.act()
    assert await rig.sent() == []


@pytest.mark.case("A-09")
async def test_a_batch_of_one_account_that_waits_at_the_node_is_not_sent_by_another(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig.has_batches, rig.further_operators = True, (rig.sandbox.trader(FURTHER),)
    admin, exchange = rig.sandbox.account(AccountRole.ADMIN), rig.sandbox.deployment.exchange
    await rig.sandbox.call(admin, exchange, ADD_OPERATOR.encode(rig.further_operators[0].address))
    await rig.restart()
    trade_ids = await matched(market, traders, 4)
    fills = await rig.fill_count()
    await copy(rig)
    first = rig.context.operator.address
    await rig.sandbox.rpc.send("anvil_setBalance", first, "0x0")
    await rig.automine(is_on=False)
    await rig.act()
    assert [each.sender for each in await rig.sent()] == [rig.further_operators[0].address]
    await rig.sandbox.rpc.send("anvil_setBalance", first, hex(10**20))
    await restore(rig)
    for _ in range(PASSES):
        await rig.act()
        rig.clock.move(1_000)
    assert await rig.sent() == []
    await rig.automine(is_on=True)
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 4
    assert (await rig.fill_count(), await rig.sent()) == (fills + 8, [])
    await rig.check_ledger()


@pytest.mark.case("A-09")
async def test_a_trade_that_an_unknown_attempt_settled_is_not_sent_again_before_the_index_has_it(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """The copy has the transaction without its last attempt, so its nonce is seen as used by another."""
    taker = await half_dead(rig, market, traders)
    fills = await rig.fill_count()
    await rig.automine(is_on=False)
    await send(rig)
    await copy(rig)
    await rig.watch()
    rig.clock.move(60_000)
    await rig.watch()
    assert [len(each.attempts) for each in await rig.sent()] == [2]
    await restore(rig)
    await rig.begin()
    assert rig.context.start.is_indexed
    await rig.automine(is_on=True)
    await rig.sandbox.mine()
    while not all(each.is_finished for each in await rig.sent()):
        await rig.watch()
        await rig.sandbox.mine()
    assert [each.status for each in await rig.sent()] == [TxStatus.CANCELED]
    for _ in range(PASSES):
        await run_once(rig.context)
        rig.clock.move(1_000)
    assert len(await rig.sent()) == 1
    await rig.settle()
    assert len(await rig.sent()) == 1
    await check_settled_once(rig, taker, fills)
