"""Builders' keys: what makes them, what they may, and what ends them."""

import logging
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.orders.builders import PATH, Builder, a_builder_of
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy

from foretell.trading.handlers.builder_keys import BUILDER_KEYS_MAX

pytestmark = pytest.mark.anyio


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("prefix", ["SERVICE_", "POLY_", "KUEST_"])
async def test_a_builder_s_key_signs_with_the_headers_of_every_spelling(
    alice: Trader, prefix: str
) -> None:
    builder = await a_builder_of(alice, prefix)
    assert (await builder.send("GET", "/builder/trades")).status_code == 200
    assert (await builder.send("DELETE", PATH)).json() == "OK"


async def test_a_list_shows_the_keys_without_their_secrets(alice: Trader, bob: Trader) -> None:
    made = [await a_named_builder(alice, name) for name in ("one", "two")]
    listed = await alice.get(PATH)
    assert [set(each) for each in listed] == [{"key", "createdAt", "revokedAt"}] * 2
    assert {each["key"] for each in listed} == {each.key for each in made}
    assert await bob.get(PATH) == []


async def test_a_creation_sent_again_makes_one_key(alice: Trader, bob: Trader) -> None:
    """The clock stands still, so that the signature is the same."""
    first, again = await a_builder_of(alice), await a_builder_of(alice)
    assert (first.key, first.secret) == (again.key, again.secret)
    assert (await a_builder_of(bob)).key != first.key


async def test_a_deleted_key_is_never_made_again(alice: Trader) -> None:
    builder = await a_builder_of(alice)
    assert (await builder.send("DELETE", PATH)).json() == "OK"
    assert refusal(await alice.send("POST", PATH)) == (409, "request_taken")
    assert refusal(await builder.send("GET", "/builder/trades")) == (401, "revoked_key")
    assert await alice.get(PATH) == []


async def test_an_address_deletes_a_key_whose_secret_is_lost(alice: Trader, bob: Trader) -> None:
    builder = await a_builder_of(alice)
    query = {"key": builder.key}
    assert refusal(await bob.send("DELETE", PATH, query=query)) == (404, "key_not_owned")
    assert (await alice.send("DELETE", PATH, query=query)).json() == "OK"
    assert refusal(await builder.send("GET", "/builder/trades")) == (401, "revoked_key")


async def test_a_deletion_that_names_no_key_deletes_the_newest_once(
    rig: TradingRig, alice: Trader
) -> None:
    """The same request again has no second effect, whatever it names then: the query is not signed."""
    older = await a_named_builder(alice, "one")
    rig.clock.at_ms += 1_000
    newer = await a_named_builder(alice, "two")
    for _ in range(2):
        assert (await alice.send("DELETE", PATH)).json() == "OK"
    assert [each["key"] for each in await alice.get(PATH)] == [older.key]
    again = await alice.send("DELETE", PATH, query={"key": older.key})
    assert refusal(again) == (409, "request_taken")
    assert refusal(await newer.send("GET", "/builder/trades")) == (401, "revoked_key")
    rig.clock.at_ms += 1_000
    assert (await alice.send("DELETE", PATH)).json() == "OK"
    rig.clock.at_ms += 1_000
    assert refusal(await alice.send("DELETE", PATH)) == (404, "key_not_owned")


async def test_a_builder_s_headers_delete_no_key_but_their_own(alice: Trader) -> None:
    """The query is not signed: one who sees the headers could name every key with them."""
    kept = await a_named_builder(alice, "one")
    calling = await a_named_builder(alice, "two")
    answer = await calling.send("DELETE", PATH, key=kept.key)
    assert refusal(answer) == (404, "key_not_owned")
    assert (await calling.send("DELETE", PATH, key=calling.key)).json() == "OK"
    assert [each["key"] for each in await alice.get(PATH)] == [kept.key]


async def test_a_deletion_that_was_carried_out_has_no_second_effect_as_a_builder_s(
    rig: TradingRig, alice: Trader
) -> None:
    """The owner's headers are valid under the names of a builder's, too."""
    kept = await a_named_builder(alice, "one")
    rig.clock.at_ms += 1_000
    await a_named_builder(alice, "two")
    sent = alice.l2_headers("DELETE", PATH, b"")
    assert (await rig.client.request("DELETE", PATH, headers=sent)).json() == "OK"
    renamed = {
        name.replace("SERVICE_", "SERVICE_BUILDER_"): value
        for name, value in sent.items()
        if not name.endswith("ADDRESS")
    }
    again = await rig.client.request("DELETE", PATH, headers=renamed, params={"key": kept.key})
    assert refusal(again) == (404, "key_not_owned")
    assert [each["key"] for each in await alice.get(PATH)] == [kept.key]


async def test_a_builder_s_key_is_no_api_key(alice: Trader) -> None:
    """It neither trades nor cancels, and reads no balance and no other key."""
    builder = await a_builder_of(alice)
    await alice.placed(a_buy("alice"))
    alice.key_id, alice.secret = builder.key, builder.secret
    alice.passphrase = builder.passphrase
    for method, path in (
        ("POST", "/order"),
        ("DELETE", "/cancel-all"),
        ("GET", "/balance-allowance"),
        ("GET", "/data/orders"),
        ("GET", "/data/trades"),
        ("GET", "/auth/api-keys"),
        ("GET", PATH),
        ("POST", PATH),
    ):
        assert refusal(await alice.send(method, path)) == (401, "unknown_key")
        assert (await builder.send(method, path)).status_code == 401


async def test_the_builder_s_keys_of_an_address_are_bounded(rig: TradingRig, alice: Trader) -> None:
    for number in range(BUILDER_KEYS_MAX):
        await a_named_builder(alice, str(number))
    rig.client.headers["Idempotency-Key"] = "one-too-many"
    answer = await alice.send("POST", PATH)
    assert refusal(answer) == (409, "too_many_builder_keys")


async def test_no_table_and_no_log_holds_a_builder_s_secret(
    rig: TradingRig, alice: Trader, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    builder = await a_named_builder(alice, "one")
    await builder.bring(alice, a_buy("alice"), changed={"SIGNATURE": "x"})
    found: list[str] = []

    def read(connection: Any) -> None:
        tables = sa.inspect(connection).get_table_names()
        rows = [connection.execute(sa.text(f"SELECT * FROM {name}")).all() for name in tables]
        found.append(str(rows))

    await rig.context.database.run_sync(read)
    assert builder.key in found[0]
    for secret in (builder.secret, builder.passphrase):
        assert secret not in found[0]
        assert secret not in caplog.text


async def a_named_builder(owner: Trader, name: str) -> Builder:
    owner.rig.client.headers["Idempotency-Key"] = name
    try:
        return await a_builder_of(owner)
    finally:
        del owner.rig.client.headers["Idempotency-Key"]


@pytest.mark.parametrize("changed", ["API_KEY", "TIMESTAMP", "PASSPHRASE", "SIGNATURE"])
async def test_wrong_builder_s_headers_beside_right_ones_place_nothing(
    alice: Trader, changed: str
) -> None:
    builder = await a_builder_of(alice)
    answer = await builder.bring(alice, a_buy("alice"), changed={changed: "1"})
    assert refusal(answer) == (401, "builder_headers_refused")
    assert (await alice.get("/data/orders"))["data"] == []
