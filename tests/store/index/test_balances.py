from collections.abc import AsyncIterator
from typing import TypeVar

import pytest
from tests.rigs.rows import Rows
from tests.rigs.values import EXCHANGE, a_word, an_address, an_asset

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.store.database import Database
from foretell.store.index import balances
from foretell.store.index.balances import (
    Allowance,
    Balance,
    LockedCollateral,
    allowances_changed,
    balances_changed,
    is_holder,
    load_allowances,
    load_allowances_changed,
    load_balances,
    load_holders,
    load_locked,
    load_most_locked,
    record_allowances,
    record_balances,
    record_locked,
)
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS
from foretell.store.index.history_tables import BALANCES, restore_states

pytestmark = pytest.mark.anyio

Part = TypeVar("Part")

ANN, BOB = sorted([an_address("ann"), an_address("bob")])
YES, NO = AssetId("12345678901234567890"), AssetId("2")


async def test_the_last_change_of_a_balance_is_current(database: Database) -> None:
    async with database.writing() as tx:
        await record_balances(tx, [Balance(ANN, YES, 5, 1), Balance(ANN, COLLATERAL, 9, 1)])
        await record_balances(tx, [Balance(ANN, YES, 7, 2), Balance(ANN, YES, 2**63 - 1, 3)])
        held = await load_balances(tx, [(ANN, YES), (ANN, COLLATERAL), (BOB, YES)])
    assert sorted(held) == [Balance(ANN, COLLATERAL, 9, 1), Balance(ANN, YES, 2**63 - 1, 3)]


async def test_changes_since_a_block_are_those_of_later_blocks(database: Database) -> None:
    async with database.writing() as tx:
        await record_balances(tx, [Balance(ANN, YES, 5, 4), Balance(BOB, YES, 5, 5)])
        await record_allowances(
            tx, [Allowance(ANN, EXCHANGE, is_collateral=True, units=8, block_number=5)]
        )
        assert await parts_of(balances_changed(tx, 4, 9)) == [[Balance(BOB, YES, 5, 5)]]
        assert await parts_of(balances_changed(tx, 5, 9)) == [[]]
        assert await load_allowances_changed(tx, 4) == [
            Allowance(ANN, EXCHANGE, is_collateral=True, units=8, block_number=5)
        ]
        assert await load_allowances_changed(tx, 5) == []


async def parts_of(parts: AsyncIterator[Part]) -> list[Part]:
    return [part async for part in parts]


