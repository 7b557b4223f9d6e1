"""GET /solvency against the real chain, and when something is wrong."""

from typing import Any, NamedTuple

import pytest
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.events import SandboxEvent
from tests.rigs.read_apis import BLOBS, Reader, a_data_context, no_node
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.sandbox import Sandbox, SandboxMarket, an_indexer, catch_up
from tests.rigs.values import NOW_S, a_word, an_asset

from foretell.app.builders import build_solvency
from foretell.data.context import DataContext
from foretell.data.owed_reader import OwedReader
from foretell.data.routes import build_app
from foretell.data.solvency_books import KEPT_S, METRICS
from foretell.domain.contracts.calldata import MergePositions, RedeemPositions, Transfer
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Database
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.index.supplies import recount_supplies

pytestmark = pytest.mark.anyio

BLOCK = Block(1, a_word("block"), a_word("parent"), NOW_S)
SPLIT, CONVERTED, TAKEN = 5_000_000, 2_000_000, 7


class Exchange(NamedTuple):
    """A chain with its tables, and the data API over them."""

    sandbox: Sandbox
    database: Database
    reader: Reader
    clock: Clock

    async def report(self, **parameters: Any) -> Any:
        """Index the chain, and return a new report."""
        await catch_up(an_indexer(self.sandbox, self.database))
        self.clock.move(int(KEPT_S * 1000))
        return await self.reader.get("/solvency", **parameters)


@pytest.fixture
async def exchange(fresh_sandbox: Sandbox, database: Database) -> Exchange:
    clock = Clock()
    books = build_solvency(database, fresh_sandbox.reader, fresh_sandbox.deployment, clock.now_ms)
    context = DataContext(database, BLOBS, clock.now_ms, books, OwedReader((), no_node))
    return Exchange(fresh_sandbox, database, Reader(an_app(build_app, context)), clock)


async def take(sandbox: Sandbox, holder: Address, units: int) -> None:
    """Move collateral away from a contract, as only a cheat of the dev chain can."""
    thief, rpc = sandbox.trader(5).address, sandbox.rpc
    await rpc.send("anvil_setBalance", holder, hex(10**18))
    await rpc.send("anvil_impersonateAccount", holder)
    calldata = "0x" + Transfer(thief, units).encode().hex()
    call = {"from": holder, "to": sandbox.deployment.collateral, "data": calldata}
    await rpc.send("eth_sendTransaction", call)
    await sandbox.mine()
    await rpc.send("anvil_stopImpersonatingAccount", holder)


async def open_positions(sandbox: Sandbox) -> tuple[SandboxMarket, SandboxEvent]:
    """Split sets of a market of its own and of an event, and convert some of the event's."""
    market, event = await sandbox.ask(), await SandboxEvent.ask(sandbox)
    trader = sandbox.trader()
    await sandbox.split(trader, market, SPLIT)
    await sandbox.allow(trader, event.adapter)
    await event.split(trader, 0, SPLIT)
    await event.convert(trader, 0b001, CONVERTED)
    return market, event


async def test_what_contracts_hold_equals_what_is_claimed_through_a_market_s_life(
    exchange: Exchange,
) -> None:
    sandbox, trader = exchange.sandbox, exchange.sandbox.trader()
    market, event = await open_positions(sandbox)
    total = (await exchange.report())["total"]
    assert (total["isSolvent"], total["deficits"], total["deficit"]) == (True, [], 0)
    assert (total["held"], total["owed"]) == (10, 10)
    head = await sandbox.reader.header(hex(total["block"]))
    assert head is not None
    assert head.block_hash == total["blockHash"]
    assert METRICS.total is not None
    assert METRICS.total.block_hash == total["blockHash"]

    collateral, tokens = sandbox.deployment.collateral, sandbox.deployment.conditional_tokens
    merged = MergePositions(collateral, market.condition_id, 1_000_000)
    await sandbox.call(trader, tokens, merged.encode())
    await event.answer(1, is_yes=True)
    await event.answer(0, is_yes=False)
    await sandbox.answer(market)
    total = (await exchange.report())["total"]
    assert (total["isSolvent"], total["held"], total["owed"]) == (True, 9, 9)

    redeemed = RedeemPositions(collateral, market.condition_id)
    await sandbox.call(trader, tokens, redeemed.encode())
    await event.redeem(trader, 1, CONVERTED, 0)
    await event.redeem(trader, 0, 0, SPLIT - CONVERTED)
    total = (await exchange.report())["total"]
    assert (total["isSolvent"], total["held"], total["owed"]) == (True, 0, 0)


