"""The ends of a serving process and of its settlement process, in either order."""

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.app.settlement_process.rig import (
    LOOK_S,
    SOON_S,
    begin_of,
    follow,
    is_settling,
    settling,
    until,
)
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import DATABASE_FILE, SettlementRig, Trader
from tests.settlement.test_batches import matched

from foretell.domain.exchange.trade import TradeStatus

pytestmark = pytest.mark.anyio

PARENT = Path(__file__).with_name("parent.py")
PARENT_DIES: Final = (("parent", signal.SIGKILL),)
BOTH_DIE: Final = (("child", signal.SIGKILL), *PARENT_DIES)
CHILD_FREEZES: Final = (("child", signal.SIGSTOP), *PARENT_DIES)


def is_locked(database: Path) -> bool:
    """Return whether a process writes to a database."""
    connection = sqlite3.connect(database, timeout=0, isolation_level=None)
    with contextlib.closing(connection), contextlib.suppress(sqlite3.OperationalError):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        return False
    return True


async def freeze(pid: int, database: Path) -> None:
    """Stop a process between its transactions: with the lock of one it would stop everybody else, too."""
    stat = Path(f"/proc/{pid}/stat")
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: ") T " in stat.read_text())
    while is_locked(database):
        os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(LOOK_S)
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: ") T " in stat.read_text())


async def settle_until(
    rig: SettlementRig, ends: Sequence[tuple[str, signal.Signals]], wait_s: float
) -> int:
    """Have a parent settle, send signals; return the id of its child when the parent is gone."""
    given, noted = rig.folder / "begin", rig.folder / "child"
    given.write_bytes(msgspec.msgpack.encode(begin_of(rig)))
    noted.unlink(missing_ok=True)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(PARENT), str(given), str(noted)
    )
    await until(noted.exists)
    pid_by_name = {"parent": parent.pid, "child": int(noted.read_text())}
    await asyncio.sleep(wait_s)
    for name, number in ends:
        if number is signal.SIGSTOP:
            await freeze(pid_by_name[name], rig.folder / DATABASE_FILE)
        else:
            os.kill(pid_by_name[name], number)
    await asyncio.wait_for(parent.wait(), SOON_S)
    return pid_by_name["child"]


@pytest.mark.case("D-02")
@pytest.mark.parametrize("ends", [PARENT_DIES, BOTH_DIE], ids=["parent", "both"])
async def test_every_trade_settles_once_when_the_serving_process_is_killed_at_any_time(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    ends: Sequence[tuple[str, signal.Signals]],
) -> None:
    rng = random.Random(1)
    trade_ids: list[str] = []
    for _ in range(3):
        trade_ids += await matched(market, traders, rng.randint(2, 6))
        await rig.projection.catch_up()
        child = await settle_until(rig, ends, rng.uniform(0.5, 3))
        await until(lambda child=child: not is_settling(child))  # type: ignore[misc]
        await rig.see()
    async with settling(rig):
        await follow(rig)
    assert await rig.statuses(trade_ids) == [TradeStatus.CONFIRMED] * len(trade_ids)
    assert await rig.fill_count() == 2 * len(trade_ids)
    await rig.check_ledger()


@pytest.mark.case("J-02")
async def test_a_process_that_was_frozen_when_its_parent_died_sends_nothing_twice(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_ids = await matched(market, traders, 6)
    await rig.projection.catch_up()
    frozen = await settle_until(rig, CHILD_FREEZES, 1.5)
    async with settling(rig):
        await follow(rig)
        trade_ids += await matched(market, traders, 3)
        await rig.projection.catch_up()
        os.kill(frozen, signal.SIGCONT)
        await follow(rig)
    await until(lambda: not is_settling(frozen))
    assert await rig.statuses(trade_ids) == [TradeStatus.CONFIRMED] * len(trade_ids)
    assert await rig.fill_count() == 2 * len(trade_ids)
    await rig.check_ledger()
