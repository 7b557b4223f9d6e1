"""Exports: complete, in the order of their cursors, and resumable after any row."""

import asyncio
import csv
import io
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.indexer.rig import IndexerRig
from tests.reconciliation.conftest import deep_sandbox, fresh_sandbox, market  # noqa: F401 - fixtures
from tests.reconciliation.history import EventActs, RandomHistory
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import NOW_MS, an_address

from foretell.data.export_forms import INTEGERS, ROWS_PER_GROUP, TEXTS
from foretell.data.export_rests import REST_PER_WORK, REST_S_MAX, ExportRests
from foretell.data.exports import KINDS, ROWS_AT_ONCE, ROWS_PER_PART, ROWS_PER_READ, begin_export
from foretell.data.routes import build_app
from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy, ReadTooSlow
from foretell.edge.query import Query
from foretell.store.database import Database
from foretell.store.public_reads.places import ReadPlaces, WaitBounds, client_name
from foretell.store.tables import position_changes

pytestmark = pytest.mark.anyio

ANN: Final = an_address("ann")
EXPORT_S: Final = 3.0
"""Long enough for the first rows on a machine that is busy with other things."""
FIGURES: Final = ("size", "initialValue", "totalBought", "totalBoughtUsdc", "realizedPnl")


def a_reader(database: Database) -> Reader:
    return Reader(an_app(build_app, a_data_context(database, BLOBS, lambda: NOW_MS)))