async def test_collateral_that_is_taken_away_is_a_named_deficit(exchange: Exchange) -> None:
    sandbox = exchange.sandbox
    await open_positions(sandbox)
    wrapped = sandbox.deployment.address(ContractName.WRAPPED_COLLATERAL)
    await take(sandbox, sandbox.deployment.conditional_tokens, TAKEN)
    total = (await exchange.report())["total"]
    assert total["deficits"] == [{"name": "conditional_tokens", "amount": 0.000007}]
    await take(sandbox, wrapped, 2 * TAKEN)
    total = (await exchange.report())["total"]
    assert total["deficits"] == [
        {"name": "conditional_tokens", "amount": 0.000007},
        {"name": "wrapped_collateral", "amount": 0.000014},
    ]
    assert (total["isSolvent"], total["deficit"]) == (False, 0.000021)
    samples = {sample.name: sample.value for each in METRICS.collect() for sample in each.samples}
    assert samples["foretell_solvency_deficit_units"] == 3 * TAKEN


async def test_conditions_come_in_pages_in_the_order_of_their_ids(exchange: Exchange) -> None:
    market, event = await open_positions(exchange.sandbox)
    whole = (await exchange.report())["page"]
    ids = [each["conditionId"] for each in whole["conditions"]]
    assert ids == sorted([market.condition_id, *(each.condition_id for each in event.markets)])
    assert whole["next"] == ""
    first = (await exchange.report(limit=3))["page"]
    assert first["next"] == ids[2]
    rest = (await exchange.report(limit=3, after=first["next"]))["page"]
    assert [each["conditionId"] for each in rest["conditions"]] == ids[3:]
    assert rest["blockHash"] == first["blockHash"]
    own = next(each for each in whole["conditions"] if each["conditionId"] == market.condition_id)
    assert own == {
        "conditionId": market.condition_id,
        "negativeRisk": False,
        "isResolved": False,
        "held": 5,
        "owed": 5,
        "deficit": 0,
    }


async def test_a_report_is_kept_and_costs_one_round_trip(exchange: Exchange) -> None:
    await open_positions(exchange.sandbox)
    first = (await exchange.report())["total"]
    await exchange.sandbox.mine()
    await catch_up(an_indexer(exchange.sandbox, exchange.database))
    exchange.clock.move(int(KEPT_S * 1000) - 1)
    assert (await exchange.reader.get("/solvency"))["total"] == first
    exchange.clock.move(1)
    assert (await exchange.reader.get("/solvency"))["total"]["block"] == first["block"] + 1


async def test_a_node_that_is_away_is_said_so_and_asked_once_by_many(
    reader: Reader, database: Database, context: DataContext
) -> None:
    status, body = await reader.refused("/solvency")
    assert (status, body["error"].split(":")[0]) == (503, "nothing_indexed")
    asked = []

    async def fail(block_hash: Bytes32) -> BackingUnits:
        asked.append(block_hash)
        raise TimeoutError

    async with database.writing() as tx:
        await Rows(tx).open(an_event_row("weather", a_market_row("rain")))
        await record_blocks(tx, [BLOCK])
    many = Reader(an_app(build_app, a_data_context(database, BLOBS, context.now_ms, fail)))
    answers = [await many.refused("/solvency") for _ in range(5)]
    assert {status for status, _ in answers} == {502}
    assert {body["error"].split(":")[0] for _, body in answers} == {"chain_unavailable"}
    assert len(asked) == 1


async def test_a_condition_that_owes_more_than_its_logs_locked_is_named(
    database: Database, context: DataContext
) -> None:
    async def hold_enough(_block_hash: Bytes32) -> BackingUnits:
        return BackingUnits(10**9)

    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(an_event_row("weather", a_market_row("rain")))
        await rows.hold("alice", "rain", 3_000_000, 0)
        await recount_supplies(tx, [an_asset(is_yes=True, market="rain")])
        await rows.lock("rain", 2_000_000)
        await record_blocks(tx, [BLOCK])
    reader = Reader(an_app(build_app, a_data_context(database, BLOBS, context.now_ms, hold_enough)))
    report = await reader.get("/solvency")
    assert report["total"]["deficits"] == [{"name": a_word("rain"), "amount": 1}]
    assert report["total"]["shortConditions"] == 1
    assert report["page"]["conditions"][0]["deficit"] == 1
