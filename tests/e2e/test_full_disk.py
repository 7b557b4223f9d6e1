"""A-06, L2, L3: a whole installation on a file system that is really full."""

import asyncio
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.conftest import an_installation
from tests.e2e.filesystems import (
    SmallFileSystem,
    may_mount,
    run_where_mounts_are_allowed,
    small_file_system,
)
from tests.e2e.resting_orders import RestingOrders
from tests.rigs.installation import Running

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e killed"), pytest.mark.case("A-06")]

BYTES_MAX = 112 * 1024**2
FULL_S = 25.0
ACT_S = 0.05
ENDS_WITHIN_S = 600.0
LINES_MAX = 60
"""In the log of the time on a full disk; a traceback a second has more than that each second."""
TYPED = {429, 503}


async def until_it_ends_full(disk: SmallFileSystem, process: "subprocess.Popen[bytes]") -> None:
    """Wait for the end of a start on a disk on which every byte that it gives back, as of an older file, is taken again."""
    ends_at_s = asyncio.get_running_loop().time() + ENDS_WITHIN_S
    while process.poll() is None and asyncio.get_running_loop().time() < ends_at_s:
        disk.fill()
        await asyncio.sleep(ACT_S)


@dataclass
class SmallInstallation:
    """An installation with its first market, stopped, whose data folder is a small file system."""

    test_id: str
    seeded_folder: Path
    folder: Path

    async def run(self, body: Callable[[Running, SmallFileSystem], Awaitable[None]]) -> None:
        """Run a test with it; where this user may not mount, run the test again where it may."""
        data = self.folder / "data"
        if not may_mount(data):
            await asyncio.to_thread(run_where_mounts_are_allowed, self.test_id)
            return
        with small_file_system(data, BYTES_MAX) as disk, an_installation(self.folder) as running:
            shutil.copytree(self.seeded_folder, data, dirs_exist_ok=True)
            await body(running, disk)


@pytest.fixture
def small(request: pytest.FixtureRequest, seeded_folder: Path, tmp_path: Path) -> SmallInstallation:
    return SmallInstallation(request.node.nodeid, seeded_folder, tmp_path)


async def until_full_again(disk: SmallFileSystem, orders: RestingOrders, seconds: float) -> None:
    """Trade for a time on a disk on which every byte that is given back is taken again."""
    ends_at_s = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < ends_at_s:
        disk.fill()
        await orders.act()
        await asyncio.sleep(ACT_S)


async def test_attack_l3_orders_on_a_full_disk_are_durable_and_room_heals_everything(
    small: SmallInstallation,
) -> None:
    """The loop of the tables once wrote a traceback a second."""
    await small.run(trade_on_a_full_disk)


async def trade_on_a_full_disk(on_disk: Running, disk: SmallFileSystem) -> None:
    await on_disk.start()
    async with on_disk.session() as session:
        orders = await RestingOrders.of_new_trader(session)
        await orders.act()
        await orders.check()
        before = len(on_disk.output.splitlines())

        await until_full_again(disk, orders, FULL_S)
        lines = on_disk.output.splitlines()[before:]
        assert orders.answers > 1, orders.refusals
        assert {refusal.status for refusal in orders.refusals} <= TYPED, orders.refusals
        assert all('"error"' in refusal.body for refusal in orders.refusals)
        assert not [line for line in lines if "Traceback" in line], lines
        assert len(lines) <= LINES_MAX, lines

        disk.make_room()
        await orders.check()
        await orders.place()
        await orders.check()

        await until_full_again(disk, orders, FULL_S / 5)
        assert "Traceback" not in on_disk.output, on_disk.output
        on_disk.kill()
        disk.make_room()
        await on_disk.start()
        await orders.check()
    assert on_disk.stop() == 0, on_disk.output


async def test_attack_l2_a_start_on_a_full_disk_is_one_line_and_loses_nothing(
    small: SmallInstallation,
) -> None:
    """It once wrote seven tracebacks."""
    await small.run(start_on_a_full_disk)


async def start_on_a_full_disk(on_disk: Running, disk: SmallFileSystem) -> None:
    await on_disk.start()
    async with on_disk.session() as session:
        orders = await RestingOrders.of_new_trader(session)
        for _ in range(20):
            await orders.act()
        on_disk.kill()
        before = len(on_disk.output.splitlines())
        disk.fill()
        on_disk.begin()
        assert on_disk.process is not None
        await until_it_ends_full(disk, on_disk.process)
        assert on_disk.process.returncode == 1, on_disk.output
        lines = on_disk.output.splitlines()[before:]
        assert [line for line in lines if line.startswith("error:")] == lines[-1:], lines
        assert "make room on the disk of the data folder" in lines[-1]
        assert not [line for line in lines if "Traceback" in line], lines
        disk.make_room()
        await on_disk.start()
        await orders.check()
    assert on_disk.stop() == 0, on_disk.output
