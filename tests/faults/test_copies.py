"""Copies of a data folder under load, restored elsewhere, and what they send to the chain."""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs
from tests.faults.processes import Processes
from tests.faults.rig import FaultRig, a_fault_rig, check_acknowledged, check_placed_once
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.settlement.conftest import market, proxy, rig, traders  # noqa: F401 - fixtures
from tests.settlement.rig import DATABASE_FILE, UNIT, SettlementRig, Trader

from foretell.bench.rigs.ports import free_port
from foretell.domain.exchange.trade import TradeStatus

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("faults")]

COPIES: Final = max(1, int(os.environ.get("FORETELL_TEST_CYCLES", "3")) // 20)
ANSWERS: Final = 15


@pytest.fixture
async def exchange(
    made: Processes, tmp_path: Path, empty_database: Path
) -> AsyncIterator[FaultRig]:
    async with a_fault_rig(tmp_path / "here", empty_database, made, random.Random(1)) as exchange:
        yield exchange


@pytest.mark.case("A-09")
async def test_a_copy_of_one_moment_under_load_has_all_that_was_acknowledged_until_then(
    exchange: FaultRig, tmp_path: Path
) -> None:
    """A process that is stopped for the copy writes what one under a file system snapshot would have."""
    serving = await exchange.start()
    trading = asyncio.create_task(exchange.trade_on())
    copies = []
    for number in range(COPIES):
        await exchange.more_answers(ANSWERS)
        await serving.signal(signal.SIGSTOP)
        received = exchange.received()
        copies.append((tmp_path / f"there {number}", received))
        shutil.copytree(exchange.folder, tmp_path / f"there {number}")
        await serving.signal(signal.SIGCONT)
    await exchange.more_answers(ANSWERS)
    exchange.is_over = True
    await trading
    asked = exchange.received().asked
    for folder, received in copies:
        restored = replace(exchange, folder=folder, port=free_port())
        elsewhere = await restored.start()
        replayed = await restored.caught_up()
        check_placed_once(replayed.commands)
        check_acknowledged(replayed.state, received._replace(asked=asked))
        await restored.check_tables(replayed)
        await elsewhere.kill()


def copied(here: SettlementRig, folder: Path) -> SettlementRig:
    """Return another installation on a copy of the folder, which is taken while nothing is written."""
    folder.mkdir()
    for name in (DATABASE_FILE, f"{DATABASE_FILE}-wal"):
        if (here.folder / name).exists():
            shutil.copy(here.folder / name, folder / name)
    shutil.copytree(here.folder / "journal", folder / "journal")
    (folder / "journal" / "lock").unlink(missing_ok=True)
    return SettlementRig(here.sandbox, folder, clock=here.clock, salts=here.salts)


@pytest.mark.case("A-09")
@pytest.mark.parametrize("sent_first", [True, False], ids=["sent before", "sent after"])
async def test_attack_l9_trades_that_settled_after_a_copy_are_not_sent_again_by_it(
    rig: SettlementRig,  # noqa: F811 - the fixture
    market: SandboxMarket,  # noqa: F811 - the fixture
    traders: list[Trader],  # noqa: F811 - the fixture
    tmp_path: Path,
    *,
    sent_first: bool,
) -> None:
    """They end in the copy as they ended on the chain, and the balances are the chain's.

    Before, their rows were given up with OrderFilledOrCancelled, and an error said so, though they were confirmed.
    """
    alice, bob, carol = traders
    await alice.sell(market, 40, 30 * UNIT)
    trade_ids: list[str] = []
    for trader in (bob, carol):
        trade_ids += (await trader.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    if sent_first:
        await rig.automine(is_on=False)
        await rig.act()
        await rig.automine(is_on=True)
    restored = copied(rig, tmp_path / "there")
    await rig.settle()
    assert await rig.statuses(trade_ids) == [TradeStatus.CONFIRMED] * 2
    fills = await rig.fill_count()
    operator = rig.context.operator.address
    sent = await nonce_of(rig.sandbox, operator)
    await restored.start()
    try:
        with capture_logs() as logs:
            await restored.settle()
        assert [each for each in logs if each["log_level"] == "error"] == []
        rows = [await restored.settlement(trade_id) for trade_id in trade_ids]
        assert [(row.is_given_up, row.attempts, row.failure) for row in rows] == [
            (False, 0, None)
        ] * 2
        assert await restored.fill_count() == fills
        assert await nonce_of(rig.sandbox, operator) == sent
        assert await restored.statuses(trade_ids) == [TradeStatus.CONFIRMED] * 2
        await restored.check_ledger()
    finally:
        await restored.stop()


async def nonce_of(sandbox: Sandbox, address: str) -> int:
    return int(await sandbox.rpc.call("eth_getTransactionCount", address, "latest"), 16)
