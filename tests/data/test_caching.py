"""Answers that caches may keep: tags of their content, and leaderboards that are kept for a moment."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.rigs.read_apis import BLOBS, Reader, a_data_context, keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, an_address

from foretell.data.recent_answers import (
    ANSWER_BYTES_MAX,
    KEY_CHARS_MAX,
    RANKINGS_KEPT_S,
    RecentAnswer,
    RecentAnswers,
)
from foretell.data.routes import build_app
from foretell.domain.errors.http import TooManyRequests
from foretell.store.database import Database
from foretell.store.public_reads.places import client_name

pytestmark = pytest.mark.anyio

ANN = an_address("ann")


@pytest.mark.parametrize("known", ["{tag}", "W/{tag}", '"0", {tag}', "*"])
async def test_a_client_that_has_the_answer_gets_no_body(reader: Reader, known: str) -> None:
    answer = await reader.http.get("/value", params={"user": ANN})
    tag = answer.headers["etag"]
    assert answer.headers["cache-control"] == "no-cache"
    again = await reader.http.get(
        "/value", params={"user": ANN}, headers={"if-none-match": known.format(tag=tag)}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag


@pytest.mark.parametrize("known", ['"0"', "", "W/", '"0", "1"'])
async def test_a_client_that_has_another_answer_gets_this_one(reader: Reader, known: str) -> None:
    answer = await reader.http.get("/value", params={"user": ANN}, headers={"if-none-match": known})
    assert (answer.status_code, answer.json()[0]["value"]) == (200, 0)


async def test_a_changed_answer_has_another_tag(reader: Reader, database: Database) -> None:
    before = (await reader.http.get("/value", params={"user": ANN})).headers["etag"]
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.prepare("rain")
        await rows.hold("ann", "rain", 5, 1)
    after = await reader.http.get("/value", params={"user": ANN}, headers={"if-none-match": before})
    assert after.status_code == 200
    assert after.headers["etag"] != before


async def test_a_refusal_has_no_tag(reader: Reader) -> None:
    answer = await reader.http.get("/value")
    assert answer.status_code == 400
    assert "etag" not in answer.headers


async def test_a_leaderboard_is_kept_for_its_time_and_no_longer(fresh_database: Database) -> None:
    now_s = [0.0]
    context = a_data_context(fresh_database, BLOBS, lambda: NOW_MS)
    context = dataclasses.replace(context, recent=RecentAnswers(5, lambda: now_s[0]))
    reader = Reader(build_app(context))
    assert await reader.get("/v1/leaderboard", timePeriod="ALL") == []
    async with fresh_database.writing() as tx:
        rows = Rows(tx)
        await rows.prepare("rain")
        await rows.buy("ann", "rain", 5, 5)
    await keep_rankings(fresh_database)
    now_s[0] = 3.9
    kept = await reader.http.get("/v1/leaderboard", params={"timePeriod": "ALL"})
    assert kept.json() == []
    assert kept.headers["cache-control"] == "public, max-age=1"
    now_s[0] = 4.9
    last = await reader.http.get("/v1/leaderboard", params={"timePeriod": "ALL"})
    assert (last.json(), last.headers["cache-control"]) == ([], "no-cache")
    assert len(await reader.get("/v1/leaderboard", timePeriod="ALL", limit="1")) == 1
    now_s[0] = 5.0
    assert len(await reader.get("/v1/leaderboard", timePeriod="ALL")) == 1


@pytest.mark.parametrize("path", ["/builders/leaderboard", "/builders/volume"])
async def test_volumes_of_builders_are_kept_as_leaderboards_are(
    fresh_database: Database, path: str
) -> None:
    context = a_data_context(fresh_database, BLOBS, lambda: NOW_MS)
    context = dataclasses.replace(context, recent=RecentAnswers(5, lambda: 0.0))
    answer = await Reader(build_app(context)).http.get(path)
    assert answer.headers["cache-control"] == "public, max-age=5"
    assert answer.headers["etag"]


class Computing:
    """A computation that waits, and counts how often it runs."""

    def __init__(self, content: bytes = b"[]") -> None:
        self.content = content
        self.count = 0
        self.may_end = asyncio.Event()

    async def run(self) -> bytes:
        self.count += 1
        await self.may_end.wait()
        return self.content


async def test_requests_at_the_same_time_share_one_computation_that_outlives_the_first() -> None:
    now_s, computing = [0.0], Computing()
    recent = RecentAnswers(5, lambda: now_s[0])
    waiting = [asyncio.create_task(recent.get("key", computing.run)) for _ in range(5)]
    for _ in range(2):  # the computation is a task of its own
        await asyncio.sleep(0)
    now_s[0] = 0.5
    waiting[0].cancel()
    computing.may_end.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == [RecentAnswer(b"[]", 4)] * 4
    assert computing.count == 1


async def test_an_answer_that_is_refused_for_one_client_is_computed_for_another() -> None:
    """A client whose reads wait in a long queue had everybody refused who asked for the same ranking."""
    recent, place = RecentAnswers(5), asyncio.Event()

    async def refused_late() -> bytes:
        await place.wait()
        raise TooManyRequests(10)

    async def at_once() -> bytes:
        return b"1"

    async def ask(client: str, compute: Callable[[], Awaitable[bytes]]) -> bytes:
        client_name.set(client)
        return (await recent.get("key", compute)).content

    flooding = asyncio.create_task(ask("one", refused_late))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await asyncio.create_task(ask("two", at_once)) == b"1"
    place.set()
    with pytest.raises(TooManyRequests):
        await flooding
    assert await asyncio.create_task(ask("three", refused_late)) == b"1"


async def test_what_is_kept_is_kept_as_the_page_says() -> None:
    """A9: the page promised one computation in 5 seconds for all clients, whatever they ask and however soon."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "data-api.md").read_text()
    said = " ".join(page.partition("## Caching")[2].partition("## ")[0].split())
    assert (
        f"kept for {RANKINGS_KEPT_S} seconds from its beginning, for all clients together" in said
    )
    assert "each other client has one of its own" in said
    assert f"An answer of more than {ANSWER_BYTES_MAX // 1024} KiB is not kept" in said
    assert f"longer than {KEY_CHARS_MAX} characters is computed for each request" in said
    recent, computing = RecentAnswers(RANKINGS_KEPT_S), Computing()

    async def ask(client: str, key: str) -> bytes:
        client_name.set(client)  # of its own task
        return (await recent.get(key, computing.run)).content

    asked = [
        asyncio.create_task(ask(client, key))
        for key in ("a" * KEY_CHARS_MAX, "b" * (KEY_CHARS_MAX + 1))
        for client in ("one", "one", "two")
    ]
    await asyncio.sleep(0.01)
    computing.may_end.set()
    await asyncio.gather(*asked)
    assert computing.count == 2 + 3
    await asyncio.create_task(ask("three", "a" * KEY_CHARS_MAX))
    assert computing.count == 2 + 3


async def test_a_failure_is_not_kept() -> None:
    recent, computing = RecentAnswers(5), Computing()

    async def fail() -> bytes:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await recent.get("key", fail)
    computing.may_end.set()
    assert (await recent.get("key", computing.run)).content == b"[]"


@pytest.mark.parametrize(
    ("key", "content"),
    [("k" * (KEY_CHARS_MAX + 1), b"[]"), ("key", b"0" * (ANSWER_BYTES_MAX + 1))],
)
async def test_what_is_too_large_is_not_kept(key: str, content: bytes) -> None:
    recent, computing = RecentAnswers(5), Computing(content)
    computing.may_end.set()
    assert [(await recent.get(key, computing.run)).content for _ in range(2)] == [content] * 2
    assert computing.count == 2
