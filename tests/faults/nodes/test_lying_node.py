"""Settlement, the relayer, creation and the indexer behind a node that lies for a while, at random.

Meanwhile the chain replaces blocks by its own method. When the lies end, every queue drains within
`DRAINED_WITHIN_S` of the rig's clock. Nothing was executed twice and the nonces have no gap. The tables of settlement and
the indexer equal those of a new index; the relayer and creation index nothing. The number of a test is its seed, which also chooses what settlement has: batches, a further
account, the Safe of a maker.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
from tests.creation.rig import CreationRig, CreatorClient
from tests.faults.nodes.draining import (
    DRAINED_WITHIN_S,
    FURTHER,
    attempt,
    check_nonces,
    drain_requests,
    drain_trades,
    match,
    used_nonces,
)
from tests.faults.nodes.lying_node import BROADCAST_LIES, LIES, LyingNode, be_another_chain, lying
from tests.faults.nodes.reorgs import DEPTH_MAX, Reorgs
from tests.indexer.rig import IndexerRig, check_against_chain, dump
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.settlement.rig import DATABASE_FILE, HELD, SettlementRig

from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.creation.context import CreationOptions
from foretell.domain.contracts.calldata import ADD_OPERATOR
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.relay.request import RelayState
from foretell.indexer.follow import follow
from foretell.store.creation.markets import load_markets
from foretell.store.database import Database
from foretell.store.many_rows import insert_many
from foretell.store.outbox.relays import load_relays_of
from foretell.store.outbox.transactions import REGISTRATION, RELAYED, SETTLEMENT
from foretell.store.tables import markets

pytestmark = pytest.mark.anyio

SYSTEMS: Final = 4
SEEDS: Final = range(int(os.environ.get("FORETELL_TEST_LIES", "32")) // SYSTEMS)
RUNS_THAT_SUFFICE: Final = 100
"""In so many runs of a system every lie occurs: the rarest one does so in every sixth."""
TIMEOUT_S: Final = 0.5
ROUNDS: Final = (4, 12)
STEPS_MS: Final = (250, 1_000, 5_000, 21_000)
REQUESTS: Final = 4

Occurred = dict[str, Counter[str]]


@pytest.fixture(scope="session")
def occurred() -> Iterator[Occurred]:
    """How often each lie and each depth of a reorg occurred, by system; with many runs, all have to."""
    found: Occurred = defaultdict(Counter)
    yield found
    for system, counts in found.items():
        if counts["runs"] >= RUNS_THAT_SUFFICE:
            lies = {*LIES, be_another_chain} - (BROADCAST_LIES if system == "indexer" else set())
            wanted = {lie.__name__ for lie in lies}
            wanted |= {f"reorg of {depth}" for depth in range(1, DEPTH_MAX + 1)}
            assert wanted - counts.keys() == set(), system


class Run:
    """One run of a system: its lying node, the chain as it is seen through that, and its reorgs."""

    def __init__(self, node: LyingNode, lied: Sandbox, reorgs: Reorgs) -> None:
        self.node = node
        self.lied = lied
        self.reorgs = reorgs
        self.random = random.Random(f"acts {node.random.random()}")

    async def begin(self) -> None:
        """Begin to lie; blocks until now stay."""
        await self.reorgs.begin()
        self.node.is_lying = True


@pytest.fixture
async def run(
    manual: Sandbox, other_chain: str, occurred: Occurred, system: str, seed: int
) -> AsyncIterator[Run]:
    counts = occurred[system]
    async with (
        lying(manual.rpc_url, f"{system} {seed}", other_url=other_chain) as node,
        Rpc(node.url, SANDBOX_CHAIN_ID, timeout_s=TIMEOUT_S) as rpc,
    ):
        lied = Sandbox(node.url, rpc, manual.deployment, Reader(rpc, manual.deployment))
        yield Run(node, lied, Reorgs(manual, random.Random(f"reorgs of {system} {seed}"), counts))
        counts.update(node.lies, runs=1)


async def check_index(sandbox: Sandbox, database: Database, fresh: Path) -> None:
    """Check that the tables equal those of a new index of the same chain, and of the same listed markets."""
    await catch_up(an_indexer(sandbox, database))
    async with Database(f"sqlite+aiosqlite:///{fresh}") as other:
        async with database.reading() as tx:
            listed = [tuple(row) for row in await tx.all(sa.select(markets))]
        async with other.writing() as tx:
            await insert_many(tx, markets, listed)
        await catch_up(an_indexer(sandbox, other))
        assert await dump(database) == await dump(other)


@pytest.mark.case("D-04", "D-07", "D-08")
@pytest.mark.parametrize(("system", "seed"), [("settlement", seed) for seed in SEEDS])
async def test_every_trade_settles_once_behind_a_lying_node(
    manual: Sandbox, folder: Path, seed: int, run: Run
) -> None:
    rig = SettlementRig(
        manual,
        folder,
        rpc_url=run.node.url,
        timeout_s=TIMEOUT_S,
        confirmations=DEPTH_MAX,
        has_batches=seed % 2 == 0,
        further_operators=(manual.trader(FURTHER),) if seed % 4 == 0 else (),
    )
    await rig.start()
    try:
        await settle_through_lies(rig, run, has_safe=seed % 3 == 0)
        await check_index(manual, rig.database, folder / "fresh.db")
    finally:
        await rig.stop()


async def settle_through_lies(rig: SettlementRig, run: Run, *, has_safe: bool) -> None:
    sandbox, market = rig.sandbox, await rig.open()
    traders = [await rig.trader(number) for number in range(3)]
    for trader in traders:
        await sandbox.split(trader.account, market, HELD)
    if has_safe:
        traders.append(await rig.safe_trader(len(traders), market))
    for account in rig.further_operators:
        added = ADD_OPERATOR.encode(account.address)
        await sandbox.call(sandbox.account(AccountRole.ADMIN), sandbox.deployment.exchange, added)
    await rig.see()
    operators = [sandbox.account(AccountRole.OPERATOR), *rig.further_operators]
    before = {each.address: await used_nonces(sandbox, each.address) for each in operators}
    rig.indexer = an_indexer(run.lied, rig.database)
    trade_ids: list[str] = []
    await run.begin()
    for _ in range(run.random.randint(*ROUNDS)):
        trade_ids += await match(run.random, market, traders)
        await attempt(rig.act(), rig.watch())
        await sandbox.mine(run.random.randint(0, 2))
        await run.reorgs.maybe()
        rig.clock.move(run.random.choice(STEPS_MS))
        await attempt(rig.see())
    run.node.heal()
    await drain_trades(rig)
    trades = await rig.trades(trade_ids)
    assert {each.status for each in trades} == {TradeStatus.CONFIRMED}
    assert await rig.fill_count() == sum(1 + len(each.trade.fills) for each in trades)
    for address, nonce in before.items():
        await check_nonces(sandbox, rig.database, SETTLEMENT, address, nonce)
    await rig.check_ledger()


@pytest.mark.case("D-04", "D-07", "D-08")
@pytest.mark.parametrize(("system", "seed"), [("relayer", seed) for seed in SEEDS])
async def test_every_request_is_executed_once_behind_a_lying_node(
    manual: Sandbox, folder: Path, run: Run
) -> None:
    rig = RelayerRig(
        manual, folder, rpc_url=run.node.url, timeout_s=TIMEOUT_S, confirmations=DEPTH_MAX
    )
    await rig.start()
    try:
        await relay_through_lies(rig, run)
    finally:
        await rig.stop()


async def relay_through_lies(rig: RelayerRig, run: Run) -> None:
    """Have a Safe deployed, and then execute calls of its owner."""
    owner, relayer = await rig.owner("an owner"), rig.sandbox.account(AccountRole.RELAYER).address
    before = await used_nonces(rig.sandbox, relayer)
    collateral = rig.sandbox.deployment.collateral
    calls = [an_approval(rig, 1 + number).encode() for number in range(REQUESTS)]
    bodies = [owner.create_body()]
    bodies += [owner.body(collateral, call, str(number)) for number, call in enumerate(calls)]
    accepted: set[str] = set()
    await run.begin()
    for _ in range(run.random.randint(*ROUNDS)):
        answer = await owner.submit(run.random.choice(bodies))
        if answer.status_code == 200:
            accepted.add(answer.json()["transactionID"])
        await attempt(rig.context.sender.run_once(), rig.run_once())
        await rig.sandbox.mine(run.random.randint(0, 2))
        await run.reorgs.maybe()
        rig.clock.move(run.random.choice(STEPS_MS))
    run.node.heal()
    await drain_requests(rig)
    for each in accepted:
        assert (await rig.relay(each)).state is RelayState.CONFIRMED
    for body in bodies:
        await submit_until_accepted(owner, body)
    await drain_requests(rig)
    async with rig.database.reading() as tx:
        requests = await load_relays_of(tx, owner.address, 1_000)
    confirmed = Counter(each.digest for each in requests if each.state is RelayState.CONFIRMED)
    assert sorted(confirmed.values()) == [1] * len(bodies)
    assert await owner.safe_nonce() == REQUESTS
    exchange = rig.sandbox.deployment.exchange
    assert await rig.sandbox.reader.allowance_units(owner.safe, exchange) == REQUESTS
    await check_nonces(rig.sandbox, rig.database, RELAYED, relayer, before)


async def submit_until_accepted(owner: OwnerClient, body: Body) -> None:
    """Submit a request to an honest node, once those before it have left the queue."""
    answer = await owner.submit(body)
    is_deployed = body["type"] == "SAFE-CREATE" and "is deployed already" in answer.text
    assert answer.status_code == 200 or is_deployed, answer.text
    await drain_requests(owner.rig)


@pytest.mark.case("D-04", "D-07", "F-09")
@pytest.mark.parametrize(("system", "seed"), [("creation", seed) for seed in SEEDS])
async def test_a_market_is_registered_once_behind_a_lying_node(
    manual: Sandbox, folder: Path, run: Run
) -> None:
    rig = CreationRig(run.lied, folder, options=CreationOptions(confirmations=DEPTH_MAX))
    await rig.start()
    rig.sandbox = manual
    try:
        await create_through_lies(rig, run)
    finally:
        await rig.stop()


async def create_through_lies(rig: CreationRig, run: Run) -> None:
    creator = rig.creator()
    registrar = rig.sandbox.account(AccountRole.REGISTRAR).address
    before = await used_nonces(rig.sandbox, registrar)
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    request_id = str(challenge["requestId"])
    envelope = creator.sign(challenge)
    await run.begin()
    await creator.send(raw, envelope)
    await work_through_lies(rig, run)
    answer = await creator.send(raw, envelope)
    assert answer.status_code == 200, answer.text
    await reach(creator, request_id, "prepared")
    txs = await creator.paid(request_id)
    await run.begin()
    await creator.finalize(request_id, txs)
    await work_through_lies(rig, run)
    await creator.finalize(request_id, txs)
    await reach(creator, request_id, "metadata_update_pending")
    updates = await creator.execute((await creator.record(request_id))["metadataUpdateTxPlan"])
    await run.begin()
    await creator.finalize(request_id, updates)
    await work_through_lies(rig, run)
    await creator.finalize(request_id, updates)
    await reach(creator, request_id, "finalized")
    async with rig.database.reading() as tx:
        assert len(await load_markets(tx)) == 1
    assert await used_nonces(rig.sandbox, registrar) == before + 1
    await check_nonces(rig.sandbox, rig.database, REGISTRATION, registrar, before)


async def work_through_lies(rig: CreationRig, run: Run) -> None:
    """Run the worker behind the lying node for some rounds; then the node is honest again."""
    for _ in range(run.random.randint(*ROUNDS)):
        await attempt(rig.run_once())
        await run.reorgs.maybe()
        rig.clock.move(run.random.choice(STEPS_MS))
    run.node.heal()


async def reach(creator: CreatorClient, request_id: str, status: str) -> None:
    """Run the worker, once a second, until the request has this status."""
    for _ in range(DRAINED_WITHIN_S):
        record = await creator.record(request_id)
        if record["status"] == status:
            return
        await attempt(creator.rig.run_once())
        creator.rig.clock.move(1_000)
    raise AssertionError(await creator.record(request_id))


@pytest.mark.case("D-07", "E-02", "E-05")
@pytest.mark.parametrize(("system", "seed"), [("indexer", seed) for seed in SEEDS])
async def test_tables_equal_a_new_index_behind_a_lying_node(
    manual: Sandbox, folder: Path, seed: int, run: Run
) -> None:
    url = f"sqlite+aiosqlite:///{folder / DATABASE_FILE}"
    async with Database(url) as database:
        market = IndexerRig(manual, await manual.ask(), seed)
        await market.open()
        await run.begin()
        for _ in range(run.random.randint(*ROUNDS)):
            for _ in range(run.random.randint(0, 3)):
                await market.act()
            await run.reorgs.maybe()
            size = run.random.choice((1, 3, 200))
            await attempt(follow(an_indexer(run.lied, database, blocks_per_range_max=size)))
        run.node.heal()
        await catch_up(an_indexer(manual, database))
        await check_against_chain(manual, database)
        await check_index(manual, database, folder / "fresh.db")
