import pytest
from tests.rigs.values import a_word, an_address

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Payout
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Database
from foretell.store.index.conditions import (
    Condition,
    PayoutReport,
    load_conditions,
    load_conditions_of_tokens,
    load_payouts,
    record_conditions,
    record_payouts,
)

pytestmark = pytest.mark.anyio

ORACLE = an_address("oracle")


def a_condition(name: str, block_number: int, yes: str, no: str) -> Condition:
    question = a_word(f"question {name}")
    return Condition(block_number, 0, 0, a_word(name), ORACLE, question, AssetId(yes), AssetId(no))


RAIN = a_condition("rain", 4, "1", "2")
SNOW = a_condition("snow", 5, "3", "4")
REPORT = PayoutReport(6, 1, 0, a_word("rain"), 1, 0, a_word("tx"), 1000)


async def test_conditions_are_found_by_id(database: Database) -> None:
    async with database.writing() as tx:
        await record_conditions(tx, [RAIN, SNOW])
        assert await load_conditions(tx, [SNOW.condition_id, a_word("sun")]) == [SNOW]
        assert await load_conditions(tx, []) == []


async def test_conditions_are_found_by_either_token_each_once(database: Database) -> None:
    async with database.writing() as tx:
        await record_conditions(tx, [RAIN, SNOW])
        found = await load_conditions_of_tokens(tx, [AssetId("1"), AssetId("2"), AssetId("4")])
    assert sorted(found) == [RAIN, SNOW]


async def test_a_condition_without_payout_is_unresolved(database: Database) -> None:
    async with database.writing() as tx:
        await record_conditions(tx, [RAIN, SNOW])
        await record_payouts(tx, [REPORT])
        assert await load_payouts(tx, [RAIN.condition_id, SNOW.condition_id]) == [REPORT]
    assert REPORT.payout == Payout(1, 0)


async def test_recording_nothing_changes_nothing(database: Database) -> None:
    async with database.writing() as tx:
        await record_conditions(tx, [])
        await record_payouts(tx, [])
        assert await load_payouts(tx, [RAIN.condition_id]) == []


async def test_more_ids_than_fit_a_statement_are_loaded_in_parts(database: Database) -> None:
    many = [
        Condition(
            1,
            index,
            0,
            Bytes32(f"0x{index:064x}"),
            Address(ORACLE),
            Bytes32(f"0x{index:064x}"),
            AssetId(str(2 * index)),
            AssetId(str(2 * index + 1)),
        )
        for index in range(1, 1201)
    ]
    async with database.writing() as tx:
        await record_conditions(tx, many)
        found = await load_conditions(tx, [condition.condition_id for condition in many])
    assert sorted(found) == many
