"""The process that answers dear reads.

Argument: the number of a socket that it inherits. It answers requests with the applications of the data and discovery
APIs, and yields the processor to the serving process. It ends when the other end of the socket closes.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, Never

import structlog
from typing_extensions import override

from foretell.app.clock_and_ids import now_ms
from foretell.app.framed_process import ServingConnection, run_framed
from foretell.app.read_process.messages import (
    AnswerHead,
    BeginReads,
    Read,
    decode_to_reads,
    message,
    parts_of,
)
from foretell.app.roles import Role
from foretell.data import routes as data_routes
from foretell.data.context import DataContext
from foretell.data.owed_reader import OwedReader
from foretell.data.recent_answers import RANKINGS_KEPT_S, RecentAnswers
from foretell.data.solvency_books import SolvencyBooks
from foretell.discovery import routes as discovery_routes
from foretell.discovery.context import DiscoveryContext
from foretell.domain.errors.chain import ChainUnavailable
from foretell.edge.telemetry import AsgiApp
from foretell.runtime.garbage_collection import collect_when_idle
from foretell.runtime.loops import run_together
from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits

NICENESS: Final = 10
"""How much this process yields to others once it has started, by the scale of the system."""
BEGIN_DEADLINE_S: Final = 60.0

log = structlog.get_logger(__name__)


class ReadConnection(ServingConnection):
    """The connection to the serving process, and the reads that run."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: asyncio.Future[BeginReads] = asyncio.get_running_loop().create_future()
        self._reads: asyncio.Queue[Read] = asyncio.Queue()

    @override
    async def run(self) -> None:
        """Answer reads until cancelled."""
        await run_together([self._answer_all, collect_when_idle])

    @override
    def take(self, message: bytes) -> None:
        received = decode_to_reads(message)
        if isinstance(received, BeginReads):
            self._begun.set_result(received)
        else:
            self._reads.put_nowait(received)

    async def _answer_all(self) -> None:
        """Answer each read in a task of its own; the serving process bounds how many there are."""
        async with asyncio.timeout(BEGIN_DEADLINE_S):
            begin = await self._begun
        async with Database(begin.url, PublicReadLimits(read_s=begin.read_s)) as database:
            apps = _apps(database, begin)
            if begin.yields_after_s:
                asyncio.get_running_loop().call_later(begin.yields_after_s, yield_processor)
            else:
                yield_processor()
            async with asyncio.TaskGroup() as group:
                while True:
                    read = await self._reads.get()
                    group.create_task(_answer(self, apps[read.api], read))


def yield_processor() -> None:
    """Run where others leave time: a process that is only nice delays one that wakes up beside it by milliseconds.

    A system may have no such class, and a container's filter of system calls may refuse it: the process works as well.
    """
    try:
        os.nice(NICENESS)
        if sys.platform == "linux":
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError as error:
        log.warning(
            "process of dear reads runs beside the others, not where they leave time",
            cause=str(error),
        )


async def _answer(connection: ReadConnection, app: AsgiApp, read: Read) -> None:
    body: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(sent: Any) -> None:
        if sent["type"] == "http.response.start":
            connection.send(message(AnswerHead(read.number, sent["status"], sent["headers"])))
        else:
            body.append(sent.get("body", b""))

    await app(_scope(read), receive, send)
    for part in parts_of(read.number, b"".join(body)):
        connection.send(message(part))
        await asyncio.sleep(0)


def _scope(read: Read) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": read.path,
        "raw_path": read.path.encode(),
        "query_string": read.query,
        "root_path": "",
        "headers": [(b"if-none-match", read.known)] if read.known else [],
        "client": (read.client, 0),
        "server": None,
    }


def _apps(database: Database, begin: BeginReads) -> Mapping[str, AsgiApp]:
    """Return the applications; no dear read asks the chain."""

    async def refuse(*_: object) -> Never:
        raise ChainUnavailable("eth_call", "this process does not use the chain")

    solvency = SolvencyBooks(database, None, refuse, now_ms)
    recent = RecentAnswers(RANKINGS_KEPT_S)
    data = DataContext(
        database, begin.blob_base_url, now_ms, solvency, OwedReader((), refuse), recent
    )
    discovery = DiscoveryContext(database, begin.blob_base_url, sports_delay_s=begin.sports_delay_s)
    return {
        Role.DATA: data_routes.build_app(data),
        Role.DISCOVERY: discovery_routes.build_app(discovery),
    }


if __name__ == "__main__":
    run_framed(ReadConnection)
