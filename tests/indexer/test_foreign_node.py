"""An indexer whose node's port is taken over by a node of another chain, on real nodes."""

import asyncio
from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs
from tests.chain.chains import head, started, url_of
from tests.engine.rig import until
from tests.indexer.test_worker import DEADLINE_S, running
from tests.rigs.sandbox import Sandbox, an_indexer

from foretell.bench.rigs.ports import free_port
from foretell.chain.devchain import DevChainOptions
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import WrongChain
from foretell.store.database import Database
from foretell.store.index.blocks import TOPIC, load_last_block

pytestmark = pytest.mark.anyio

OWN: Final = 80002
FOREIGN: Final = 137
BLOCKS: Final = 3

Logs = Sequence[MutableMapping[str, Any]]


@pytest.fixture
def own(devchain_options: DevChainOptions, tmp_path: Path) -> DevChainOptions:
    """A chain of the installation's id, which goes on where it was stopped."""
    return replace(devchain_options, folder=tmp_path / "own", port=free_port(), is_kept=True)


@pytest.fixture
def foreign(own: DevChainOptions, tmp_path: Path) -> DevChainOptions:
    """Another chain at the same port."""
    return replace(own, folder=tmp_path / "foreign", chain_id=FOREIGN)


async def indexed(database: Database, block_number: int) -> None:
    """Return once the tables are those of this block."""
    async with asyncio.timeout(DEADLINE_S):
        watch = await database.watch(TOPIC)
        while await last_of(database) != block_number:
            await watch.wait(1)


async def last_of(database: Database) -> int | None:
    async with database.reading() as tx:
        last = await load_last_block(tx)
    return None if last is None else last.block_number


def refusals(logs: Logs) -> list[str]:
    """Return the lines that name the other chain."""
    return [line["cause"] for line in logs if f"serves chain {FOREIGN}" in str(line.get("cause"))]


async def test_nothing_of_another_chain_is_recorded_and_one_line_says_so(
    own: DevChainOptions, foreign: DevChainOptions, sandbox: Sandbox, database: Database
) -> None:
    async with Rpc(url_of(own), OWN) as rpc:
        with capture_logs() as logs:
            async with running(an_indexer(sandbox, database, rpc, start_block=0)):
                await until(lambda: bool(logs))
                async with started(foreign) as node:
                    await node.send("anvil_mine", hex(2 * BLOCKS))
                    await until(lambda: bool(refusals(logs)))
                    assert await last_of(database) is None
                async with started(own) as node:
                    await node.send("anvil_mine", hex(BLOCKS))
                    await indexed(database, BLOCKS)
    (line,) = refusals(logs)
    assert f"chain {OWN} is required" in line


async def test_a_chain_that_replaces_the_indexed_one_unwinds_nothing(
    own: DevChainOptions, foreign: DevChainOptions, sandbox: Sandbox, database: Database
) -> None:
    async with Rpc(url_of(own), OWN) as rpc:
        with capture_logs() as logs:
            async with running(an_indexer(sandbox, database, rpc, start_block=0)):
                async with started(own) as node:
                    await node.send("anvil_mine", hex(BLOCKS))
                    await indexed(database, BLOCKS)
                async with started(foreign):
                    await until(lambda: bool(refusals(logs)))
                    assert await last_of(database) == BLOCKS
                async with started(own) as node:
                    await node.send("anvil_mine")
                    await indexed(database, BLOCKS + 1)
    assert len(refusals(logs)) == 1


async def test_a_node_is_asked_for_its_chain_after_each_new_connection(
    own: DevChainOptions, foreign: DevChainOptions
) -> None:
    async with Rpc(url_of(own), OWN) as rpc:
        async with started(own):
            assert await head(rpc) == 0
        async with started(foreign):
            with pytest.raises(WrongChain, match=f"serves chain {FOREIGN}, and chain {OWN}"):
                await rpc.send("eth_sendRawTransaction", "0x00")
            with pytest.raises(WrongChain):
                await rpc.batch([("eth_blockNumber", [])])
        async with started(own):
            assert await head(rpc) == 0