@pytest.mark.parametrize("rows_max", [1, 2, 3, 4, 5, 9])
async def test_all_rows_come_in_parts_and_each_of_them_once(
    database: Database, rows_max: int
) -> None:
    held = [Balance(wallet, asset, 5, 4) for wallet in (ANN, BOB) for asset in (YES, NO)]
    allowed = [
        Allowance(wallet, EXCHANGE, is_collateral=is_collateral, units=8, block_number=5)
        for wallet in (ANN, BOB)
        for is_collateral in (True, False)
    ]
    async with database.writing() as tx:
        await record_balances(tx, held)
        await record_allowances(tx, allowed)
    async with database.reading() as tx:
        balance_parts = await parts_of(balances_changed(tx, BEFORE_ALL_BLOCKS, rows_max))
        allowance_parts = await parts_of(allowances_changed(tx, BEFORE_ALL_BLOCKS, rows_max))
    sizes = [len(part) for part in balance_parts]
    assert sizes == [rows_max] * (4 // rows_max) + [4 % rows_max] * (4 % rows_max > 0)
    assert sorted(row for part in balance_parts for row in part) == sorted(held)
    assert sorted(row for part in allowance_parts for row in part) == sorted(allowed)


async def test_allowances_of_collateral_and_of_tokens_are_separate(database: Database) -> None:
    collateral = Allowance(ANN, EXCHANGE, is_collateral=True, units=8, block_number=5)
    tokens = Allowance(ANN, EXCHANGE, is_collateral=False, units=2**63 - 1, block_number=5)
    async with database.writing() as tx:
        await record_allowances(tx, [collateral, tokens])
        assert await load_allowances(tx, [(ANN, EXCHANGE, False)]) == [tokens]
        assert await load_allowances(tx, [(ANN, EXCHANGE, True)]) == [collateral]


async def test_holders_are_sorted_by_size_without_those_who_sold(database: Database) -> None:
    ann, bob = Balance(ANN, YES, 5, 1), Balance(BOB, YES, 7, 1)
    sold = Balance(an_address("carol"), YES, 0, 1)
    async with database.writing() as tx:
        await record_balances(tx, [ann, bob, sold, Balance(ANN, COLLATERAL, 9, 1)])
        assert await load_holders(tx, [YES], units_min=0, limit=10) == {YES: [bob, ann]}
        assert await load_holders(tx, [YES], units_min=6, limit=10) == {YES: [bob]}
        assert await load_holders(tx, [YES, NO], units_min=0, limit=1) == {YES: [bob]}
        assert await load_holders(tx, [YES], units_min=0, limit=0) == {}


async def test_the_address_that_keeps_converted_tokens_is_no_holder(database: Database) -> None:
    """A page has as many holders as it may, although that address has the most."""
    ann, bob = Balance(ANN, NO, 5, 1), Balance(BOB, NO, 7, 1)
    async with database.writing() as tx:
        await record_balances(tx, [Balance(NO_TOKEN_BURN, NO, 9, 1), ann, bob])
        assert await load_holders(tx, [NO], units_min=1, limit=2) == {NO: [bob, ann]}


async def test_holders_of_the_same_size_are_sorted_by_address(database: Database) -> None:
    async with database.writing() as tx:
        held = [Balance(who, token, 5, 1) for who in (BOB, ANN) for token in (YES, NO)]
        await record_balances(tx, held)
        holders = await load_holders(tx, [YES, NO], units_min=0, limit=10)
        first = await load_holders(tx, [YES, NO], units_min=0, limit=1)
    for token in (YES, NO):
        assert [holder.wallet for holder in holders[token]] == [BOB, ANN]
        assert [holder.wallet for holder in first[token]] == [BOB]


async def test_locked_collateral_is_open_interest(database: Database) -> None:
    rain, snow = (
        LockedCollateral(a_word("rain"), 100, 1),
        LockedCollateral(a_word("snow"), 300, 2),
    )
    async with database.writing() as tx:
        await record_locked(tx, [rain, snow])
        assert await load_locked(tx, [rain.condition_id, a_word("sun")]) == [rain]
        assert await load_most_locked(tx, 5) == [snow, rain]
        assert await load_most_locked(tx, 1) == [snow]


@pytest.mark.parametrize(
    ("changes", "is_known"),
    [
        ([(5, 10)], True),
        ([(5, 1), (9, 40), (5, 60)], True),
        ([(4, 10)], False),
        ([(5, 11)], False),
        ([(0, 5), (5, 50)], False),
        ([(5, 5), (4, 10), (5, 11)], False),
        ([(5, 5), (0, 50), (5, 51)], False),
        ([(5, 5), (4, 50)], False),
        ([(4, 5), (5, 6)], True),
    ],
)
async def test_a_holder_has_held_something_after_each_block_since_one(
    database: Database, changes: list[tuple[int, int]], *, is_known: bool
) -> None:
    async with database.writing() as tx:
        for units, block in changes:
            await record_balances(tx, [Balance(ANN, COLLATERAL, units, block)])
        assert await is_holder(tx, [BOB, ANN], 5, 10) is is_known
        assert await is_holder(tx, [BOB], 5, 10) is False


@pytest.mark.parametrize(
    ("market", "payout", "known"),
    [
        ("nowhere", None, [False, False]),
        ("rain", None, [True, True]),
        ("rain", (1, 0), [True, False]),
        ("rain", (0, 1), [False, True]),
        ("rain", (1, 1), [True, True]),
    ],
)
async def test_tokens_that_are_worth_nothing_make_nobody_a_holder(
    database: Database, market: str, payout: tuple[int, int] | None, known: list[bool]
) -> None:
    """Anybody may prepare a condition, answer it, and keep the tokens that it pays nothing for."""
    tokens = [an_asset(is_yes=is_yes, market=market) for is_yes in (True, False)]
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        if payout is not None:
            await rows.resolve("rain", *payout)
        for wallet, token in zip((ANN, BOB), tokens, strict=True):
            await record_balances(tx, [Balance(wallet, token, 5, 1)])
        assert [await is_holder(tx, [wallet], 5) for wallet in (ANN, BOB)] == known
        assert await is_holder(tx, [ANN, BOB], 6) is False


@pytest.mark.parametrize(("looked_max", "is_known"), [(2, False), (3, True)])
async def test_of_many_tokens_the_first_ones_are_looked_at(
    database: Database, monkeypatch: pytest.MonkeyPatch, looked_max: int, *, is_known: bool
) -> None:
    monkeypatch.setattr(balances, "TOKENS_LOOKED_MAX", looked_max)
    token = an_asset(is_yes=True, market="rain")
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")
        sent = [Balance(ANN, AssetId(str(number)), 5, 1) for number in (1, 2)]
        await record_balances(tx, [*sent, Balance(ANN, token, 5, 1)])
        assert await is_holder(tx, [ANN], 5) is is_known
        await record_balances(tx, [Balance(ANN, COLLATERAL, 5, 2)])
        assert await is_holder(tx, [ANN], 5)


async def test_a_reorganization_undoes_what_was_held_less(database: Database) -> None:
    async with database.writing() as tx:
        await record_balances(tx, [Balance(ANN, COLLATERAL, 5, 1)])
        for units, block in ((0, 7), (5, 8)):
            await record_balances(tx, [Balance(ANN, COLLATERAL, units, block)])
        assert not await is_holder(tx, [ANN], 5, 3)
        await restore_states(tx, BALANCES, 6)
        assert await is_holder(tx, [ANN], 5, 3)
