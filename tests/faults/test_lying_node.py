"""Settlement, the relayer, creation and the indexer behind a node that lies for a while, at random.

When the lies end, every queue drains within `DRAINED_WITHIN_S` of the rig's clock. Nothing was executed
twice, the nonces have no gap, and the tables equal those of a new index. The number of a test is its seed.
"""

import contextlib
import os
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
from tests.creation.rig import CreationRig, CreatorClient
from tests.faults.lying_node import LyingNode, lying
from tests.indexer.rig import IndexerRig, check_against_chain, dump
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.settlement.rig import DATABASE_FILE, HELD, UNIT, SettlementRig

from foretell.chain import rpc as rpc_module
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.relay.request import RelayState
from foretell.domain.values.hexadecimal import Address
from foretell.indexer.follow import follow
from foretell.store.creation.markets import load_markets
from foretell.store.database import Database
from foretell.store.outbox.relays import load_relays_of
from foretell.store.outbox.transactions import REGISTRATION, RELAYED, SETTLEMENT, TxTables

pytestmark = pytest.mark.anyio

SYSTEMS: Final = 4
SEEDS: Final = range(int(os.environ.get("FORETELL_TEST_LIES", "8")) // SYSTEMS)
DRAINED_WITHIN_S: Final = 60
ROUNDS: Final = (4, 12)
STEPS_MS: Final = (250, 1_000, 5_000, 21_000)
REQUESTS: Final = 4
FAILED_ONCE: Final = (20, 45, 306, 372, 386)
"""Seeds that found a fault in creation or in the relayer."""


@contextlib.asynccontextmanager
async def through(node: LyingNode, sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """Yield the sandbox as it is seen through a node."""
    async with Rpc(node.url) as rpc:
        reader = Reader(rpc, sandbox.deployment)
        yield Sandbox(node.url, rpc, sandbox.deployment, reader)


async def attempt(*steps: Awaitable[object]) -> None:
    """Run steps as workers do: one that fails as a node makes it fail is repeated later."""
    for step in steps:
        with contextlib.suppress(ForetellError):
            await step


async def used_nonces(sandbox: Sandbox, address: Address) -> int:
    return int(await sandbox.rpc.call("eth_getTransactionCount", address, "latest"), 16)


async def check_nonces(
    sandbox: Sandbox, database: Database, tables: TxTables, role: AccountRole, before: int
) -> None:
    """Check that each nonce of the account since then is that of one row, and none is left out."""
    after = await used_nonces(sandbox, sandbox.account(role).address)
    query = sa.select(tables.txs.c.account_nonce)
    async with database.reading() as tx:
        nonces = sorted(row.account_nonce for row in await tx.all(query))
    assert [nonce for nonce in nonces if nonce >= before] == list(range(before, after))


async def check_index(sandbox: Sandbox, database: Database, fresh: Path) -> None:
    """Check that the tables equal those of a new index of the same chain."""
    await catch_up(an_indexer(sandbox, database))
    async with Database(f"sqlite+aiosqlite:///{fresh}") as other:
        await catch_up(an_indexer(sandbox, other))
        assert await dump(database) == await dump(other)


@pytest.fixture
async def manual(fresh_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    """A chain that mines on request only, so that each run is the same; reads are repeated at once."""
    monkeypatch.setattr(rpc_module, "RETRY_S", 0.001)
    monkeypatch.setattr(rpc_module, "RETRY_S_MAX", 0.002)
    await fresh_sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    yield fresh_sandbox
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own


@pytest.fixture
def folder(empty_database: Path, tmp_path: Path) -> Path:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    shutil.copy(empty_database, tmp_path / "fresh.db")
    return tmp_path


@pytest.mark.case("D-04", "D-07")
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_trade_settles_once_behind_a_lying_node(
    manual: Sandbox, folder: Path, seed: int
) -> None:
    async with lying(manual.rpc_url, f"settlement {seed}") as node, through(node, manual) as lied:
        rig = SettlementRig(manual, folder, rpc_url=node.url)
        await rig.start()
        try:
            await settle_through_lies(rig, lied, node)
            await check_index(manual, rig.database, folder / "fresh.db")
        finally:
            await rig.stop()


async def settle_through_lies(rig: SettlementRig, lied: Sandbox, node: LyingNode) -> None:
    rng, sandbox = random.Random(f"trades {node.random.random()}"), rig.sandbox
    market = await rig.open()
    traders = [await rig.trader(number) for number in range(3)]
    for trader in traders:
        await sandbox.split(trader.account, market, HELD)
    await rig.see()
    before = await used_nonces(sandbox, sandbox.account(AccountRole.OPERATOR).address)
    rig.indexer = an_indexer(lied, rig.database)
    trade_ids: list[str] = []
    node.is_lying = True
    for _ in range(rng.randint(*ROUNDS)):
        seller, buyer = rng.sample(traders, 2)
        await seller.sell(market, 40, 4 * UNIT)
        for _ in range(rng.randint(1, 2)):
            trade_ids += (await buyer.buy(market, 40, UNIT)).trade_ids
        await attempt(rig.act(), rig.context.operator.run_once())
        await sandbox.mine(rng.randint(0, 2))
        rig.clock.move(rng.choice(STEPS_MS))
        await attempt(rig.see())
    node.heal()
    await drain_trades(rig)
    assert await rig.statuses(trade_ids) == [TradeStatus.CONFIRMED] * len(trade_ids)
    assert await rig.fill_count() == 2 * len(trade_ids)
    await check_nonces(sandbox, rig.database, SETTLEMENT, AccountRole.OPERATOR, before)
    await rig.check_ledger()


async def drain_trades(rig: SettlementRig) -> None:
    """Run settlement's loops, once a second, until no trade and no transaction is left."""
    for _ in range(DRAINED_WITHIN_S):
        await rig.act()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        await rig.see()
        if not rig.engine.state.unsettled_trades and not await rig.context.operator.run_once():
            return
    raise AssertionError(rig.engine.state.unsettled_trades)


@pytest.mark.case("D-04", "D-07")
@pytest.mark.parametrize("seed", sorted({*SEEDS, *FAILED_ONCE}))
async def test_every_request_is_executed_once_behind_a_lying_node(
    manual: Sandbox, folder: Path, seed: int
) -> None:
    async with lying(manual.rpc_url, f"relayer {seed}") as node:
        rig = RelayerRig(manual, folder, rpc_url=node.url)
        await rig.start()
        try:
            await relay_through_lies(rig, node)
        finally:
            await rig.stop()


async def relay_through_lies(rig: RelayerRig, node: LyingNode) -> None:
    rng = random.Random(f"requests {node.random.random()}")
    owner = await rig.owner("an owner")
    await owner.deploy()
    before = await used_nonces(rig.sandbox, rig.sandbox.account(AccountRole.RELAYER).address)
    collateral = rig.sandbox.deployment.collateral
    calls = [an_approval(rig, 1 + number).encode() for number in range(REQUESTS)]
    bodies = [owner.body(collateral, call, str(number)) for number, call in enumerate(calls)]
    accepted: set[str] = set()
    node.is_lying = True
    for _ in range(rng.randint(*ROUNDS)):
        answer = await owner.submit(rng.choice(bodies))
        if answer.status_code == 200:
            accepted.add(answer.json()["transactionID"])
        await attempt(rig.context.sender.run_once(), rig.run_once())
        await rig.sandbox.mine(rng.randint(0, 2))
        rig.clock.move(rng.choice(STEPS_MS))
    node.heal()
    await drain_requests(rig)
    for each in accepted:
        assert (await rig.relay(each)).state is RelayState.CONFIRMED
    for body in bodies:
        await submit_until_accepted(owner, body)
    await drain_requests(rig)
    async with rig.database.reading() as tx:
        requests = await load_relays_of(tx, owner.address, 1_000)
    confirmed = Counter(each.digest for each in requests if each.state is RelayState.CONFIRMED)
    assert sorted(confirmed.values()) == [1] * (REQUESTS + 1)
    assert await owner.safe_nonce() == REQUESTS
    exchange = rig.sandbox.deployment.exchange
    assert await rig.sandbox.reader.allowance_units(owner.safe, exchange) == REQUESTS
    await check_nonces(rig.sandbox, rig.database, RELAYED, AccountRole.RELAYER, before)


async def submit_until_accepted(owner: OwnerClient, body: Body) -> None:
    """Submit a request to an honest node, once those before it have left the queue."""
    answer = await owner.submit(body)
    assert answer.status_code == 200, answer.text
    await drain_requests(owner.rig)


async def drain_requests(rig: RelayerRig) -> None:
    """Run the relayer's loops, once a second, until no request and no transaction is open."""
    for _ in range(DRAINED_WITHIN_S):
        open_txs, has_open = await rig.context.sender.run_once(), await rig.run_once()
        await rig.sandbox.mine()
        rig.clock.move(1_000)
        if not open_txs and not has_open:
            return
    raise AssertionError("the queue of requests does not drain")


@pytest.mark.case("D-04", "D-07")
@pytest.mark.parametrize("seed", sorted({*SEEDS, *FAILED_ONCE}))
async def test_a_market_is_registered_once_behind_a_lying_node(
    manual: Sandbox, folder: Path, seed: int
) -> None:
    async with lying(manual.rpc_url, f"creation {seed}") as node, through(node, manual) as lied:
        rig = CreationRig(lied, folder)
        await rig.start()
        rig.sandbox = manual
        try:
            await create_through_lies(rig, node)
        finally:
            await rig.stop()


async def create_through_lies(rig: CreationRig, node: LyingNode) -> None:
    creator = rig.creator()
    registrar = rig.sandbox.account(AccountRole.REGISTRAR).address
    before = await used_nonces(rig.sandbox, registrar)
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    request_id = str(challenge["requestId"])
    envelope = creator.sign(challenge)
    node.is_lying = True
    await creator.send(raw, envelope)
    await work_through_lies(rig, node)
    answer = await creator.send(raw, envelope)
    assert answer.status_code == 200, answer.text
    await reach(creator, request_id, "prepared")
    txs = await creator.paid(request_id)
    node.is_lying = True
    await creator.finalize(request_id, txs)
    await work_through_lies(rig, node)
    await creator.finalize(request_id, txs)
    await reach(creator, request_id, "metadata_update_pending")
    updates = await creator.execute((await creator.record(request_id))["metadataUpdateTxPlan"])
    node.is_lying = True
    await creator.finalize(request_id, updates)
    await work_through_lies(rig, node)
    await creator.finalize(request_id, updates)
    await reach(creator, request_id, "finalized")
    async with rig.database.reading() as tx:
        assert len(await load_markets(tx)) == 1
    assert await used_nonces(rig.sandbox, registrar) == before + 1
    await check_nonces(rig.sandbox, rig.database, REGISTRATION, AccountRole.REGISTRAR, before)


async def work_through_lies(rig: CreationRig, node: LyingNode) -> None:
    """Run the worker behind the lying node for some rounds; then the node is honest again."""
    for _ in range(node.random.randint(*ROUNDS)):
        await attempt(rig.run_once())
        rig.clock.move(node.random.choice(STEPS_MS))
    node.heal()


async def reach(creator: CreatorClient, request_id: str, status: str) -> None:
    """Run the worker, once a second, until the request has this status."""
    for _ in range(DRAINED_WITHIN_S):
        record = await creator.record(request_id)
        if record["status"] == status:
            return
        await creator.rig.run_once()
        creator.rig.clock.move(1_000)
    raise AssertionError(await creator.record(request_id))


@pytest.mark.case("D-07", "E-02")
@pytest.mark.parametrize("seed", SEEDS)
async def test_tables_equal_a_new_index_behind_a_lying_node(
    manual: Sandbox, folder: Path, seed: int
) -> None:
    url = f"sqlite+aiosqlite:///{folder / DATABASE_FILE}"
    async with (
        lying(manual.rpc_url, f"indexer {seed}") as node,
        through(node, manual) as lied,
        Database(url) as database,
    ):
        market = IndexerRig(manual, await manual.ask(), seed)
        await market.open()
        node.is_lying = True
        for _ in range(node.random.randint(*ROUNDS)):
            for _ in range(node.random.randint(0, 3)):
                await market.act()
            size = node.random.choice((1, 3, 200))
            await attempt(follow(an_indexer(lied, database, blocks_per_range_max=size)))
        node.heal()
        await catch_up(an_indexer(lied, database))
        await check_against_chain(manual, database)
        await check_index(manual, database, folder / "fresh.db")
