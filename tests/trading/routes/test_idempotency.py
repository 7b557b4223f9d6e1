"""Requests that their client named with an idempotency key."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from tests.rigs.clock import Clock
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy

from foretell.creation.routes import build_app as build_creation
from foretell.domain.errors.exchange import EngineBusy
from foretell.domain.errors.http import IdempotencyKeyReused
from foretell.domain.errors.order import RequestTaken
from foretell.domain.errors.storage import StoreUnavailable, WritesBusy
from foretell.edge.documents.openapi import operations_of
from foretell.edge.signed_requests import (
    DROP_INTERVAL_MS,
    KEY_KEPT_MS,
    KEYED_ANSWER_BYTES_MAX,
    RequestBounds,
    SignedRequests,
    keyed_identity,
    signed_identity,
)
from foretell.relayer.routes import build_app as build_relayer
from foretell.store.database import Database
from foretell.store.public_reads.places import WaitBounds, answering
from foretell.store.signed_requests import RequestIdentity, count_keyed_requests
from foretell.store.tables import signed_requests
from foretell.store.write_places import SQLITE_PLACES, WritePlaces, watching_writes
from foretell.trading.refusals import trading_body
from foretell.trading.routes.app import build_app

pytestmark = pytest.mark.anyio

CHANGES_NOTHING = {
    "create_key",
    "validate",
    "get_books",
    "get_prices",
    "get_midpoints",
    "get_spreads",
    "get_last_trades_prices",
    "get_prices_histories",
    "get_orders_scoring",
    "find_orders",
    "find_volumes",
    "refuse_rfq",
    "refuse_rfq_cancel",
}
"""Operations that read, and one whose nonce already names its one set of credentials."""


async def send(
    trader: Trader, method: str, path: str, body: object = None, key: str = "k"
) -> httpx.Response:
    raw = b"" if body is None else json.dumps(body).encode()
    headers = trader.l2_headers(method, path, raw) | {"Idempotency-Key": key}
    trader.rig.clock.move(1000)
    return await trader.rig.client.request(method, path, content=raw, headers=headers)


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url) as database:
        yield database


class Deed:
    """Counts how often a request is carried out."""

    def __init__(self, outcome: object = "done", pause_s: float = 0.0) -> None:
        self.count = 0
        self.outcome = outcome
        self._pause_s = pause_s

    async def __call__(self) -> object:
        self.count += 1
        await asyncio.sleep(self._pause_s)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def named(
    key: str, content: str = "", client: str = "trading c", at_ms: int = 0
) -> RequestIdentity:
    return keyed_identity(client, key, content.encode(), at_ms or Clock().at_ms)


def a_process(database: Database, clock: Clock, **bounds: Any) -> SignedRequests:
    return SignedRequests(database, clock.now_ms, trading_body, RequestBounds(**bounds))


@pytest.mark.case("G-06")
async def test_an_order_with_a_key_is_placed_once_and_has_its_first_answer(
    alice: Trader, bob: Trader
) -> None:
    body = alice.body(a_buy("alice"))
    first = await send(alice, "POST", "/order", body)
    assert (first.status_code, first.json()["status"]) == (200, "live")
    await alice.send("DELETE", "/cancel-all")
    again = await send(alice, "POST", "/order", body)
    assert (again.status_code, again.content) == (200, first.content)
    other = await send(alice, "POST", "/order", alice.body(a_buy("alice", salt="2")))
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert (await send(bob, "POST", "/order", bob.body(a_buy("bob")))).status_code == 200


async def test_a_key_is_of_one_route(alice: Trader) -> None:
    assert (await send(alice, "DELETE", "/cancel-all")).status_code == 200
    answer = await send(alice, "POST", "/heartbeats", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")


async def test_a_cancel_with_a_key_cancels_nothing_that_came_later(alice: Trader) -> None:
    await alice.placed(a_buy("alice"))
    first = await send(alice, "DELETE", "/cancel-all")
    assert len(first.json()["canceled"]) == 1
    await alice.placed(a_buy("alice", salt="2"))
    assert (await send(alice, "DELETE", "/cancel-all")).json() == first.json()
    assert len((await alice.get("/data/orders"))["data"]) == 1


async def test_a_refusal_is_a_first_answer_too(alice: Trader) -> None:
    body = {"market": "", "asset_id": ""}
    answers = [await send(alice, "DELETE", "/cancel-market-orders", body) for _ in range(2)]
    assert [each.status_code for each in answers] == [400, 400]
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "ä"])
async def test_a_malformed_key_is_refused_and_nothing_is_done(alice: Trader, key: str) -> None:
    await alice.placed(a_buy("alice"))
    raw = b""
    headers = alice.l2_headers("DELETE", "/cancel-all", raw)
    named_so = [(name.encode(), value.encode()) for name, value in headers.items()]
    named_so.append((b"Idempotency-Key", key.encode("latin-1")))
    answer = await alice.rig.client.request("DELETE", "/cancel-all", headers=named_so)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_idempotency_key")
    assert len((await alice.get("/data/orders"))["data"]) == 1


@pytest.mark.case("G-06")
async def test_twins_sent_at_once_are_carried_out_once(fresh_database: Database) -> None:
    here, there = (a_process(fresh_database, Clock()) for _ in range(2))
    deed = Deed(pause_s=0.1)
    each = [process.answer(named("k"), deed) for process in (here, there, here, there)]
    assert len(set(await asyncio.gather(*each))) == 1
    assert deed.count == 1


@pytest.mark.case("G-06")
async def test_a_twin_with_another_body_is_refused_while_the_first_one_runs(
    fresh_database: Database,
) -> None:
    here, there = (a_process(fresh_database, Clock()) for _ in range(2))
    deed = Deed(pause_s=0.1)
    first = asyncio.create_task(here.answer(named("k"), deed))
    await asyncio.sleep(0.05)
    for process in (here, there):
        with pytest.raises(IdempotencyKeyReused):
            await process.answer(named("k", "another"), deed)
    await first
    assert deed.count == 1


@pytest.mark.case("G-06")
async def test_a_key_outlives_the_process_and_is_forgotten_after_a_day(
    fresh_database: Database,
) -> None:
    clock, deed = Clock(), Deed()
    await a_process(fresh_database, clock).answer(named("k"), deed)
    clock.at_ms += KEY_KEPT_MS - 1
    await a_process(fresh_database, clock).answer(named("k", at_ms=clock.at_ms), deed)
    assert deed.count == 1
    clock.at_ms += 2
    await a_process(fresh_database, clock).answer(named("k", at_ms=clock.at_ms), deed)
    assert deed.count == 2


async def test_a_request_that_had_no_effect_may_be_sent_again_with_its_key(
    fresh_database: Database,
) -> None:
    process, deed = a_process(fresh_database, Clock()), Deed(EngineBusy())
    with pytest.raises(EngineBusy):
        await process.answer(named("k"), deed)
    deed.outcome = "done"
    assert (await process.answer(named("k"), deed)).status == 200


class Writing:
    """Writes so many times before another client takes the place, and once after that."""

    def __init__(self, database: Database, written_before: int) -> None:
        self.written = 0
        self.is_place_free = False
        self._database = database
        self._written_before = written_before

    async def __call__(self) -> object:
        for _ in range(self._written_before):
            await self._write()
        async with contextlib.AsyncExitStack() as held:
            if not self.is_place_free:
                with answering("another client"), watching_writes():
                    await held.enter_async_context(self._database._writes.taken())
            await self._write()
        return "done"

    async def _write(self) -> None:
        async with self._database.writing() as tx:
            await tx.scalar(sa.select(sa.func.count()).select_from(signed_requests))
        self.written += 1


@pytest.fixture
def with_one_place(database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Return a database whose requests write one after the other, and wait for little time."""
    monkeypatch.setattr(database, "_writes", WritePlaces(SQLITE_PLACES, WaitBounds(wait_s=0.05)))
    return database


