import asyncio

import pytest
from tests.domain.relay.test_request import OWNER, WALLET, a_request
from tests.rigs.values import an_address

from foretell.domain.relay.request import (
    DEAD,
    OPEN,
    RelayKind,
    RelayRequest,
    RelayState,
    RelayTrigger,
    moved_relay,
)
from foretell.store.database import Database
from foretell.store.outbox.relays import (
    load_claimed_nonces,
    load_open_relays,
    load_relay,
    load_relays_of,
    load_same_relay,
    record_relay,
    record_relay_move,
)

pytestmark = pytest.mark.anyio

DIGEST = a_request().digest


async def record(database: Database, request: RelayRequest) -> bool:
    async with database.writing() as tx:
        return await record_relay(tx, request)


async def move(database: Database, was: RelayRequest, trigger: RelayTrigger) -> RelayRequest:
    now = moved_relay(was, trigger, 2000, "why")
    async with database.writing() as tx:
        assert await record_relay_move(tx, was, now)
    return now


async def test_a_request_is_loaded_as_it_was_stored(database: Database) -> None:
    submitted = a_request(
        transaction_id="request-2",
        kind=RelayKind.SAFE_CREATE,
        safe_nonce=None,
        metadata="a label",
        submitter=an_address("builder"),
        calldata=b"",
    )
    for request in (a_request(), submitted):
        assert await record(database, request)
    async with database.reading() as tx:
        assert await load_relay(tx, "request-1") == a_request()
        assert await load_relay(tx, "request-2") == submitted
        assert await load_relay(tx, "request-3") is None


async def test_a_nonce_of_a_wallet_has_one_open_request(database: Database) -> None:
    assert await record(database, a_request())
    assert not await record(database, a_request(transaction_id="request-2"))
    assert await record(database, a_request(transaction_id="request-3", safe_nonce=8))
    other = an_address("another wallet")
    assert await record(database, a_request(transaction_id="request-4", wallet=other))


@pytest.mark.parametrize("trigger", [RelayTrigger.REFUSE, RelayTrigger.FAIL, RelayTrigger.CONFIRM])
async def test_an_ended_request_releases_its_nonce(
    database: Database, trigger: RelayTrigger
) -> None:
    await record(database, a_request())
    await move(database, a_request(), trigger)
    assert await record(database, a_request(transaction_id="request-2"))


async def test_of_two_concurrent_requests_one_gets_the_nonce(database: Database) -> None:
    requests = [a_request(transaction_id=f"request-{number}") for number in range(4)]
    taken = await asyncio.gather(*(record(database, request) for request in requests))
    assert sorted(taken) == [False, False, False, True]


async def test_a_move_is_stored_once(database: Database) -> None:
    await record(database, a_request())
    executed = await move(database, a_request(), RelayTrigger.EXECUTE)
    stale = moved_relay(a_request(), RelayTrigger.REFUSE, 3000, "too late")
    async with database.writing() as tx:
        assert not await record_relay_move(tx, a_request(), stale)
    async with database.reading() as tx:
        assert await load_relay(tx, "request-1") == executed


async def test_a_request_with_the_same_digest_is_found_unless_it_failed(
    database: Database,
) -> None:
    async def same() -> RelayRequest | None:
        async with database.reading() as tx:
            return await load_same_relay(tx, WALLET, DIGEST)

    assert await same() is None
    await record(database, a_request())
    refused = await move(database, a_request(), RelayTrigger.REFUSE)
    assert refused.state in DEAD
    assert await same() is None
    again = a_request(transaction_id="request-2")
    await record(database, again)
    assert await same() == again
    assert await same() == again
    confirmed = await move(database, again, RelayTrigger.CONFIRM)
    assert await same() == confirmed
    async with database.reading() as tx:
        assert await load_same_relay(tx, an_address("another wallet"), DIGEST) is None


async def test_nonces_are_claimed_by_open_and_by_confirmed_requests(
    database: Database,
) -> None:
    ends = [None, RelayTrigger.EXECUTE, RelayTrigger.CONFIRM, RelayTrigger.REFUSE]
    for nonce, trigger in enumerate(ends):
        request = a_request(transaction_id=f"request-{nonce}", safe_nonce=nonce)
        await record(database, request)
        await (move(database, request, trigger) if trigger else asyncio.sleep(0))
    await record(
        database, a_request(transaction_id="create", kind=RelayKind.SAFE_CREATE, safe_nonce=None)
    )
    async with database.reading() as tx:
        assert await load_claimed_nonces(tx, WALLET, 0) == {0, 1}
        assert await load_claimed_nonces(tx, WALLET, 0, is_open=False) == {0, 1, 2}
        assert await load_claimed_nonces(tx, WALLET, 1) == {1}
        assert await load_claimed_nonces(tx, an_address("another wallet"), 0) == set()


async def test_open_requests_are_sorted_by_age_and_nonce(
    database: Database,
) -> None:
    for name, nonce, at_ms in (("c", 2, 1000), ("b", 1, 1000), ("a", 5, 3000), ("d", 4, 500)):
        request = a_request(transaction_id=name, safe_nonce=nonce, created_at_ms=at_ms)
        await record(database, request)
    await move(database, a_request(transaction_id="d", safe_nonce=4), RelayTrigger.REFUSE)
    async with database.reading() as tx:
        found = await load_open_relays(tx, 10)
        assert [request.transaction_id for request in found] == ["b", "c", "a"]
        assert {request.state for request in found} <= OPEN
        assert [each.transaction_id for each in await load_open_relays(tx, 1)] == ["b"]
        for last, rest in enumerate((["c", "a"], ["a"], [])):
            later = await load_open_relays(tx, 10, found[last])
            assert [each.transaction_id for each in later] == rest


async def test_an_address_finds_what_it_signed_or_submitted_newest_first(
    database: Database,
) -> None:
    builder = an_address("builder")
    for number in range(4):
        submitter = (OWNER, builder)[number % 2]
        await record(
            database,
            a_request(
                transaction_id=f"request-{number}",
                safe_nonce=number,
                submitter=submitter,
                created_at_ms=1000 + number // 2,
            ),
        )
    async with database.reading() as tx:
        mine = await load_relays_of(tx, OWNER, 10)
        theirs = await load_relays_of(tx, builder, 10)
        newest = await load_relays_of(tx, OWNER, 1)
        nobodys = await load_relays_of(tx, an_address("nobody"), 10)
    assert [each.safe_nonce for each in mine] == [3, 2, 1, 0]
    assert [each.safe_nonce for each in theirs] == [3, 1]
    assert [each.safe_nonce for each in newest] == [3]
    assert nobodys == []


async def test_a_new_request_wakes_the_watches_on_requests(database: Database) -> None:
    watch = await database.watch("relays")
    await record(database, a_request())
    assert await watch.wait(5)
    await move(database, a_request(), RelayTrigger.EXECUTE)
    assert await watch.wait(5)
    assert not await record(database, a_request(transaction_id="request-2"))
    assert not await watch.wait(0.05)


async def test_every_state_is_stored_in_the_words_of_the_wire(database: Database) -> None:
    for number, state in enumerate(RelayState):
        request = a_request(transaction_id=state.value, safe_nonce=number, state=state)
        await record(database, request)
    async with database.reading() as tx:
        for state in RelayState:
            found = await load_relay(tx, state.value)
            assert found is not None
            assert found.state is state
