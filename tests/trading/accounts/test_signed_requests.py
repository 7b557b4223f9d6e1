import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.clock import Clock
from tests.rigs.trading import Headers, Trader, TradingRig
from tests.rigs.values import NOW_S, a_buy, a_sell, a_word

from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.exchange import EngineBusy
from foretell.domain.errors.families import ForetellError, Unavailable
from foretell.domain.errors.order import NothingNamed, RequestTaken
from foretell.domain.errors.relayer import NotSentYet
from foretell.edge.signed_requests import (
    ANSWER_BYTES_MAX,
    RequestBounds,
    SignedRequests,
    keyed_identity,
    signed_identity,
)
from foretell.store.database import Database
from foretell.store.signed_requests import (
    RequestIdentity,
    StoredAnswer,
    drop_expired_requests,
    take_request,
)
from foretell.trading.refusals import trading_body

pytestmark = pytest.mark.anyio

MARKET = str(a_word("market"))


class Lost(Unavailable):
    """The outcome is unknown."""

    definite = False


class Deed:
    """Counts how often a request is carried out."""

    def __init__(self, *outcomes: object, pause_s: float = 0.0) -> None:
        self.count = 0
        self._outcomes = outcomes or ({"done": True},)
        self._pause_s = pause_s

    async def __call__(self) -> object:
        self.count += 1
        await asyncio.sleep(self._pause_s)
        outcome = self._outcomes[min(self.count, len(self._outcomes)) - 1]
        if isinstance(outcome, ForetellError):
            raise outcome
        return outcome


def signed(signature: str, at_s: int = NOW_S) -> RequestIdentity:
    return signed_identity(signature, at_s)


def processes(database: Database, clock: Clock, **options: Any) -> list[SignedRequests]:
    """Return what two processes on one database have."""
    bounds = RequestBounds(**options)
    return [SignedRequests(database, clock.now_ms, trading_body, bounds) for _ in range(2)]


class Asking:
    """Asks a node that is silent, before it writes or after, and once more when that answers."""

    def __init__(self, database: Database, *, writes_before: bool) -> None:
        self.is_silent = True
        self._database = database
        self._writes_before = writes_before

    async def __call__(self) -> object:
        if self._writes_before:
            async with self._database.writing():
                pass
        if self.is_silent:
            raise ChainUnavailable("eth_call", "no answer")
        return "done"


def named(key: str) -> RequestIdentity:
    return keyed_identity("client", key, b"", NOW_S * 1000)


async def test_guard_a_key_outlives_a_silent_node_before_any_write(
    fresh_database: Database,
) -> None:
    """A finding: the key of a request was used up for a day, and nothing had been done."""
    here, there = processes(fresh_database, Clock())
    asking = Asking(fresh_database, writes_before=False)
    with pytest.raises(ChainUnavailable):
        await here.answer(named("k"), asking)
    asking.is_silent = False
    assert (await there.answer(named("k"), asking)).status == 200


async def test_a_key_whose_request_wrote_before_a_silent_node_is_used_up(
    fresh_database: Database,
) -> None:
    here, _ = processes(fresh_database, Clock(), answer_wait_s=0.0)
    asking = Asking(fresh_database, writes_before=True)
    with pytest.raises(ChainUnavailable):
        await here.answer(named("k"), asking)
    asking.is_silent = False
    with pytest.raises(RequestTaken):
        await here.answer(named("k"), asking)


async def test_guard_a_request_that_goes_on_may_be_sent_again_with_its_key(
    fresh_database: Database,
) -> None:
    """A finding: a wallet's transaction that waited for an earlier one had no answer with its key again."""
    here, _ = processes(fresh_database, Clock(), answer_wait_s=0.0)
    deed = Deed(NotSentYet("a request", 60.0), {"done": True})
    with pytest.raises(NotSentYet):
        await here.answer(named("k"), deed)
    assert (await here.answer(named("k"), deed)).status == 200


@pytest.mark.case("C-10", "G-06")
async def test_a_request_is_carried_out_once_in_all_processes(fresh_database: Database) -> None:
    here, there = processes(fresh_database, Clock())
    deed = Deed()
    answers = [await each.answer(signed("s"), deed) for each in (here, here, there)]
    assert answers == [StoredAnswer(200, '{"done":true}')] * 3
    assert deed.count == 1
    assert (await here.answer(signed("another"), deed)).status == 200
    assert deed.count == 2


