"""Bounds of the API keys that one address, and one client, creates."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.rigs.trading import MASTER_KEY, Trader, TradingRig, a_rig
from tests.rigs.values import CHAIN_ID, an_address

from foretell.domain.values.credentials import KeyIndex
from foretell.store.trading.api_keys import record_key
from foretell.trading.accounts.new_keys import NEW_KEYS
from foretell.trading.handlers.keys import API_KEYS_EVER_MAX

pytestmark = pytest.mark.anyio

CREATE, DERIVE, LIST = "/auth/api-key", "/auth/derive-api-key", "/auth/api-keys"


def refusal(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()["code"]


async def create(trader: Trader, nonce: int) -> httpx.Response:
    return await trader.rig.client.post(CREATE, headers=trader.l1_headers(nonce))


async def derive(trader: Trader, nonce: int) -> httpx.Response:
    return await trader.rig.client.get(DERIVE, headers=trader.l1_headers(nonce))


async def with_keys(rig: TradingRig, count: int) -> Trader:
    """Return alice, who has so many keys, with that of nonce 0."""
    async with rig.context.database.writing() as tx:
        for nonce in range(count):
            index = KeyIndex(CHAIN_ID, an_address("alice"), nonce)
            key_id = rig.context.key_ring.credentials(index).key_id
            await record_key(tx, key_id, index, rig.clock.at_ms + nonce)
    return await rig.trader("alice")


@pytest.mark.case("C-15")
async def test_attack_g5_one_key_more_than_an_address_may_create_is_refused(
    rig: TradingRig,
) -> None:
    """One wallet could store any number, and each request for a key loaded all of them."""
    alice = await with_keys(rig, API_KEYS_EVER_MAX - 1)
    last = await create(alice, API_KEYS_EVER_MAX)
    more = await create(alice, API_KEYS_EVER_MAX + 1)
    assert last.status_code == 200
    assert refusal(more) == (409, "too_many_api_keys")
    assert "at most 1000 API keys" in more.json()["message"]
    assert (await create(await rig.trader("bob"), 1)).status_code == 200


async def test_an_address_with_all_its_keys_gets_those_again_and_again(rig: TradingRig) -> None:
    alice = await with_keys(rig, API_KEYS_EVER_MAX)
    for nonce in (0, API_KEYS_EVER_MAX - 1, 0):
        created, derived = await create(alice, nonce), await derive(alice, nonce)
        assert created.status_code == derived.status_code == 200
        assert created.json() == derived.json()
    listed = await alice.get(LIST)
    assert len(set(listed)) == API_KEYS_EVER_MAX
    assert listed[0] == alice.key_id


async def test_a_revoked_key_counts_among_those_that_an_address_created(rig: TradingRig) -> None:
    alice = await with_keys(rig, API_KEYS_EVER_MAX)
    other = await rig.trader("alice", nonce=1)
    assert (await alice.send("DELETE", CREATE)).status_code == 200
    rig.clock.move(1_000)
    assert refusal(await create(alice, 0)) == (409, "too_many_api_keys")
    assert (await other.send("GET", "/data/orders")).status_code == 200


async def test_an_address_with_all_its_keys_replaces_those_of_a_former_master_key(
    tmp_path: Path, database_file: Path
) -> None:
    async with a_rig(tmp_path / "journal", database_file) as rig:
        old = await with_keys(rig, API_KEYS_EVER_MAX)
    other = bytes(reversed(MASTER_KEY))
    async with a_rig(tmp_path / "journal", database_file, master_key=other) as rig:
        old.rig = rig
        new = await create(old, 0)
        assert new.status_code == 200
        assert new.json()["apiKey"] != old.key_id
        rig.clock.move(1_000)
        assert refusal(await create(old, API_KEYS_EVER_MAX)) == (409, "too_many_api_keys")


@pytest.mark.case("C-15")
async def test_attack_g5_a_client_beyond_its_keys_of_a_minute_is_refused_new_ones_alone(
    rig: TradingRig,
) -> None:
    """Addresses cost nothing, so a bound for each of them is none for who makes them."""
    created = [await create(Trader(rig, f"one of {n}"), 0) for n in range(NEW_KEYS.requests)]
    refused = await create(Trader(rig, "one more"), 0)
    assert {answer.status_code for answer in created} == {200}
    assert refusal(refused) == (429, "too_many_requests")
    assert 0 < int(refused.headers["retry-after"]) <= NEW_KEYS.window_ms // 1000
    assert refusal(await derive(Trader(rig, "one more"), 0)) == (400, "no_such_credentials")

    again = await create(Trader(rig, "one of 0"), 0)
    assert again.json() == created[0].json()
    transport = httpx.ASGITransport(rig.app, client=("192.0.2.9", 1))  # type: ignore[arg-type]  # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://clob.test") as another:
        headers = Trader(rig, "one more").l1_headers()
        assert (await another.post(CREATE, headers=headers)).status_code == 200
