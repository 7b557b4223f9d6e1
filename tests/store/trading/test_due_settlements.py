"""Turns of takers whose trades wait for settlement, when more wait than it has places."""

import pytest
from tests.rigs.values import NOW_MS
from tests.store.trading.test_trades import a_row, a_settlement, record

from foretell.store.database import Database
from foretell.store.outbox.due_settlements import load_due_settlements
from foretell.store.outbox.settlements import load_settlement_outcomes, record_settlements

pytestmark = pytest.mark.anyio


async def due(database: Database, limit: int, batched_max: int = 0) -> list[int]:
    async with database.reading() as tx:
        found = await load_due_settlements(tx, NOW_MS, limit, batched_max=batched_max)
    return [int(each.trade_id.removeprefix("trade-")) for each in found]


async def test_h4_a_trade_waits_for_no_backlog_of_another_taker(database: Database) -> None:
    """Two wallets trade with each other faster than the chain settles; a third one trades once, last."""
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 61)])
    await record(database, a_row(61, "carol", "dora"))
    assert await due(database, 1) == [61]
    assert await due(database, 4) == [61, 1, 2, 3]
    assert await due(database, 4, 20) == [61, *range(1, 20)]
    assert await due(database, 62) == list(range(1, 62))


async def test_of_one_turn_those_come_first_whose_takers_have_the_fewest_waiting(
    database: Database,
) -> None:
    takers = ("alice", "alice", "bob", "alice", "bob", "carol", "carol", "carol", "carol", "dora")
    await record(
        database, *[a_row(number, taker, "erin") for number, taker in enumerate(takers, 1)]
    )
    assert await due(database, 9) == [10, 3, 1, 6, 5, 2, 7, 4, 8]
    assert await due(database, 4) == [10, 3, 1, 6]


async def test_trades_that_all_may_go_are_in_the_order_of_their_matches(database: Database) -> None:
    await record(database, *[a_row(each, taker) for each, taker in ((1, "alice"), (2, "bob"))])
    await record(database, a_row(3, "alice"))
    assert await due(database, 4) == [1, 2, 3]


async def test_h4_a_failed_trade_has_its_turn_beside_a_backlog_of_failed_ones(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 41)])
    await record(database, a_row(41, "carol", "dora"))
    async with database.writing() as tx:
        failed = [a_settlement(number, attempts=1) for number in range(1, 42)]
        await record_settlements(tx, failed)
    assert set(await due(database, 4)) == {41, 1, 2, 3}


async def test_h4_a_taker_with_many_failed_trades_waits_with_each_try_for_no_more_of_others(
    database: Database,
) -> None:
    """Single trades that fail again and again came first each time."""
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 21)])
    await record(database, *[a_row(number, f"taker {number}") for number in range(21, 31)])
    async with database.writing() as tx:
        tried = [
            a_settlement(number, attempts=1, retry_at_ms=NOW_MS - 2 * number)
            for number in range(1, 21)
        ]
        again = [
            a_settlement(number, attempts=1, retry_at_ms=NOW_MS - number)
            for number in range(21, 31)
        ]
        await record_settlements(tx, [*tried, *again])
    assert set(await due(database, 4)) == {20, 30, 29, 28}


async def test_retries_keep_their_places_before_new_trades_that_have_turns(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 41)])
    await record(database, *[a_row(number, "carol", "dora") for number in (41, 42)])
    async with database.writing() as tx:
        await record_settlements(tx, [a_settlement(41, attempts=1), a_settlement(42)])
    assert await due(database, 8) == [42, 41, *range(1, 7)]


async def test_no_trade_waits_without_end_for_the_single_trades_of_others(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in (1, 2)])
    singles = [a_row(number, f"taker {number}", "bob") for number in range(30, 40)]
    await record(database, *singles)
    assert (await due(database, 4))[0] == 1
    assert await due(database, 2, 20) == [1, *range(30, 40), 2]


async def test_turns_begin_where_more_wait_than_there_are_places(database: Database) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 6)])
    await record(database, a_row(6, "carol", "dora"))
    assert await due(database, 6, 200) == [1, 2, 3, 4, 5, 6]
    assert await due(database, 5, 200) == [6, 1, 2, 3, 4, 5]


async def test_a_trade_that_waits_for_an_earlier_one_is_shown_to_be_behind(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 6)])
    async with database.writing() as tx:
        await record_settlements(
            tx,
            [
                a_settlement(1),
                a_settlement(2, attempts=1, failure="reverted"),
                a_settlement(3, refusals=1),
                a_settlement(4, tx_id="settle:trade-4:1"),
            ],
        )
    async with database.reading() as tx:
        outcomes = await load_settlement_outcomes(tx, [f"trade-{number}" for number in range(1, 6)])
    assert {each.trade_id for each in outcomes if each.is_behind} == {"trade-1"}