@pytest.mark.case("G-06")
async def test_requests_sent_at_once_are_carried_out_once(fresh_database: Database) -> None:
    here, there = processes(fresh_database, Clock())
    deed = Deed(pause_s=0.2)
    each = [process.answer(signed("s"), deed) for process in (here, there, here, there)]
    assert len(set(await asyncio.gather(*each))) == 1
    assert deed.count == 1


async def test_a_refusal_is_a_first_answer_too(fresh_database: Database) -> None:
    here, there = processes(fresh_database, Clock())
    deed = Deed(NothingNamed())
    answers = [await each.answer(signed("s"), deed) for each in (here, there)]
    assert (answers[0].status, answers[0]) == (400, answers[1])
    assert deed.count == 1


async def test_a_request_that_had_no_effect_may_be_sent_again(fresh_database: Database) -> None:
    here, there = processes(fresh_database, Clock())
    deed = Deed(EngineBusy(), {"done": True})
    with pytest.raises(EngineBusy):
        await here.answer(signed("s"), deed)
    assert (await there.answer(signed("s"), deed)).status == 200


@pytest.mark.case("G-06")
@pytest.mark.parametrize("outcome", [Lost("?"), "x" * ANSWER_BYTES_MAX])
async def test_a_request_whose_answer_is_not_known_is_not_carried_out_again(
    fresh_database: Database, outcome: object
) -> None:
    here, there = processes(fresh_database, Clock(), answer_wait_s=0.1)
    deed = Deed(outcome)
    await asyncio.gather(here.answer(signed("s"), deed), return_exceptions=True)
    for process in (here, there):
        with pytest.raises(RequestTaken):
            await process.answer(signed("s"), deed)
    assert deed.count == 1


async def test_a_caller_that_goes_away_does_not_end_the_work(fresh_database: Database) -> None:
    here, there = processes(fresh_database, Clock())
    deed = Deed(pause_s=0.2)
    caller = asyncio.create_task(here.answer(signed("s"), deed))
    await asyncio.sleep(0.1)
    caller.cancel()
    assert (await there.answer(signed("s"), deed)).status == 200
    assert deed.count == 1


async def test_without_the_database_a_process_remembers_its_own_requests(tmp_path: Path) -> None:
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'none' / 'foretell.db'}") as gone:
        here, _ = processes(gone, Clock())
        deed = Deed()
        assert await here.answer(signed("s"), deed) == await here.answer(signed("s"), deed)
    assert deed.count == 1


