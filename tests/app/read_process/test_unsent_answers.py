"""Answers to dear reads whose clients do not read them: bounded in bytes, and given up before others are refused."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from tests.app.read_process.test_read_process import ALL_TRADES, LIMITS, SOON_S, a_rig

from foretell.app.read_process.client import DearReadLimits
from foretell.app.read_process.unsent_answers import UnsentAnswers
from foretell.domain.errors.http import TooManyRequests
from foretell.edge.codec import PLACE
from foretell.store.database import Database

REFERENCE: Final = Path(__file__).parents[3] / "docs" / "reference"

Parts = Iterator[tuple[bytes, bool]]


class Sendings:
    """Answers that are being sent, each with parts of so many bytes, and the names of those that were given up."""

    def __init__(self, client_bytes_max: int, bytes_max: int) -> None:
        self.unsent = UnsentAnswers(client_bytes_max, bytes_max)
        self.stack = ExitStack()
        self.closed: list[str] = []

    def begin(self, client: str, name: str, *sizes: int) -> Parts:
        parts = deque(bytes(size) for size in sizes)
        sending = self.unsent.sending(client, parts, lambda: self.closed.append(name))
        return self.stack.enter_context(sending)


def test_parts_are_held_until_they_are_sent() -> None:
    sendings = Sendings(100, 100)
    parts = sendings.begin("a", "first", 4, 5)
    assert sendings.unsent.bytes_held == 9
    assert next(parts) == (bytes(4), True)
    assert sendings.unsent.bytes_held == 9
    assert next(parts) == (bytes(5), False)
    assert sendings.unsent.bytes_held == 5
    sendings.stack.close()
    assert sendings.unsent.bytes_held == 0
    assert sendings.closed == []


def test_a_client_with_unread_answers_gets_no_other_one_until_it_reads() -> None:
    sendings = Sendings(9, 100)
    parts = sendings.begin("a", "first", 4, 5)
    with pytest.raises(TooManyRequests):
        sendings.unsent.check("a")
    sendings.unsent.check("b")
    next(parts)
    next(parts)
    sendings.unsent.check("a")


def test_beyond_the_bytes_of_all_the_client_with_most_of_them_loses_its_oldest_answer() -> None:
    sendings = Sendings(100, 20)
    sendings.begin("a", "small", 6)
    heavy = sendings.begin("b", "heavy", 4, 4)
    next(heavy)
    sendings.begin("b", "heavy, too", 2)
    sendings.begin("c", "last", 5)
    assert sendings.closed == ["heavy"]
    assert sendings.unsent.bytes_held == 13
    assert list(heavy) == []
    sendings.stack.close()
    assert sendings.unsent.bytes_held == 0


def test_an_answer_larger_than_all_bytes_is_given_up_itself() -> None:
    sendings = Sendings(100, 20)
    assert list(sendings.begin("a", "large", 21)) == []
    assert sendings.closed == ["large"]


def test_the_bounds_are_those_of_the_page() -> None:
    page = " ".join((REFERENCE / "rate-limits.md").read_text().split())
    of_client, of_all = (
        each // 2**20
        for each in (DearReadLimits().unsent_bytes_per_client, DearReadLimits().unsent_bytes)
    )
    assert f"are kept, {of_all} MiB of all clients" in page
    assert f"has not read {of_client} MiB of its own" in page


class StalledClient:
    """A client that reads nothing of its answer, and its connection."""

    def __init__(self) -> None:
        self.has_begun, self.reads_on = asyncio.Event(), asyncio.Event()
        self.parts: list[bytes] = []
        self.holder = self

    def close_now(self) -> None:
        self.reads_on.set()

    async def send(self, sent: Any) -> None:
        if sent["type"] == "http.response.body":
            self.parts.append(sent["body"])
            self.has_begun.set()
            await self.reads_on.wait()

    def scope(self, address: str) -> dict[str, Any]:
        path, _, query = ALL_TRADES.partition("?")
        asked = {"path": path, "raw_path": path.encode(), "query_string": query.encode()}
        known = {"headers": [], "client": (address, 1), PLACE: self}
        return {"type": "http", "method": "GET", "root_path": "", **asked, **known}


async def no_body() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


@pytest.mark.anyio
async def test_guard_dear_answers_that_nobody_reads_do_not_pile_up(
    fresh_database: Database,
) -> None:
    """A finding: connections that read nothing had any number of answers kept in the serving process."""
    limits = LIMITS._replace(unsent_bytes_per_client=1)
    async with a_rig(fresh_database.url, limits) as rig, asyncio.timeout(SOON_S):
        app, stalled = rig.application, StalledClient()
        asking = asyncio.create_task(app(stalled.scope("10.0.0.1"), no_body, stalled.send))
        await stalled.has_begun.wait()
        held = rig.reads.unsent.bytes_held
        refused = await rig.served["data"].get(ALL_TRADES)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        whole = await rig.stranger.get(ALL_TRADES)
        assert len(whole.content) == held

        rig.reads.unsent = UnsentAnswers(2 * held, held)
        first, second = StalledClient(), StalledClient()
        tasks = []
        for client, address in ((first, "10.0.0.1"), (second, "10.0.0.2")):
            scope = client.scope(address)
            tasks.append(asyncio.create_task(app(scope, no_body, client.send)))
            await client.has_begun.wait()
        await tasks[0]
        assert len(first.parts) == 1
        for client in (stalled, second):
            client.reads_on.set()
        await asyncio.gather(asking, *tasks)
        assert b"".join(second.parts) == b"".join(stalled.parts) == whole.content
        assert rig.reads.unsent.bytes_held == 0
