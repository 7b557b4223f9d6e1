"""Relay requests that were refused before they were sent: they leave little behind, and not for long."""

from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.domain.relay.test_request import OWNER, a_request
from tests.store.queries.recorded_queries import recorded

from foretell.domain.relay.budgets import DAY_MS
from foretell.domain.relay.request import RelayRequest, RelayState, RelayTrigger, moved_relay
from foretell.store.database import Database
from foretell.store.outbox.relays import (
    forget_refused_relays,
    load_relay,
    load_relay_gas,
    load_relay_time,
    record_relay,
    record_relay_move,
)
from foretell.store.tables import relay_requests

pytestmark = pytest.mark.anyio

CALLDATA: Final = bytes(64 * 1024)
NOW_MS: Final = 10 * DAY_MS
REFUSED: Final = 300


def numbered(number: int, **fields: Any) -> RelayRequest:
    fields = {"created_at_ms": NOW_MS, "calldata": CALLDATA} | fields
    return a_request(transaction_id=f"request-{number}", safe_nonce=number, **fields)


async def refuse(database: Database, *requests: RelayRequest) -> None:
    async with database.writing() as tx:
        for request in requests:
            await record_relay(tx, request)
            refused = moved_relay(request, RelayTrigger.REFUSE, request.created_at_ms, "it reverts")
            assert await record_relay_move(tx, request, refused)


async def stored(database: Database) -> tuple[int, int]:
    """Return how many requests there are, and the bytes of what they would send."""
    columns = relay_requests.c
    sizes = sa.func.length(columns.calldata) + sa.func.length(columns.signature)
    async with database.reading() as tx:
        row = await tx.first(
            sa.select(sa.func.count().label("requests"), sa.func.sum(sizes).label("bytes"))
        )
    assert row is not None
    return int(row.requests), int(row.bytes)


async def test_guard_refused_requests_keep_neither_calldata_nor_signature(
    database: Database,
) -> None:
    await refuse(database, *map(numbered, range(20)))
    assert await stored(database) == (20, 20 * 2 * len("0x"))
    async with database.reading() as tx:
        kept = await load_relay(tx, "request-1")
    assert kept is not None
    assert (kept.state, kept.failure) == (RelayState.INVALID, "it reverts")
    assert (kept.calldata, kept.signature) == (b"", b"")


async def test_guard_refused_requests_are_forgotten_in_parts(database: Database) -> None:
    sent = numbered(REFUSED, created_at_ms=NOW_MS - 1)
    await refuse(database, *[numbered(each, created_at_ms=NOW_MS - 1) for each in range(REFUSED)])
    await refuse(database, numbered(REFUSED + 1))
    async with database.writing() as tx:
        await record_relay(tx, sent)
    parts = []
    for _ in range(3):
        async with database.writing() as tx:
            parts.append(await forget_refused_relays(tx, NOW_MS, 200))
    assert parts == [200, REFUSED - 200, 0]
    assert (await stored(database))[0] == 2
    async with database.reading() as tx:
        assert await load_relay(tx, sent.transaction_id) == sent


async def test_guard_budgets_read_no_refused_request(database: Database) -> None:
    """A finding: each check of a budget read all refused requests of the owner, with their calldata."""
    await refuse(database, *map(numbered, range(5)))
    async with database.writing() as tx:
        for number in range(5, 8):
            await record_relay(tx, numbered(number, created_at_ms=NOW_MS + number))
        await tx.execute(sa.text("ANALYZE"))
    with recorded() as queries:
        async with database.reading() as tx:
            assert await load_relay_time(tx, OWNER, 2, NOW_MS) == NOW_MS + 6
            assert await load_relay_time(tx, OWNER, 2, NOW_MS + 6) is None
            assert await load_relay_gas(tx, OWNER, NOW_MS) == 3 * numbered(0).gas
    plans: list[str] = []

    def explain(connection: sa.Connection) -> None:
        if not database.is_sqlite:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        plan = "EXPLAIN QUERY PLAN" if database.is_sqlite else "EXPLAIN"
        for sql, values in queries:
            rows = connection.exec_driver_sql(f"{plan} {sql}", values)
            plans.append(" ".join(str(row) for row in rows))

    await database.run_sync(explain)
    assert len(plans) == 3
    index = "ix_relay_requests_counted"
    wanted = f"COVERING INDEX {index}" if database.is_sqlite else index
    assert [each for each in plans if wanted not in each] == []
