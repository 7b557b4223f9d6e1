"""A sandbox whose chain is started from an older state than the one that its index and its engine know."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.app.test_origin import copy_tables
from tests.rigs.in_process import installed, sandbox_settings

from foretell.app.roles import Role
from foretell.chain.rpc import Rpc
from foretell.domain.exchange.commands import ObserveChain, decode_command
from foretell.engine.writer.chain_feed import BLOCKS_UNOBSERVED_MAX
from foretell.engine.writer.chain_lag import LAG
from foretell.indexer.context import REORG_BLOCKS_MAX
from foretell.journal.files.reader import read_entries
from foretell.sdk.http import wait_for
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

ROLES = (Role.TRADING, Role.INDEXER)
WITHIN_S = 180.0
LAG_S_MAX = 5
FEW_BLOCKS = 3 * BLOCKS_UNOBSERVED_MAX


def observed_block(settings: Settings) -> int:
    """Return the block of the engine's last observation, 0 before the first."""
    commands = [decode_command(entry.payload) for entry in read_entries(settings.data / "journal")]
    return ([0] + [each.block_number for each in commands if isinstance(each, ObserveChain)])[-1]


async def is_observed(settings: Settings, least: int, most: int) -> bool | None:
    return least <= observed_block(settings) <= most or None


async def mine(settings: Settings, blocks: int) -> int:
    """Mine blocks, wait until the engine has observed all but a few, and return the head."""
    async with Rpc(settings.devchain_url) as rpc:
        await rpc.call("anvil_mine", hex(blocks))
        head = int(str(await rpc.call("eth_blockNumber")), 16)
    least = head - BLOCKS_UNOBSERVED_MAX
    await wait_for("the blocks", partial(is_observed, settings, least, head + 9), WITHIN_S)
    return head


async def set_back(settings: Settings, folder: Path, blocks: int) -> tuple[int, int]:
    """Run a sandbox, and leave it with its chain as it was before so many blocks; return both heads."""
    chain = settings.data / "chain"
    async with installed(settings, ROLES):
        before = await mine(settings, FEW_BLOCKS)
    shutil.copytree(chain, folder / "before")
    copy_tables(settings.data, folder / "older")
    async with installed(settings, ROLES):
        after = await mine(settings, blocks)
    shutil.rmtree(chain)
    shutil.copytree(folder / "before", chain)
    return before, after


async def test_an_engine_follows_the_chain_of_a_sandbox_that_went_back(tmp_path: Path) -> None:
    """It observed nothing until the chain was as long as before, and refused orders after two minutes."""
    settings = sandbox_settings(tmp_path)
    before, after = await set_back(settings, tmp_path, FEW_BLOCKS)
    with capture_logs() as logs:
        async with installed(settings, ROLES):
            low = partial(is_observed, settings, before, after - BLOCKS_UNOBSERVED_MAX - 1)
            await wait_for("an observation of the lower block", low, WITHIN_S)
            LAG.set(2 * LAG_S_MAX)
            await wait_for("an engine that is not behind", has_no_lag, WITHIN_S)
            await mine(settings, FEW_BLOCKS)
    events = [each["event"] for each in logs]
    assert events.count("the saved state of the chain ends below the last indexed block") == 1
    assert events.count("the chain went back, and the engine follows it") == 1


async def has_no_lag() -> bool | None:
    (metric,) = LAG.collect()
    (sample,) = metric.samples
    return sample.value < LAG_S_MAX or None


@pytest.mark.parametrize("tables", ["none", "older"])
async def test_a_chain_that_lost_more_blocks_than_are_kept_is_followed_with_other_tables(
    tmp_path: Path, tables: str
) -> None:
    """The refusal names both cures; they helped only once the chain was as long as before."""
    settings = sandbox_settings(tmp_path)
    before, after = await set_back(settings, tmp_path, REORG_BLOCKS_MAX + FEW_BLOCKS)
    with capture_logs() as logs:
        async with installed(settings, ROLES):
            await wait_for("the refusal", partial(is_logged, logs, "with a new database"), WITHIN_S)
    copy_tables(tmp_path / tables, settings.data)
    async with installed(settings, ROLES):
        low = partial(is_observed, settings, before, after - REORG_BLOCKS_MAX)
        await wait_for("an observation of the lower block", low, WITHIN_S)
        await mine(settings, FEW_BLOCKS)


async def is_logged(logs: list[Any], words: str) -> bool | None:
    return any(words in str(each.get("cause", each)) for each in logs) or None
