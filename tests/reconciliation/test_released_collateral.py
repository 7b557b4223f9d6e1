"""Open interest of events whose wallets burn tokens themselves, or convert after the end: the index, the chain, and an older index."""

from typing import Final

import pytest
import sqlalchemy as sa
from tests.indexer.rig import check_balances, dump
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.events import SandboxEvent
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.store.test_filled_sums import fill

from foretell.data.routes import build_app
from foretell.domain.contracts.calldata import SAFE_TRANSFER_FROM
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.logs import ConditionResolved
from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.contracts.sandbox_accounts import SandboxAccount
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Payout
from foretell.domain.values.hexadecimal import Bytes32
from foretell.indexer.neg_risk_reader import NegRiskReader
from foretell.indexer.state import IndexState
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.tables import (
    locked_collateral,
    locked_collateral_changes,
    released_collateral,
    released_collateral_changes,
)

pytestmark = pytest.mark.anyio

SETS: Final = 1_000
BURNED: Final = 250
CONVERTED: Final = 300
SMALL_RANGE: Final = 3
A_WHOLE_HISTORY: Final = 1_000
TABLES: Final = tuple(
    table.name
    for table in (
        locked_collateral,
        locked_collateral_changes,
        released_collateral,
        released_collateral_changes,
    )
)


@pytest.fixture
async def event(fresh_sandbox: Sandbox) -> SandboxEvent:
    """An event whose first two traders hold complete sets of every question."""
    event = await SandboxEvent.ask(fresh_sandbox)
    for trader in (fresh_sandbox.trader(0), fresh_sandbox.trader(1)):
        await fresh_sandbox.allow(trader, event.adapter)
        for place in range(len(event.markets)):
            await event.split(trader, place, SETS)
    return event


async def burn(event: SandboxEvent, trader: SandboxAccount, place: int, *, is_yes: bool) -> None:
    """Have a wallet send tokens to the burn address itself."""
    pair = event.markets[place].tokens
    token = pair.yes if is_yes else pair.no
    given = SAFE_TRANSFER_FROM.encode(trader.address, NO_TOKEN_BURN, token, BURNED, b"")
    await event.sandbox.call(trader, event.sandbox.deployment.conditional_tokens, given)


async def act(event: SandboxEvent) -> None:
    """Burn and convert, end with Yes for the first question, and go on; some tokens are redeemed and merged."""
    ann, bob = event.sandbox.trader(0), event.sandbox.trader(1)
    await event.convert(ann, 0b011, CONVERTED)
    for place in (0, 1):
        await burn(event, ann, place, is_yes=False)
    await burn(event, bob, 0, is_yes=True)
    await event.convert(bob, 0b100, CONVERTED)
    for place in range(len(event.markets)):
        await event.answer(place, is_yes=place == 0)
    await event.redeem(ann, 0, SETS - CONVERTED, 0)
    await burn(event, bob, 0, is_yes=False)
    await event.convert(ann, 0b010, 100)
    await event.convert(bob, 0b011, 50)
    await event.merge(bob, 0, 60)
    await event.redeem(bob, 1, 0, 70)


async def check(
    event: SandboxEvent, database: Database, blocks_per_range_max: int = A_WHOLE_HISTORY
) -> None:
    """Index the chain, and assert that open interest equals what the contracts hold, and all else a verification."""
    sandbox = event.sandbox
    step = await catch_up(an_indexer(sandbox, database, blocks_per_range_max=blocks_per_range_max))
    assert step.ignored == {}
    await check_balances(sandbox, database)
    async with database.reading() as tx:
        locked_units = await tx.scalar(sa.select(sa.func.sum(locked_collateral.c.units)))
    wrapped = sandbox.deployment.address(ContractName.WRAPPED_COLLATERAL)
    assert locked_units == await sandbox.reader.collateral_units(wrapped)
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert [str(each) for each in report.differences] == []


