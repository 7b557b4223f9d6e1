"""Settlement and the relayer in real time, by the loops of a process, behind a node that lies for a while."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from tests.faults.nodes.lying_node import LyingNode, lying
from tests.relayer.rig import OwnerClient, RelayerRig
from tests.rigs.clock import RunningClock
from tests.rigs.sandbox import Sandbox, an_indexer
from tests.settlement.rig import DATABASE_FILE, HELD, UNIT, SettlementRig

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.relay.request import RelayState
from foretell.indexer import worker as indexer_worker
from foretell.runtime.loops import run_together
from foretell.settlement import worker as settlement_worker

pytestmark = pytest.mark.anyio

BLOCK_S: Final = 0.25
TIMEOUT_S: Final = 1.0
LIES: Final = 60
LIED_WITHIN_S: Final = 600.0
"""Only ends a test that hangs, as `ENDED_AFTER_S` does."""
DRAINED_WITHIN_S: Final = 60.0
BLOCKS_MAX: Final = int(DRAINED_WITHIN_S / BLOCK_S)
"""So many come within that time: where the processes are slow, the blocks are too."""
ENDED_AFTER_S: Final = 600.0
PAUSE_S: Final = 0.2


@contextlib.asynccontextmanager
async def working(*loops: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run loops during a block."""
    work = asyncio.ensure_future(run_together(loops))
    try:
        yield
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


@pytest.fixture
async def blocks(fresh_sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """A chain with regular blocks."""

    async def mine() -> None:
        while True:
            await fresh_sandbox.mine()
            await asyncio.sleep(BLOCK_S)

    await fresh_sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    async with working(mine):
        yield fresh_sandbox
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own


@pytest.fixture
async def node(blocks: Sandbox, other_chain: str) -> AsyncIterator[LyingNode]:
    async with lying(blocks.rpc_url, "real time", other_url=other_chain) as node:
        yield node


async def until_it_has_lied(node: LyingNode, act: Callable[[], Awaitable[object]]) -> None:
    """Act again and again until the node has lied for long, and have it be honest then."""
    node.is_lying = True
    async with asyncio.timeout(LIED_WITHIN_S):
        while node.lies.total() < LIES:
            await act()
            await asyncio.sleep(PAUSE_S)
    node.heal()


async def until_drained(blocks: Sandbox, is_drained: Callable[[], Awaitable[bool]]) -> None:
    first = await blocks.reader.head()
    async with asyncio.timeout(ENDED_AFTER_S):
        while not await is_drained():
            assert await blocks.reader.head() - first <= BLOCKS_MAX
            await asyncio.sleep(PAUSE_S)


@pytest.mark.case("D-04", "D-07")
async def test_trades_are_settled_within_a_minute_after_a_node_has_lied(
    blocks: Sandbox, node: LyingNode, empty_database: Path, tmp_path: Path
) -> None:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    rig = SettlementRig(
        blocks, tmp_path, node.url, timeout_s=TIMEOUT_S, clock=RunningClock(), has_batches=True
    )
    await rig.start()
    try:
        market = await rig.open()
        seller, buyer = [await rig.trader(number) for number in range(2)]
        await blocks.split(seller.account, market, HELD)
        await rig.see()
        trade_ids: list[str] = []

        async def trade() -> None:
            await seller.sell(market, 40, UNIT)
            trade_ids.extend((await buyer.buy(market, 40, UNIT)).trade_ids)

        async def is_settled() -> bool:
            return not rig.engine.state.unsettled_trades

        async with (
            Rpc(node.url, SANDBOX_CHAIN_ID, timeout_s=TIMEOUT_S) as rpc,
            working(
                lambda: indexer_worker.run(an_indexer(blocks, rig.database, rpc)),
                rig.feed.run,
                rig.projection.run,
                lambda: settlement_worker.run(rig.context),
            ),
        ):
            await until_it_has_lied(node, trade)
            await until_drained(blocks, is_settled)
        await rig.projection.catch_up()
        assert set(await rig.statuses(trade_ids)) == {TradeStatus.CONFIRMED}
        assert await rig.fill_count() == 2 * len(trade_ids)
    finally:
        await rig.stop()


@pytest.mark.case("D-04", "D-07")
async def test_requests_are_relayed_within_a_minute_after_a_node_has_lied(
    blocks: Sandbox, node: LyingNode, empty_database: Path, tmp_path: Path
) -> None:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    rig = RelayerRig(blocks, tmp_path, node.url, timeout_s=TIMEOUT_S, clock=RunningClock())
    await rig.start()
    try:
        owners: list[OwnerClient] = []
        accepted: list[str] = []

        async def ask() -> None:
            owner = await rig.owner(f"owner {len(owners)}")
            owners.append(owner)
            answer = await owner.submit(owner.create_body())
            if answer.status_code == 200:
                accepted.append(answer.json()["transactionID"])

        async def is_relayed() -> bool:
            states = [(await rig.relay(each)).state for each in accepted]
            return set(states) == {RelayState.CONFIRMED}

        async with rig.working():
            await until_it_has_lied(node, ask)
            await ask()
            await until_drained(blocks, is_relayed)
    finally:
        await rig.stop()