async def lines(reader: Reader, kind: str, **parameters: str) -> list[Any]:
    """Return the rows of an export as lines of JSON, exact."""
    answer = await reader.http.get(f"/export/{kind}.jsonl", params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/jsonl"
    return [json.loads(line, parse_float=Decimal) for line in answer.text.splitlines()]


async def resumed(reader: Reader, kind: str, limit: int, wallet: str) -> list[Any]:
    """Return all rows, a few with each request, each of which goes on after the last row."""
    rows: list[Any] = []
    asked = {"user": wallet, "limit": str(limit)}
    while part := await lines(reader, kind, **asked):
        rows += part
        asked["after"] = part[-1]["cursor"]
    return rows


async def parquet(reader: Reader, kind: str, **parameters: str) -> pa.Table:
    """Return an export in Parquet."""
    answer = await reader.http.get(f"/export/{kind}.parquet", params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    return pq.read_table(io.BytesIO(answer.content))


async def parquet_by_parts(reader: Reader, kind: str, wallet: str) -> list[Any]:
    """Return all rows of files of a few, each of which goes on after the one before."""
    rows: list[Any] = []
    asked = {"user": wallet, "limit": "3"}
    while part := (await parquet(reader, kind, **asked)).to_pylist():
        rows += part
        asked["after"] = part[-1]["cursor"]
    return rows


async def test_exports_of_a_random_history_have_every_row_once_and_add_up(
    fresh_sandbox: Sandbox,  # noqa: F811 - the fixture
    market: tuple[IndexerRig, EventActs],  # noqa: F811 - the fixture
    fresh_database: Database,
) -> None:
    history = RandomHistory(fresh_sandbox, *market, fresh_database, 1)
    await history.play(30)
    reader, wallet = a_reader(fresh_database), fresh_sandbox.trader(0).address
    exported = {kind: await lines(reader, kind, user=wallet) for kind in KINDS}
    for kind, rows in exported.items():
        assert len(rows) > 3
        assert await resumed(reader, kind, 3, wallet) == rows
        answer = await reader.http.get(f"/export/{kind}.csv", params={"user": wallet})
        table = list(csv.reader(io.StringIO(answer.text)))
        assert table[0] == list(rows[0])
        assert [[Decimal(cell) for cell in row[-2:]] for row in table[1:]] == [
            list(row.values())[-2:] for row in rows
        ]
        columns = await parquet(reader, kind, user=wallet)
        assert columns.to_pylist() == rows
        assert await parquet_by_parts(reader, kind, wallet) == rows
    trades = await reader.get("/trades", user=wallet, takerOnly="false", limit="500")
    assert sorted(str(trade["usdcSize"]) for trade in trades) == sorted(
        str(float(row["usdcSize"])).removesuffix(".0") for row in exported["trades"]
    )
    for position in exported["positions"]:
        changes = [row for row in exported["ledger"] if row["asset"] == position["asset"]]
        for name in FIGURES:
            assert sum(row[name] for row in changes) == position[name]


async def test_a_file_in_parquet_has_types_groups_and_every_row(fresh_database: Database) -> None:
    count = 2 * ROWS_PER_GROUP + ROWS_PER_PART + 7
    await write_changes(fresh_database, count)
    reader = a_reader(fresh_database)
    answer = await reader.http.get(
        "/export/ledger.parquet", params={"user": ANN, "limit": str(count)}
    )
    file = pq.ParquetFile(io.BytesIO(answer.content))
    assert file.num_row_groups == 3
    assert file.read().column("block").to_pylist() == list(range(count))
    types = {field.name: str(field.type) for field in file.schema_arrow}
    assert types["cursor"] == "string"
    assert (types["block"], types["size"]) == ("int64", "decimal128(38, 6)")
    assert (await parquet(reader, "trades", user=ANN)).num_rows == 0


def test_the_columns_of_every_export_have_a_type() -> None:
    columns = {name for kind in KINDS.values() for name in kind.columns}
    assert columns - TEXTS - INTEGERS == {*FIGURES, "usdcSize", "fee"}


async def test_a_server_without_pyarrow_says_what_is_missing(
    fresh_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    seen, body = await a_reader(fresh_database).refused("/export/trades.parquet", user=ANN)
    assert (seen, body["error"].partition(":")[0]) == (403, "not_served")
    assert "make parquet" in body["error"]


async def write_changes(database: Database, count: int) -> None:
    """Write changes of one position, one in each block."""
    rows = [
        ("0x" + ANN[2:], "7", "0xc", *([number] * 5), number, number) for number in range(count)
    ]
    async with database.writing() as tx:
        await tx.insert_rows(position_changes, rows)


@pytest.mark.parametrize(
    "count", [0, 1, ROWS_PER_PART, ROWS_PER_PART + 1, ROWS_PER_READ, 2 * ROWS_PER_READ + 7]
)
async def test_an_export_of_several_parts_has_every_row(
    fresh_database: Database, count: int
) -> None:
    await write_changes(fresh_database, count)
    rows = await lines(a_reader(fresh_database), "ledger", user=ANN)
    assert [row["block"] for row in rows] == list(range(count))
    assert len(await lines(a_reader(fresh_database), "ledger", user=ANN, limit="1001")) == min(
        count, 1001
    )


async def test_an_export_that_the_database_stops_goes_on_after_its_last_row(
    fresh_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_changes(fresh_database, 2 * ROWS_PER_READ)
    reader, kind, parts = a_reader(fresh_database), KINDS["ledger"], [0]

    async def fail_second(*arguments: Any) -> Any:
        parts[0] += 1
        if parts[0] == 2:
            raise ReadTooSlow(5.0)
        return await kind.load(*arguments)

    slow = type(kind)(fail_second, kind.show, kind.key, kind.begin, kind.columns)
    monkeypatch.setattr("foretell.data.exports.KINDS", {"ledger": slow})
    rows = await lines(reader, "ledger", user=ANN)
    assert len(rows) == ROWS_PER_READ
    rows += await lines(reader, "ledger", user=ANN, after=rows[-1]["cursor"])
    assert [row["block"] for row in rows] == list(range(2 * ROWS_PER_READ))
    parts[0] = 0
    assert (await parquet(reader, "ledger", user=ANN)).to_pylist() == rows[:ROWS_PER_READ]


async def test_exports_that_are_being_sent_are_bounded_for_a_client_and_give_their_places_back(
    fresh_database: Database,
) -> None:
    """Clients that read nothing would fill the memory with parts."""
    await write_changes(fresh_database, ROWS_PER_PART + 1)
    context = a_data_context(fresh_database, BLOBS, lambda: NOW_MS)
    context = replace(context, exports=ReadPlaces(3, 2, WaitBounds(wait_s=0.05)))

    async def begin(client: str) -> AsyncIterator[bytes]:
        before = client_name.set(client)
        try:
            return (await begin_export(context, Query([("user", ANN)]), "ledger.csv")).parts
        finally:
            client_name.reset(before)

    stalled, unread = await begin("one"), await begin("one")
    await anext(stalled)
    with pytest.raises(TooManyRequests):
        await begin("one")
    other = await begin("two")
    with pytest.raises(ReadsBusy):
        await begin("three")
    assert len([part async for part in other]) == 3
    del unread
    again = await begin("one")
    with pytest.raises(TooManyRequests):
        await begin("one")
    del stalled, again


@pytest.mark.parametrize("exports", [1, 3])
async def test_exports_rest_together_for_longer_than_they_work(
    fresh_database: Database, monkeypatch: pytest.MonkeyPatch, exports: int
) -> None:
    """All reads of others waited for an export that rendered rows without a pause."""
    await write_changes(fresh_database, 4 * ROWS_AT_ONCE)
    context = a_data_context(fresh_database, BLOBS, lambda: NOW_MS)
    kind, work_s, busy_s = KINDS["ledger"], 0.0001, [0.0]

    def show_slowly(row: Any) -> Any:
        time.sleep(work_s)
        busy_s[0] += work_s
        return kind.show(row)

    slow = type(kind)(kind.load, show_slowly, kind.key, kind.begin, kind.columns)
    monkeypatch.setattr("foretell.data.exports.KINDS", {"ledger": slow})

    async def send(client: str) -> int:
        client_name.set(client)  # of its own task
        export = await begin_export(context, Query([("user", ANN)]), "ledger.jsonl")
        return len([part async for part in export.parts])

    began_s = time.monotonic()
    sent = await asyncio.gather(*(send(str(number)) for number in range(exports)))
    assert sent == [4 * ROWS_AT_ONCE // ROWS_PER_PART] * exports
    most = 0.6  # the first rows have no rest, and an export that ends before the others rests with them no more
    assert time.monotonic() - began_s > REST_PER_WORK * most * busy_s[0]


async def test_the_rests_of_exports_follow_each_other_and_are_bounded() -> None:
    rests, began_s = ExportRests(), time.monotonic()
    ended_s: list[float] = []

    async def rest(worked_s: float) -> None:
        await rests.rest(worked_s)
        ended_s.append(time.monotonic() - began_s)

    least_s = REST_S_MAX / 2
    await asyncio.gather(*(rest(each_s / REST_PER_WORK) for each_s in (least_s, least_s, 60.0)))
    wanted_s = [least_s, 2 * least_s, 2 * least_s + REST_S_MAX]
    share = 0.8  # a loop's clock stands still while it works, so a rest may end a little early
    assert all(passed > share * wanted for passed, wanted in zip(ended_s, wanted_s, strict=True))
    assert ended_s[-1] < 60.0


async def test_an_export_ends_with_its_time_and_its_client_goes_on(
    fresh_database: Database,
) -> None:
    await write_changes(fresh_database, 2 * ROWS_PER_PART)
    context = replace(a_data_context(fresh_database, BLOBS, lambda: NOW_MS), export_s=EXPORT_S)
    export = await begin_export(context, Query([("user", ANN)]), "ledger.jsonl")
    first = await anext(export.parts)
    await asyncio.sleep(EXPORT_S)
    assert [part async for part in export.parts] == []
    cursor = json.loads(first.splitlines()[-1])["cursor"]
    rows = await lines(a_reader(fresh_database), "ledger", user=ANN, after=cursor)
    assert [row["block"] for row in rows] == list(range(ROWS_PER_PART, 2 * ROWS_PER_PART))


@pytest.mark.parametrize(
    ("file", "parameters", "status", "code"),
    [
        ("trades.parquet", {"user": ANN, "after": "1-2"}, 400, "invalid_field"),
        ("trades.xml", {"user": ANN}, 404, "not_found"),
        ("orders.csv", {"user": ANN}, 404, "not_found"),
        ("trades", {"user": ANN}, 404, "not_found"),
        ("trades.csv", {}, 400, "missing_field"),
        ("trades.csv", {"user": ANN, "limit": "50001"}, 400, "invalid_field"),
        ("trades.csv", {"user": ANN, "after": "1-2"}, 400, "invalid_field"),
        ("trades.csv", {"user": ANN, "after": "1-2-x"}, 400, "invalid_field"),
        ("trades.csv", {"user": ANN, "after": f"1-2-{2**63}"}, 400, "invalid_field"),
        ("positions.csv", {"user": ANN, "after": "9" * 129}, 400, "invalid_field"),
    ],
)
async def test_what_cannot_be_exported_is_refused_before_the_first_byte(
    fresh_database: Database, file: str, parameters: dict[str, str], status: int, code: str
) -> None:
    seen, body = await a_reader(fresh_database).refused(f"/export/{file}", **parameters)
    assert (seen, body["error"].partition(":")[0]) == (status, code)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("form", "media_type"),
    [
        ("csv", "text/csv; charset=utf-8"),
        ("jsonl", "application/jsonl"),
        ("parquet", "application/vnd.apache.parquet"),
    ],
)
async def test_an_export_names_its_media_type_and_a_text_its_charset_once(
    fresh_database: Database, kind: str, form: str, media_type: str
) -> None:
    answer = await a_reader(fresh_database).http.get(f"/export/{kind}.{form}", params={"user": ANN})
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