async def test_stored_requests_are_bounded_and_forgotten_when_their_signatures_expire(
    fresh_database: Database,
) -> None:
    clock = Clock()
    async with fresh_database.writing() as tx:
        for number in range(3):
            await take_request(tx, signed(f"old {number}"))
    here, there = processes(fresh_database, clock, stored_max=3)
    deed = Deed()
    assert await here.answer(signed("s"), deed) == await here.answer(signed("s"), deed)
    assert deed.count == 1
    async with fresh_database.writing() as tx:
        assert await drop_expired_requests(tx, clock.at_ms) == 3
    clock.at_ms = signed("s").expires_at_ms + 1
    await there.answer(signed("t", clock.at_ms // 1000), deed)
    async with fresh_database.writing() as tx:
        assert await drop_expired_requests(tx, clock.at_ms) == 1


@pytest.mark.case("C-09", "J-01")
async def test_a_clock_that_is_set_back_carries_out_no_request_again(
    fresh_database: Database,
) -> None:
    """Its record was dropped when its signature expired, and the clock then made it acceptable again."""
    clock = Clock()
    here, there = processes(fresh_database, clock)
    deed = Deed()
    await here.answer(signed("s"), deed)
    clock.at_ms = signed("s").expires_at_ms + 1
    await there.answer(signed("t", clock.at_ms // 1000), deed)
    clock.move(-200_000)
    later = processes(fresh_database, clock)[0]
    for process in (there, later):
        with pytest.raises(RequestTaken):
            await process.answer(signed("s"), deed)
    assert deed.count == 2
    assert (await there.answer(signed("u", clock.at_ms // 1000), deed)).status == 200
    assert deed.count == 3


async def send(trader: Trader, method: str, path: str, body: bytes, headers: Headers) -> Any:
    response = await trader.rig.client.request(method, path, content=body, headers=headers)
    return response.status_code, response.json()


@pytest.mark.deviation(4)
@pytest.mark.case("C-10")
@pytest.mark.spec(115)
@pytest.mark.parametrize("path", ["/cancel-all", "/cancel-market-orders"])
async def test_a_cancel_by_filter_sent_again_has_no_second_effect(
    rig: TradingRig, alice: Trader, path: str
) -> None:
    first = (await alice.placed(a_buy("alice", price_ticks=40)))["orderID"]
    body = b"" if path == "/cancel-all" else b'{"market":"' + MARKET.encode() + b'"}'
    headers = alice.l2_headers("DELETE", path, body)
    canceled = await send(alice, "DELETE", path, body, headers)
    later = (await alice.placed(a_sell("alice", price_ticks=60)))["orderID"]
    rig.clock.move(299_000)
    spelled = {name: value.rstrip("=") for name, value in headers.items()}

    assert canceled == (200, {"canceled": [first], "not_canceled": {}})
    for again in (headers, spelled):
        assert await send(alice, "DELETE", path, body, again) == canceled
    assert set(rig.host.engine.state.live_orders) == {later}


@pytest.mark.case("C-10")
async def test_a_revocation_sent_again_gets_the_first_answer(
    rig: TradingRig, alice: Trader
) -> None:
    other = await rig.trader("alice", nonce=1)
    headers = alice.l2_headers("DELETE", "/auth/api-key")
    first = await send(alice, "DELETE", f"/auth/api-key?apiKey={alice.key_id}", b"", headers)
    again = await send(alice, "DELETE", f"/auth/api-key?apiKey={alice.key_id}", b"", headers)
    elsewhere = await send(alice, "DELETE", "/cancel-all", b"", headers)

    assert first == again == (200, {"revoked": True})
    assert elsewhere[0] == 401
    assert await other.get("/auth/api-keys") == [other.key_id]


@pytest.mark.parametrize("is_own_first", [True, False])
async def test_a_revocation_sent_again_for_another_key_is_not_called_done(
    rig: TradingRig, alice: Trader, *, is_own_first: bool
) -> None:
    """A finding: two revocations in one second got `revoked`, and the second had revoked nothing."""
    one, two = await rig.trader("alice", nonce=1), await rig.trader("alice", nonce=2)
    named = alice if is_own_first else one
    headers = alice.l2_headers("DELETE", "/auth/api-key")
    first = await send(alice, "DELETE", f"/auth/api-key?apiKey={named.key_id}", b"", headers)
    status, body = await send(alice, "DELETE", f"/auth/api-key?apiKey={two.key_id}", b"", headers)

    assert first == (200, {"revoked": True})
    assert (status, body["code"]) == (409, "request_taken")
    assert two.key_id in await two.get("/auth/api-keys")


@pytest.mark.parametrize("is_own_first", [True, False])
async def test_a_revocation_sent_again_does_not_disclose_whether_a_key_exists(
    rig: TradingRig, alice: Trader, bob: Trader, *, is_own_first: bool
) -> None:
    """A finding: an unknown key was called revoked, and another's active key was not."""
    gone = await rig.trader("bob", nonce=1)
    await bob.send("DELETE", "/auth/api-key", query={"apiKey": gone.key_id})
    one = await rig.trader("alice", nonce=1)
    named = alice if is_own_first else one
    headers = alice.l2_headers("DELETE", "/auth/api-key")
    await send(alice, "DELETE", f"/auth/api-key?apiKey={named.key_id}", b"", headers)
    answers = [
        await send(alice, "DELETE", f"/auth/api-key?apiKey={key_id}", b"", headers)
        for key_id in (str(uuid.UUID(int=7)), "x", gone.key_id, bob.key_id)
    ]

    assert answers == [answers[0]] * 4
    assert (answers[0][0], answers[0][1]["code"]) == (409, "request_taken")


@pytest.mark.case("C-10")
async def test_a_heartbeat_sent_again_gets_the_first_answer(alice: Trader) -> None:
    headers = alice.l2_headers("POST", "/heartbeats", b"{}")
    first = await send(alice, "POST", "/heartbeats", b"{}", headers)
    alice.rig.clock.move(5_000)
    assert await send(alice, "POST", "/heartbeats", b"{}", headers) == first
    assert first[0] == 200
