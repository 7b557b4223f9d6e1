"""L1 and M4: a node that is silent while an installation starts is checked at its first answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs
from tests.app.test_installation import ended, production, until
from tests.app.test_origin import has_commands
from tests.chain.sending import OPTIONS
from tests.rigs.fault_proxy import (
    BROADCAST,
    Fault,
    FaultProxy,
    change,
    lose_request,
    proxying,
    refuse,
)
from tests.rigs.in_process import installed
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_deployment, a_key, an_address

from foretell.app import products
from foretell.app.builders import Resources
from foretell.app.installation import Installation
from foretell.app.roles import Role
from foretell.chain.deploy import store_deployment
from foretell.chain.rpc import Rpc
from foretell.chain.sender import Sender
from foretell.domain.errors.chain import ChainUnavailable, InvalidDeployment, WrongChain
from foretell.domain.errors.command import ForeignChain
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.files.reader import read_entries
from foretell.sdk.http import wait_for
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.index.blocks import load_last_block
from foretell.store.migrations import upgrade
from foretell.store.outbox.transactions import RELAYED, TxOutbox

pytestmark = pytest.mark.anyio

NAME: Final = "eth_chainId"
"""Each new connection asks for it first: a node that does not answer it says nothing at all."""
VERSION: Final = "web3_clientVersion"
HEAD: Final = "eth_blockNumber"
HEADER: Final = "eth_getBlockByNumber"
OTHER_HASH: Final = "0x" + "77" * 32
ROLES: Final = (Role.TRADING, Role.INDEXER, Role.RELAYER)
QUESTIONS: Final = 10
"""Questions of the check, in the time of which the head of the chain is looked for more than once."""
WITHIN_S: Final = 180.0


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


async def leave_tx(settings: Settings, node: FaultProxy) -> None:
    """Store a transaction of the relayer that no node has; it is broadcast when a node answers."""
    node.fail(BROADCAST, lose_request)
    async with Database(settings.database) as database, Rpc(node.url) as rpc:
        await upgrade(database)
        outbox = TxOutbox(database, RELAYED)
        sender = Sender(rpc, a_key("relayer_key"), outbox, OPTIONS, lambda: 0)
        tx = OutgoingTx("waiting", an_address("target"), b"", gas=21_000)
        await sender.send(tx, is_simulated=True)


@contextlib.asynccontextmanager
async def begun_in_silence(settings: Settings, node: FaultProxy) -> AsyncIterator[Installation]:
    """Give an installation that has started though its node said nothing."""
    node.fail_always(NAME, lose_request)
    with capture_logs() as logs:
        async with installed(settings, ROLES) as running:
            await until(lambda: any("or does not answer" in each["event"] for each in logs))
            node.asked.clear()
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
    settings: Settings, node: FaultProxy, method: str, fault: Fault, refusal: type[Exception]
) -> None:
    """It was never looked at again, so that a sandbox's keys were used on a public chain."""
    await leave_tx(settings, node)
    async with begun_in_silence(settings, node) as running:
        node.heal()
        node.fail_always(method, fault)
        assert type(await ended(running)) is refusal
    assert await state_of(settings) == (0, None)
    assert node.asked[BROADCAST] == 0


async def test_attack_m4_the_first_answer_of_a_silent_node_is_compared_with_the_chain_of_the_orders(
    settings: Settings, node: FaultProxy
) -> None:
    """Nothing of the other chain reaches the tables or the journal, and nothing of ours reaches that chain."""
    async with installed(settings, ROLES):
        await wait_for("a command", partial(has_commands, settings), WITHIN_S)
    before = await state_of(settings)
    await leave_tx(settings, node)
    async with begun_in_silence(settings, node) as running:
        node.heal()
        node.fail_always(HEADER, change(lambda header: header and {**header, "hash": OTHER_HASH}))
        assert type(await ended(running)) is ForeignChain
    assert await state_of(settings) == before
    assert node.asked[BROADCAST] == 0


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        (VERSION, lose_request),
        (VERSION, refuse("the node is starting")),
        (HEAD, change(lambda _: "0x0")),
    ],
    ids=["silence", "a refusal", "no block"],
)
async def test_attack_l1_a_silent_node_is_used_for_nothing_before_its_check_is_over(
    settings: Settings, node: FaultProxy, method: str, fault: Fault
) -> None:
    """It names its chain, and not yet the rest. Then it does, and what waited goes on."""
    await leave_tx(settings, node)
    async with begun_in_silence(settings, node):
        node.heal()
        node.fail_always(method, fault)
        async with asyncio.timeout(WITHIN_S):
            while node.asked[method] < QUESTIONS:  # noqa: ASYNC110 - the node announces nothing
                await asyncio.sleep(0.05)
        assert set(node.asked) <= {NAME, VERSION, HEAD}
        node.heal()
        async with asyncio.timeout(WITHIN_S):
            while (await state_of(settings))[1] is None or not node.asked[BROADCAST]:  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.05)


async def test_attack_l1_a_node_is_sent_nothing_before_it_is_admitted(sandbox: Sandbox) -> None:
    admitted = asyncio.Event()
    held = sandbox.rpc.held_until(admitted)
    gated = held.behind(lambda _: contextlib.nullcontext())
    for rpc in (held, gated):
        for request in (rpc.send(NAME), rpc.call(NAME), rpc.batch([(NAME, [])])):
            with pytest.raises(ChainUnavailable, match="not answered since the start"):
                await request
    admitted.set()
    assert await gated.send(NAME) == await held.call(NAME) == "0x13882"


async def test_attack_l1_settlement_begins_in_its_process_when_the_node_is_admitted(
    monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox, settings: Settings
) -> None:
    """The process has connections of its own to the node."""
    started = asyncio.Event()

    class Process:
        def __init__(self, *_: object, **__: object) -> None:
            """Take what the real one is given."""

        async def run(self) -> None:
            started.set()

    monkeypatch.setattr(products, "SettlementProcess", Process)
    monkeypatch.setattr(products, "settlement_begin", lambda _: None)
    none: Any = None
    admitted = asyncio.Event()
    rpc = sandbox.rpc.held_until(admitted)
    resources = Resources(settings, none, a_deployment(), none, rpc, ShardNumber(0))
    product = await products.settlement(resources, contextlib.AsyncExitStack())
    settling = asyncio.ensure_future(product.loops["settlement"]())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not started.is_set()
    admitted.set()
    async with asyncio.timeout(WITHIN_S):
        await settling
    assert started.is_set()
