import re
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy

from foretell.trading.handlers.readonly_keys import READONLY_KEYS_MAX

pytestmark = pytest.mark.anyio

READS = ["/data/orders", "/data/trades", "/trades"]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
PATH = "/auth/readonly-api-key"


async def created(trader: Trader) -> str:
    answer = await trader.send("POST", PATH)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return str(answer.json()["apiKey"])


async def read(
    trader: Trader, key: str, path: str = "/data/orders", method: str = "GET", **named: str
) -> httpx.Response:
    """Send a request with a read-only key and nothing else."""
    headers = {"SERVICE_ADDRESS": trader.address, "SERVICE_READONLY_API_KEY": key} | named
    return await trader.rig.client.request(method, path, headers=headers)


async def is_valid(trader: Trader, key: str) -> bool:
    query = {"address": trader.address, "key": key}
    answer = await trader.rig.client.get("/auth/validate-readonly-api-key", params=query)
    return bool(answer.json()["valid"])


async def test_a_readonly_key_reads_orders_and_trades_of_its_address(
    alice: Trader, bob: Trader
) -> None:
    key = await created(alice)
    assert UUID.match(key)
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    await bob.placed(a_buy("bob"))
    for path in (*READS, f"/data/order/{order_id}"):
        assert (await read(alice, key, path)).json() == await alice.get(path)
    assert len((await read(alice, key)).json()["data"]) == 1


async def test_a_readonly_key_changes_nothing_and_reads_nothing_else(alice: Trader) -> None:
    key = await created(alice)
    await alice.placed(a_buy("alice"))
    for method, path in (
        ("DELETE", "/cancel-all"),
        ("POST", "/order"),
        ("DELETE", "/order"),
        ("POST", PATH),
        ("DELETE", "/auth/api-key"),
        ("GET", "/auth/api-keys"),
        ("GET", "/auth/readonly-api-keys"),
        ("GET", "/balance-allowance"),
    ):
        answer = await read(alice, key, path, method)
        assert (answer.status_code, answer.json()["code"]) == (401, "readonly_key_refused")
    assert len((await alice.get("/data/orders"))["data"]) == 1


async def test_a_readonly_key_is_of_its_address_alone(alice: Trader, bob: Trader) -> None:
    key = await created(alice)
    answer = await read(bob, key)
    assert (answer.status_code, answer.json()["code"]) == (401, "unknown_key")
    assert (await bob.send("DELETE", PATH, {"key": key})).status_code == 404
    assert [await is_valid(each, key) for each in (alice, bob)] == [True, False]


@pytest.mark.parametrize("key", ["", "x", "0" * 36, "0b0dbf1c-0000-4000-8000-000000000000"])
async def test_a_key_that_nobody_has_is_refused(alice: Trader, key: str) -> None:
    assert (await read(alice, key)).status_code == 401
    assert key == "" or not await is_valid(alice, key)


async def test_a_deleted_key_is_refused_at_once(alice: Trader) -> None:
    keys = [await created(alice) for _ in range(2)]
    assert await alice.get("/auth/readonly-api-keys") == keys
    assert [(await read(alice, key)).status_code for key in keys] == [200, 200]
    answer = await alice.send("DELETE", PATH, {"key": keys[0]})
    assert answer.json() == {"deleted": True}
    assert (await read(alice, keys[0])).json()["code"] == "unknown_key"
    assert (await read(alice, keys[1])).status_code == 200
    assert await alice.get("/auth/readonly-api-keys") == keys[1:]
    again = await alice.send("DELETE", PATH, {"key": keys[0]})
    assert (again.status_code, again.json()["code"]) == (404, "key_not_owned")


async def test_clients_of_the_other_dialect_expect_a_bare_answer(rig: TradingRig) -> None:
    trader = await rig.trader("alice", prefix="POLY_")
    key = await created(trader)
    assert (await trader.send("DELETE", PATH, {"key": key})).json() is True


async def test_the_keys_of_an_address_are_bounded(alice: Trader) -> None:
    for _ in range(READONLY_KEYS_MAX):
        await created(alice)
    answer = await alice.send("POST", PATH)
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_readonly_keys")


async def test_a_creation_sent_again_under_its_idempotency_key_makes_one_key(
    alice: Trader, bob: Trader
) -> None:
    """No answer with a key is stored for that."""
    alice.rig.client.headers["Idempotency-Key"] = "one"
    keys = {await created(alice) for _ in range(3)}
    assert len(keys) == 1
    assert await created(bob) not in keys


async def test_a_deleted_key_is_never_made_again(alice: Trader) -> None:
    """The same request once made the deleted key again."""
    alice.rig.client.headers["Idempotency-Key"] = "one"
    key = await created(alice)
    del alice.rig.client.headers["Idempotency-Key"]
    assert (await alice.send("DELETE", PATH, {"key": key})).status_code == 200
    alice.rig.client.headers["Idempotency-Key"] = "one"
    again = await alice.send("POST", PATH)
    assert (again.status_code, again.json()["code"]) == (409, "request_taken")
    assert not await is_valid(alice, key)


async def test_no_table_holds_a_readonly_key(rig: TradingRig, alice: Trader) -> None:
    rig.client.headers["Idempotency-Key"] = "one"
    key = await created(alice)

    def everything(connection: Any) -> str:
        tables = sa.inspect(connection).get_table_names()
        rows = [connection.execute(sa.text(f"SELECT * FROM {name}")).all() for name in tables]
        return str(rows)

    found: list[str] = []
    await rig.context.database.run_sync(lambda connection: found.append(everything(connection)))
    assert alice.address.lower() in found[0]
    assert key not in found[0]
    assert key.replace("-", "") not in found[0]
