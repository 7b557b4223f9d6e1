"""L1 and M4: a node that is silent while an installation starts is compared at its first answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs
from tests.app.test_installation import ended, production
from tests.app.test_origin import has_commands
from tests.engine.rig import until
from tests.rigs.fault_proxy import Fault, FaultProxy, change, lose_request, proxying
from tests.rigs.in_process import installed
from tests.rigs.sandbox import Sandbox

from foretell.app.builders import NodeCheck, Resources
from foretell.app.installation import Installation
from foretell.app.roles import Role
from foretell.chain.deploy import store_deployment
from foretell.domain.errors.chain import InvalidDeployment, WrongChain
from foretell.domain.errors.command import ForeignChain
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.files.reader import read_entries
from foretell.sdk.http import wait_for
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.index.blocks import load_last_block

pytestmark = pytest.mark.anyio

NAME: Final = "eth_chainId"
"""Each new connection asks for it first: a node that does not answer it says nothing at all."""
VERSION: Final = "web3_clientVersion"
HEADER: Final = "eth_getBlockByNumber"
OTHER_HASH: Final = "0x" + "77" * 32
ROLES: Final = (Role.TRADING, Role.INDEXER)


@pytest.fixture
async def node(sandbox: Sandbox) -> AsyncIterator[FaultProxy]:
    async with proxying(sandbox.rpc_url) as node:
        yield node


@pytest.fixture
def settings(sandbox: Sandbox, node: FaultProxy, tmp_path: Path) -> Settings:
    """The settings of an operator who has taken the deployment of a sandbox."""
    settings = production(tmp_path, node.url)
    store_deployment(settings.deployment_file, sandbox.deployment)
    return settings


@contextlib.asynccontextmanager
async def begun_in_silence(settings: Settings, node: FaultProxy) -> AsyncIterator[Installation]:
    """Give an installation that has started though its node said nothing, and which waits for that."""
    node.fail_always(NAME, lose_request)
    with capture_logs() as logs:
        async with installed(settings, ROLES) as running:
            await until(lambda: any("does not answer" in each["event"] for each in logs))
            yield running


async def state_of(settings: Settings) -> tuple[int, Any]:
    """Return the number of commands of the journal, and the last indexed block."""
    commands = sum(1 for _ in read_entries(settings.data / "journal"))
    async with Database(settings.database) as database, database.reading() as tx:
        return commands, await load_last_block(tx)


@pytest.mark.case("J-03")
@pytest.mark.parametrize(
    ("method", "fault", "refusal"),
    [
        (VERSION, change(lambda _: "Geth/v1.15.0"), InvalidDeployment),
        (NAME, change(lambda _: "0x89"), WrongChain),
    ],
    ids=["a public chain under a sandbox's deployment", "another chain"],
)
async def test_attack_l1_a_node_that_is_silent_at_the_start_is_refused_at_its_first_answer(
    settings: Settings,
    node: FaultProxy,
    method: str,
    fault: Fault,
    refusal: type[Exception],
) -> None:
    """It was never looked at again, so that a sandbox's keys were used on a public chain."""
    async with begun_in_silence(settings, node) as running:
        node.heal()
        node.fail_always(method, fault)
        assert type(await ended(running)) is refusal
        assert await state_of(settings) == (0, None)


async def test_attack_m4_the_first_answer_of_a_silent_node_is_compared_with_the_chain_of_the_orders(
    settings: Settings, node: FaultProxy
) -> None:
    """Nothing of the other chain reaches the tables or the journal."""
    async with installed(settings, ROLES):
        await wait_for("a command", partial(has_commands, settings), 30.0)
    before = await state_of(settings)
    async with begun_in_silence(settings, node) as running:
        node.heal()
        node.fail_always(HEADER, change(lambda header: header and {**header, "hash": OTHER_HASH}))
        assert type(await ended(running)) is ForeignChain
    assert await state_of(settings) == before


async def test_a_silent_node_of_the_right_chain_is_used_at_its_first_answer(
    settings: Settings, node: FaultProxy
) -> None:
    async with begun_in_silence(settings, node):
        node.heal()
        async with asyncio.timeout(60):
            while (await state_of(settings))[1] is None:  # noqa: ASYNC110 - tables notify no one
                await asyncio.sleep(0.05)


async def test_attack_m4_no_order_is_taken_before_the_first_answer_of_the_node(
    sandbox: Sandbox, settings: Settings
) -> None:
    """Until an engine had been behind for two minutes, it took orders, whatever chain the node was of."""
    none: Any = None
    check = NodeCheck()
    resources = Resources(
        settings, none, sandbox.deployment, none, sandbox.rpc, ShardNumber(0), node_check=check
    )
    refusal = resources.chain_lag.refusal
    assert refusal is not None
    assert "has not answered since the start" in refusal.message
    check.passed.set()
    assert resources.chain_lag.refusal is None
