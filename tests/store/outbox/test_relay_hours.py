"""Sums of relay requests by the hour."""

import asyncio
import importlib
from typing import Any, Final

import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from tests.domain.relay.test_request import OWNER, a_request
from tests.rigs.values import an_address
from tests.store.queries.recorded_queries import recorded

from foretell.domain.relay.budgets import HOUR_MS, HourlyUse
from foretell.domain.relay.request import RelayRequest, RelayTrigger, moved_relay
from foretell.store.database import Database
from foretell.store.outbox.relay_hours import (
    EVERYBODY,
    load_all_hours,
    load_builder_hours,
    lock_budgets,
)
from foretell.store.outbox.relays import record_relay, record_relay_move
from foretell.store.tables import relay_hours

pytestmark = pytest.mark.anyio

BUILDER, OTHER = an_address("builder"), an_address("another builder")
HOUR: Final = 500_000
NOW_MS: Final = HOUR * HOUR_MS + 5
GAS: Final = a_request().gas


def numbered(number: int, **fields: Any) -> RelayRequest:
    fields = {"submitter": BUILDER, "created_at_ms": NOW_MS} | fields
    return a_request(transaction_id=f"request-{number}", safe_nonce=number, **fields)


async def record(database: Database, *requests: RelayRequest) -> None:
    async with database.writing() as tx:
        for request in requests:
            await record_relay(tx, request)


async def of_builder(database: Database) -> list[HourlyUse]:
    async with database.reading() as tx:
        return sorted(await load_builder_hours(tx, BUILDER, NOW_MS))


async def of_all(database: Database, *without: str) -> list[HourlyUse]:
    async with database.reading() as tx:
        return sorted(await load_all_hours(tx, [an_address(name) for name in without], NOW_MS))


async def test_an_account_has_what_it_submitted_for_others(database: Database) -> None:
    own = numbered(3, submitter=OWNER)
    await record(database, numbered(1), numbered(2, created_at_ms=NOW_MS - HOUR_MS), own)
    await record(database, numbered(4, submitter=OTHER))
    assert await of_builder(database) == [HourlyUse(HOUR - 1, 1, GAS), HourlyUse(HOUR, 1, GAS)]
    assert await of_all(database) == [HourlyUse(HOUR - 1, 1, GAS), HourlyUse(HOUR, 3, 3 * GAS)]
    assert await of_all(database, "builder", "nobody") == [
        HourlyUse(HOUR - 1, 0, 0),
        HourlyUse(HOUR, 2, 2 * GAS),
    ]


async def test_hours_of_the_day_before_do_not_count(database: Database) -> None:
    await record(database, numbered(1, created_at_ms=NOW_MS - 25 * HOUR_MS))
    await record(database, numbered(2, created_at_ms=NOW_MS - 24 * HOUR_MS))
    assert await of_builder(database) == [HourlyUse(HOUR - 24, 1, GAS)]
    assert await of_all(database) == [HourlyUse(HOUR - 24, 1, GAS)]


async def test_a_request_whose_nonce_is_taken_does_not_count(database: Database) -> None:
    await record(database, numbered(1), a_request(transaction_id="twin", safe_nonce=1))
    assert await of_all(database) == [HourlyUse(HOUR, 1, GAS)]


@pytest.mark.parametrize(("trigger", "count"), [(RelayTrigger.REFUSE, 0), (RelayTrigger.FAIL, 1)])
async def test_what_was_never_sent_is_taken_off_once(
    database: Database, trigger: RelayTrigger, count: int
) -> None:
    was = numbered(1)
    await record(database, was)
    now = moved_relay(was, trigger, NOW_MS + 3 * HOUR_MS, "why")
    for _ in range(2):
        async with database.writing() as tx:
            await record_relay_move(tx, was, now)
    assert await of_builder(database) == [HourlyUse(HOUR, count, count * GAS)]
    assert await of_all(database) == [HourlyUse(HOUR, count, count * GAS)]


async def test_requests_at_once_all_count(database: Database) -> None:
    await asyncio.gather(*(record(database, numbered(number)) for number in range(8)))
    assert await of_builder(database) == [HourlyUse(HOUR, 8, 8 * GAS)]


async def test_attack_l7_requests_at_once_are_checked_one_after_the_other(
    database: Database,
) -> None:
    async def record_while_there_is_room(number: int) -> None:
        async with database.writing() as tx:
            await lock_budgets(tx)
            hours = await load_all_hours(tx, [], NOW_MS)
            if sum(each.relays for each in hours) < 3:
                await record_relay(tx, numbered(number))

    await asyncio.gather(*map(record_while_there_is_room, range(8)))
    assert await of_all(database) == [HourlyUse(HOUR, 3, 3 * GAS)]


async def test_budgets_are_looked_up_by_the_key_among_many_rows(database: Database) -> None:
    """However many transactions an account submits, 25 sums are read of it."""
    rows = [
        (an_address(f"builder {account}"), HOUR - hour, 1, 5)
        for account in range(200)
        for hour in range(100)
    ]
    async with database.writing() as tx:
        await tx.insert_rows(relay_hours, rows)
        await tx.execute(sa.text("ANALYZE"))
    with recorded() as queries:
        assert len(await of_builder(database)) == 0
        await of_all(database, "builder 1", "builder 2")
    plans: list[str] = []

    def explain(connection: sa.Connection) -> None:
        plan = "EXPLAIN QUERY PLAN" if database.is_sqlite else "EXPLAIN"
        for sql, values in queries:
            rows = connection.exec_driver_sql(f"{plan} {sql}", values)
            plans.append(str(rows.all()).lower())

    await database.run_sync(explain)
    assert len(plans) == 2
    assert [each for each in plans if "index" not in each or "scan relay_hours" in each] == []
    assert [each for each in plans if "seq scan" in each] == []


async def test_the_migration_adds_up_the_requests_that_are_there(database: Database) -> None:
    was = numbered(1)
    await record(database, was, numbered(2), numbered(3, submitter=OWNER))
    async with database.writing() as tx:
        await record_relay_move(tx, was, moved_relay(was, RelayTrigger.REFUSE, NOW_MS, "why"))
    before = await of_builder(database), await of_all(database)
    migration = importlib.import_module("foretell.store.migrations.versions.v0031_relay_hours")

    def fill(connection: sa.Connection) -> None:
        connection.execute(relay_hours.delete())
        with Operations.context(MigrationContext.configure(connection)):
            migration.fill()

    await database.run_sync(fill)
    assert migration.EVERYBODY == EVERYBODY
    assert (await of_builder(database), await of_all(database)) == before
    assert before == ([HourlyUse(HOUR, 1, GAS)], [HourlyUse(HOUR, 2, 2 * GAS)])