async def test_a_request_that_had_no_place_to_write_may_be_sent_again_with_its_key(
    with_one_place: Database,
) -> None:
    """A finding: its key was taken for a day, and nothing was done."""
    here, there = (a_process(with_one_place, Clock()) for _ in range(2))
    writing = Writing(with_one_place, written_before=0)
    with answering("client"):
        with pytest.raises(WritesBusy):
            await here.answer(named("k"), writing)
        assert writing.written == 0
        writing.is_place_free = True
        assert (await there.answer(named("k"), writing)).status == 200
        assert (await here.answer(named("k"), writing)).status == 200
    assert writing.written == 1


async def test_a_request_that_wrote_before_it_had_no_place_keeps_its_key(
    with_one_place: Database,
) -> None:
    process = a_process(with_one_place, Clock(), answer_wait_s=0.0)
    writing = Writing(with_one_place, written_before=1)
    with answering("client"):
        with pytest.raises(StoreUnavailable) as refusal:
            await process.answer(named("k"), writing)
        assert refusal.value.code == "store_unavailable"
        writing.is_place_free = True
        with pytest.raises(RequestTaken):
            await process.answer(named("k"), writing)
    assert writing.written == 1


async def test_a_signed_request_with_a_key_that_had_no_place_may_be_sent_again(
    with_one_place: Database,
) -> None:
    process = a_process(with_one_place, Clock())
    writing = Writing(with_one_place, written_before=0)

    async def act() -> object:
        return await process.answer(signed_identity("signature", Clock().at_ms // 1000), writing)

    with answering("client"):
        with pytest.raises(WritesBusy):
            await process.answer(named("k"), act)
        writing.is_place_free = True
        assert (await process.answer(named("k"), act)).status == 200
    assert writing.written == 1


async def test_the_keys_of_a_client_are_bounded_and_its_oldest_make_way(
    fresh_database: Database,
) -> None:
    clock, deed = Clock(), Deed()
    process = a_process(fresh_database, clock, keys_of_client_max=2)
    for key in ("a", "b", "c"):
        clock.at_ms += 1
        await process.answer(named(key, at_ms=clock.at_ms), deed)
    async with fresh_database.reading() as tx:
        assert await count_keyed_requests(tx, "trading") == 2
    fresh = a_process(fresh_database, clock)
    for key in ("c", "b"):
        await fresh.answer(named(key), deed)
    assert deed.count == 3
    await fresh.answer(named("a"), deed)
    assert deed.count == 4


async def test_beyond_the_bound_of_all_keys_the_client_with_most_gives_up_its_oldest(
    database: Database,
) -> None:
    """A finding: a few clients used up the keys of all, and everybody else was refused for a day."""
    clock, deed = Clock(), Deed()
    process = a_process(database, clock, keys_max=4)
    for client, keys in (("other", "k"), ("greedy", "abcde"), ("new", "k")):
        for key in keys:
            clock.at_ms += 1
            await process.answer(named(key, client=f"trading {client}", at_ms=clock.at_ms), deed)
    assert deed.count == 7
    async with database.reading() as tx:
        assert await count_keyed_requests(tx, "trading") == 4
    fresh = a_process(database, clock)
    for client, keys in (("other", "k"), ("greedy", "de"), ("new", "k")):
        for key in keys:
            await fresh.answer(named(key, client=f"trading {client}"), deed)
    assert deed.count == 7
    await fresh.answer(named("c", client="trading greedy"), deed)
    assert deed.count == 8


async def test_keys_of_one_api_use_up_none_of_another(database: Database) -> None:
    clock, deed = Clock(), Deed()
    await a_process(database, clock).answer(named("k"), deed)
    creation = a_process(database, clock, keys_max=2)
    for number in range(5):
        await creation.answer(named("k", client=f"creation {number}"), deed)
    async with database.reading() as tx:
        assert await count_keyed_requests(tx, "creation") == 2
    assert deed.count == 6
    await a_process(database, clock).answer(named("k"), deed)
    assert deed.count == 6


async def test_keys_that_another_process_took_count_at_the_bound(database: Database) -> None:
    clock, deed = Clock(), Deed()
    here, there = (a_process(database, clock, keys_max=3) for _ in range(2))
    for number in range(4):
        for process, name in ((here, "here"), (there, "there")):
            await process.answer(named("k", client=f"trading {name} {number}"), deed)
    clock.at_ms += DROP_INTERVAL_MS
    await here.answer(named("k", client="trading late"), deed)
    async with database.reading() as tx:
        assert await count_keyed_requests(tx, "trading") == 3


async def test_without_the_database_a_request_with_a_key_is_not_carried_out(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("none") / "missing"
    deed = Deed()
    async with Database(f"sqlite+aiosqlite:///{folder / 'foretell.db'}") as gone:
        with pytest.raises(StoreUnavailable):
            await a_process(gone, Clock()).answer(named("k"), deed)
    assert deed.count == 0


async def test_a_large_answer_is_not_kept(fresh_database: Database) -> None:
    process, deed = a_process(fresh_database, Clock()), Deed("x" * KEYED_ANSWER_BYTES_MAX)
    assert (await process.answer(named("k"), deed)).status == 200
    refused = await asyncio.gather(process.answer(named("k"), deed), return_exceptions=True)
    assert [getattr(each, "code", None) for each in refused] == ["request_taken"]
    assert deed.count == 1


@pytest.mark.case("G-06")
async def test_every_route_that_changes_something_takes_a_key(rig: TradingRig) -> None:
    apps = [build_app(rig.context)]
    apps += [build(object()) for build in (build_creation, build_relayer)]  # type: ignore[arg-type]
    changing = {
        operation.name: operation.described.is_keyed
        for app in apps
        for operation in operations_of(app)
        if operation.method not in {"GET", "HEAD"}
    }
    assert {name for name, is_keyed in changing.items() if not is_keyed} == CHANGES_NOTHING