async def test_a_no_that_a_wallet_burns_itself_is_not_locked_twice_when_its_question_ends_with_yes(
    event: SandboxEvent, fresh_database: Database
) -> None:
    for trader in (event.sandbox.trader(0), event.sandbox.trader(1)):
        await burn(event, trader, 0, is_yes=False)
    await event.answer(0, is_yes=True)
    await catch_up(an_indexer(event.sandbox, fresh_database))
    reader = Reader(an_app(build_app, a_data_context(fresh_database, BLOBS, Clock().now_ms)))
    [interest] = await reader.get("/oi", market=event.markets[0].condition_id)
    assert interest["value"] == 2 * SETS / 10**6
    await check(event, fresh_database)


async def test_a_conversion_after_the_end_takes_nothing_off_the_question_that_ended_with_yes(
    event: SandboxEvent, fresh_database: Database
) -> None:
    for place in range(len(event.markets)):
        await event.answer(place, is_yes=place == 0)
    await check(event, fresh_database)
    for index_set in (0b010, 0b001, 0b011):
        await event.convert(event.sandbox.trader(0), index_set, CONVERTED)
        await check(event, fresh_database)


@pytest.mark.parametrize("blocks", [SMALL_RANGE, A_WHOLE_HISTORY])
async def test_open_interest_is_what_the_contracts_hold_wherever_ranges_end(
    event: SandboxEvent, fresh_database: Database, blocks: int
) -> None:
    await act(event)
    await check(event, fresh_database, blocks)


async def test_a_reorganization_takes_back_what_conversions_have_released(
    event: SandboxEvent, fresh_database: Database
) -> None:
    await event.convert(event.sandbox.trader(0), 0b011, CONVERTED)
    await catch_up(an_indexer(event.sandbox, fresh_database))
    before = await dump(fresh_database)
    snapshot = await event.sandbox.rpc.send("evm_snapshot")
    await act(event)
    await check(event, fresh_database)
    await event.sandbox.rpc.send("evm_revert", snapshot)
    await catch_up(an_indexer(event.sandbox, fresh_database))
    assert await dump(fresh_database) == before
    assert {units for _, units, _ in before["released_collateral"]} == {CONVERTED}
    await act(event)
    await check(event, fresh_database)


def lock_all_that_is_burned(reader: NegRiskReader, log: ConditionResolved, payout: Payout) -> None:
    """Lock what an earlier version did: all that the burn address holds of No."""
    state = reader._state
    if log.oracle == reader._contracts.neg_risk_adapter and payout.yes:
        no = AssetId(str(state.pair_by_condition[log.condition_id].no))
        state.lock(log.condition_id, state.balances[NO_TOKEN_BURN, no])


def only_unlock(state: IndexState, condition_id: Bytes32, units: int) -> None:
    """Release what an earlier version did: the collateral of all questions, and no sum of it was kept."""
    state.lock(condition_id, -units)


@pytest.mark.parametrize("is_redeemed", [False, True])
async def test_the_migration_corrects_open_interest_and_finds_what_conversions_have_released(
    event: SandboxEvent,
    fresh_database: Database,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_redeemed: bool,
) -> None:
    await migrate(event, fresh_database, monkeypatch, is_redeemed=is_redeemed)


async def test_the_migration_corrects_open_interest_on_postgresql(
    event: SandboxEvent, postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(event, postgres_database, monkeypatch, is_redeemed=True)


async def migrate(
    event: SandboxEvent, database: Database, monkeypatch: pytest.MonkeyPatch, *, is_redeemed: bool
) -> None:
    """Index as an earlier version did, and assert that the migration leads to the tables of today."""
    await act(event)
    if is_redeemed:
        await redeem_all(event)
    with monkeypatch.context() as older:
        older.setattr(NegRiskReader, "lock_released", lock_all_that_is_burned)
        older.setattr(IndexState, "release", only_unlock)
        await catch_up(an_indexer(event.sandbox, database, blocks_per_range_max=A_WHOLE_HISTORY))
    found = await verify_data(database, event.sandbox.rpc, event.sandbox.deployment)
    assert {each.table for each in found.differences} == {*TABLES}
    await fill(database, "v0034_released_collateral")
    await check(event, database)


async def redeem_all(event: SandboxEvent) -> None:
    """Have each trader redeem all that it has."""
    for trader in (event.sandbox.trader(0), event.sandbox.trader(1)):
        for place, market in enumerate(event.markets):
            held = [(trader.address, str(token)) for token in market.tokens]
            await event.redeem(trader, place, *await event.sandbox.reader.token_units(held))
