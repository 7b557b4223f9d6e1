"""Supplies of tokens: kept by the indexer, restored by an unwinding, and added up again by a rebuild."""

from collections.abc import Mapping

import pytest
from tests.rigs.values import NOW_MS, an_address, an_asset

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.indexer.rebuild import RebuildContext, rebuild_supplies
from foretell.indexer.state import IndexState
from foretell.store.database import Database
from foretell.store.index.balances import Balance, record_balances
from foretell.store.index.supplies import load_supplies, record_supplies, recount_supplies
from foretell.store.index.unwind import unwind
from foretell.store.tables import supplies

pytestmark = pytest.mark.anyio

ANN, BOB = an_address("ann"), an_address("bob")
YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
GONE = AssetId("7")


async def load_all(database: Database) -> Mapping[str, str]:
    async with database.reading() as tx:
        return {row.token_id: row.units for row in await tx.all(supplies.select())}


async def test_a_supply_is_what_all_wallets_hold_beyond_63_bits_too(database: Database) -> None:
    async with database.writing() as tx:
        held = [Balance(each, YES, AMOUNT_UNITS_MAX, 1) for each in (ANN, BOB, NO_TOKEN_BURN)]
        cash = Balance(ANN, COLLATERAL, 5, 1)
        await record_balances(tx, [*held, Balance(ANN, NO, 0, 1), cash])
        await recount_supplies(tx, [YES, NO])
        counted = await load_supplies(tx, [YES, NO, GONE])
        assert counted == {YES: 3 * AMOUNT_UNITS_MAX, NO: 0}
        await record_supplies(tx, {NO: 2**70})
        assert await load_supplies(tx, [NO]) == {NO: 2**70}


async def test_an_unwinding_adds_up_the_tokens_that_it_touches(database: Database) -> None:
    async with database.writing() as tx:
        await record_balances(tx, [Balance(ANN, YES, 5, 1), Balance(BOB, YES, 2, 1)])
        await record_balances(tx, [Balance(ANN, YES, 9, 2), Balance(BOB, NO, 3, 2)])
        await record_supplies(tx, {YES: 11, NO: 3})
        await unwind(tx, 1)
        assert await load_supplies(tx, [YES, NO]) == {YES: 7}
        await unwind(tx, 0)
    assert await load_all(database) == {}


@pytest.mark.parametrize("tokens_max", [1, 2, 50])
async def test_a_rebuild_mends_wrong_missing_and_superfluous_supplies(
    database: Database, monkeypatch: pytest.MonkeyPatch, tokens_max: int
) -> None:
    monkeypatch.setattr("foretell.indexer.rebuild.TOKENS_PER_STEP_MAX", tokens_max)
    async with database.writing() as tx:
        cash = Balance(ANN, COLLATERAL, 5, 1)
        held = [Balance(ANN, YES, 5, 1), Balance(BOB, YES, 2, 1), Balance(BOB, NO, 3, 1)]
        await record_balances(tx, [cash, *held])
        await record_supplies(tx, {YES: 1, GONE: 4})
    assert await rebuild_supplies(RebuildContext(database, lambda: NOW_MS)) == 3
    assert await load_all(database) == {YES: "7", NO: "3"}


def test_only_mints_and_burns_change_a_supply() -> None:
    state = IndexState()
    state.move(ZERO_ADDRESS, ANN, YES, 5)
    state.move(ANN, BOB, YES, 2)
    state.move(ZERO_ADDRESS, ANN, COLLATERAL, 9)
    assert state.supplies.close_block() == [(YES, 5)]
    state.move(ANN, BOB, YES, 1)
    assert state.supplies.close_block() == []
    state.move(BOB, ZERO_ADDRESS, YES, 3)
    assert state.supplies.close_block() == [(YES, 2)]


def test_what_a_balance_cannot_hold_is_in_no_supply() -> None:
    state = IndexState()
    state.move(ZERO_ADDRESS, ANN, YES, AMOUNT_UNITS_MAX)
    state.move(ZERO_ADDRESS, ANN, YES, 1)
    state.move(BOB, ANN, NO, 4)
    assert dict(state.supplies.close_block()) == {YES: AMOUNT_UNITS_MAX, NO: 4}
