import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.values import EXCHANGE, an_address

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database, Transaction
from foretell.store.index.balances import Allowance, Balance, record_allowances, record_balances
from foretell.store.index.history_tables import ALLOWANCES, BALANCES, restore_states
from foretell.store.tables import balance_changes, balances

pytestmark = pytest.mark.anyio

ANN, BOB = an_address("ann"), an_address("bob")
YES = AssetId("1")

Rows = tuple[set[Balance], set[Balance]]


async def rows_of(tx: Transaction) -> Rows:
    current = await tx.all(sa.select(balances))
    history = await tx.all(sa.select(balance_changes))
    return {Balance._make(row) for row in current}, {Balance._make(row) for row in history}


async def test_going_back_restores_the_newest_remaining_value(database: Database) -> None:
    async with database.writing() as tx:
        await record_balances(tx, [Balance(ANN, YES, 5, 1), Balance(BOB, YES, 1, 2)])
        await record_balances(tx, [Balance(ANN, YES, 6, 3), Balance(ANN, YES, 7, 4)])
        await restore_states(tx, BALANCES, 2)
        kept = {Balance(ANN, YES, 5, 1), Balance(BOB, YES, 1, 2)}
        assert await rows_of(tx) == (kept, kept)


async def test_going_back_removes_values_that_did_not_exist_yet(database: Database) -> None:
    async with database.writing() as tx:
        await record_balances(tx, [Balance(ANN, YES, 5, 1), Balance(BOB, YES, 1, 2)])
        await restore_states(tx, BALANCES, 0)
        assert await rows_of(tx) == (set(), set())


async def test_keys_of_several_columns_are_restored(database: Database) -> None:
    before, after = (
        Allowance(ANN, EXCHANGE, is_collateral=True, units=8, block_number=5),
        Allowance(ANN, EXCHANGE, is_collateral=True, units=3, block_number=6),
    )
    other = Allowance(ANN, EXCHANGE, is_collateral=False, units=1, block_number=5)
    async with database.writing() as tx:
        await record_allowances(tx, [before, other, after])
        await restore_states(tx, ALLOWANCES, 5)
        rows = await tx.all(sa.select(ALLOWANCES.current))
    assert {Allowance._make(row) for row in rows} == {before, other}


changes = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["0", "1"]),
        st.integers(0, 9),
    ),
    max_size=20,
    unique_by=lambda change: change[:3],
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes, st.integers(0, 7))
async def test_going_back_is_as_if_later_blocks_had_never_been_recorded(
    database: Database, changed: list[tuple[int, str, str, int]], block_number: int
) -> None:
    rows = [
        Balance(Address(wallet), AssetId(asset), units, block)
        for block, wallet, asset, units in sorted(changed)
    ]
    async with database.writing() as tx:
        await restore_states(tx, BALANCES, -1)
        await record_balances(tx, [row for row in rows if row.block_number <= block_number])
        fresh = await rows_of(tx)
        await restore_states(tx, BALANCES, -1)
        await record_balances(tx, rows)
        await restore_states(tx, BALANCES, block_number)
        assert await rows_of(tx) == fresh
