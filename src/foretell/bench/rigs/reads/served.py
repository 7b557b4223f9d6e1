"""The applications that are measured, and requests to them without a socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from foretell.app.read_process.application import DearReadsApplication
from foretell.app.read_process.client import DearReads
from foretell.app.read_process.messages import BeginReads
from foretell.bench.rigs.reads.history import EXCHANGE, KEPT_UNITS, NOW_S
from foretell.bench.rigs.reads.public_trading import build_public_trading_app
from foretell.bench.rigs.reads.read_case import DATA, DISCOVERY, TRADING, ReadCase
from foretell.data.context import DataContext
from foretell.data.dear_reads import DEAR_READS as DATA_DEAR_READS
from foretell.data.owed_reader import OwedReader
from foretell.data.refusals import data_body
from foretell.data.routes import build_app as build_data_app
from foretell.data.solvency_books import SolvencyBooks
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.dear_reads import DEAR_READS as DISCOVERY_DEAR_READS
from foretell.discovery.refusals import discovery_body
from foretell.discovery.routes import build_app as build_discovery_app
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.telemetry import AsgiApp
from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits

BLOBS: Final = "https://blobs.example"
CLIENT: Final = "127.0.0.1"


@contextlib.asynccontextmanager
async def with_read_process(
    database: Database,
) -> AsyncIterator[tuple[Mapping[str, AsgiApp], DearReads]]:
    """Give the applications as an installation serves them, and the process of their dear reads."""
    begin = BeginReads(database.url, BLOBS, 0, PublicReadLimits().read_s)
    reads, apps = DearReads(begin, database.read_rests), read_apps(database)
    running = asyncio.create_task(reads.run())
    try:
        served = {
            DATA: DearReadsApplication(apps[DATA], DATA, DATA_DEAR_READS, reads, data_body),
            DISCOVERY: DearReadsApplication(
                apps[DISCOVERY], DISCOVERY, DISCOVERY_DEAR_READS, reads, discovery_body
            ),
            TRADING: apps[TRADING],
        }
        yield served, reads
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def now_ms() -> int:
    """Return the time at which the history ends."""
    return NOW_S * 1000


def read_apps(database: Database) -> dict[str, Any]:
    """Return the applications by API, without a chain."""
    return {
        DATA: build_data_app(_data_context(database)),
        DISCOVERY: build_discovery_app(DiscoveryContext(database, BLOBS)),
        TRADING: build_public_trading_app(database, BLOBS, now_ms),
    }


def _data_context(database: Database) -> DataContext:
    """Return a context without a chain: contracts that hold nothing, and an exchange that answers at once."""

    async def hold_nothing(_: Bytes32) -> BackingUnits:
        return BackingUnits(0)

    async def keep_some(_: Address, keys: Sequence[tuple[Address, AssetId]]) -> list[int]:
        return [KEPT_UNITS] * len(keys)

    solvency = SolvencyBooks(database, None, hold_nothing, now_ms)
    return DataContext(
        database, BLOBS, now_ms, solvency, OwedReader((Address(EXCHANGE),), keep_some)
    )


async def answered(app: Any, case: ReadCase) -> None:
    """Send a request to the application; anything but an answer ends the benchmark."""
    status = await request(app, case, CLIENT)
    if status != HTTPStatus.OK:
        raise BenchFailed(f"{case.path} answered {status}")


async def request(app: Any, case: ReadCase, client: str) -> int:
    """Send a request of a client to the application, and return the status of the answer."""
    sent: list[Any] = []
    is_sent, is_answered = asyncio.Event(), asyncio.Event()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": case.method,
        "scheme": "http",
        "path": case.path,
        "raw_path": case.path.encode(),
        "query_string": case.query.encode(),
        "root_path": "",
        "headers": [],
        "client": (client, 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        if is_sent.is_set():
            await is_answered.wait()
            return {"type": "http.disconnect"}
        is_sent.set()
        return {"type": "http.request", "body": case.body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            is_answered.set()

    await app(scope, receive, send)
    return int(sent[0]["status"])
