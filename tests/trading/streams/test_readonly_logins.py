"""The user channel, for who has a read-only key of the account."""

import asyncio
from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, an_order_id
from tests.trading.rig import Listener, listening

from foretell.store.trading.readonly_keys import delete_readonly_key, readonly_hash

pytestmark = pytest.mark.anyio

PATH = "/auth/readonly-api-key"


async def a_key(trader: Trader) -> str:
    return str((await trader.send("POST", PATH)).json()["apiKey"])


async def log_in(listener: Listener, trader: Trader, key: str, **fields: Any) -> None:
    auth = {"readonlyApiKey": key, "address": trader.address}
    await listener.send({"type": "user", "auth": auth, **fields})


async def test_a_read_only_key_reads_the_orders_of_its_address_alone(
    host: str, alice: Trader, bob: Trader
) -> None:
    async with listening(host, "/ws/user") as listener:
        await log_in(listener, alice, await a_key(alice))
        await listener.silence()
        await bob.placed(a_buy("bob"))
        order = a_buy("alice")
        await alice.placed(order)
        message = await listener.message()
        assert (message["event_type"], message["id"]) == ("order", an_order_id(order))
        assert message["owner"] == alice.key_id


@pytest.mark.parametrize("address", ["", "0x12", None])
async def test_a_read_only_key_of_another_address_or_none_is_refused(
    host: str, alice: Trader, bob: Trader, address: str | None
) -> None:
    auth = {"readonlyApiKey": await a_key(alice), "address": bob.address}
    auth |= {} if address is None else {"address": address}
    async with listening(host, "/ws/user") as listener:
        await listener.send({"type": "user", "auth": auth})
        refused = await listener.message()
        assert (refused["error"], refused["code"]) == (
            "Unauthorized/Invalid api key",
            "unknown_key",
        )
        assert await listener.close_code() == 1008


async def test_a_deleted_read_only_key_loses_its_streams_at_once(host: str, alice: Trader) -> None:
    key, other = await a_key(alice), await a_key(alice)
    async with listening(host, "/ws/user") as listener, listening(host, "/ws/user") as second:
        await log_in(listener, alice, key)
        await log_in(second, alice, other)
        await second.silence()
        assert (await alice.send("DELETE", PATH, {"key": key})).status_code == 200
        assert await listener.close_code() == 1008
        await second.silence()
        assert (await alice.send("DELETE", "/auth/api-key")).status_code == 200
        await second.silence()


async def test_a_read_only_key_that_another_process_deleted_loses_its_streams(
    rig: TradingRig, host: str, alice: Trader
) -> None:
    key = await a_key(alice)
    context = rig.context
    following = asyncio.create_task(
        context.streams.follow_revocations(context.database, check_every_s=0.02)
    )
    async with listening(host, "/ws/user") as listener:
        await log_in(listener, alice, key)
        await listener.silence()
        async with context.database.writing() as tx:
            assert await delete_readonly_key(tx, alice.address, readonly_hash(key), 1)
        assert await listener.close_code() == 1008
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_stream_of_a_read_only_key_goes_on_and_is_read_over_http_with_that_key_alone(
    rig: TradingRig, host: str, alice: Trader
) -> None:
    key, other = await a_key(alice), await a_key(alice)
    async with listening(host, "/ws/user") as listener:
        await log_in(listener, alice, key)
        await listener.silence()
        await alice.placed(a_buy("alice"))
        stream_id = (await listener.message())["stream_id"]

        async def events(named: str) -> Any:
            headers = {"SERVICE_ADDRESS": alice.address, "SERVICE_READONLY_API_KEY": named}
            query = {"stream_id": stream_id}
            return (await rig.client.get("/events", params=query, headers=headers)).json()

        assert [each["type"] for each in (await events(key))["events"]] == ["PLACEMENT"]
        assert (await events(other))["code"] == "unknown_stream"
        listener.connection.transport.abort()
    async with listening(host, "/ws/user") as again:
        await log_in(again, alice, key, stream_id=stream_id, sequence=1)
        assert (await again.message())["event_type"] == "resumed"
    async with listening(host, "/ws/user") as stranger:
        await log_in(stranger, alice, other, stream_id=stream_id, sequence=1)
        assert (await stranger.message())["event_type"] == "not_resumed"
