"""The live-data channel: trades by topic, silent topics, and its bounds."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_buy, a_sell, an_asset
from tests.trading.rig import Listener, expect_refusal, listening, no_connections

from foretell.domain.values.hexadecimal import checksum_address
from foretell.trading.streams.hub import Streams
from foretell.trading.streams.live_channel import SUBSCRIPTIONS_PER_CONNECTION_MAX

pytestmark = pytest.mark.anyio


@pytest.fixture
async def live(host: str) -> AsyncIterator[Listener]:
    async with listening(host, "/ws") as listener:
        yield listener


async def subscribe(live: Listener, action: str = "subscribe", **fields: Any) -> None:
    await live.send({"action": action, "subscriptions": [{"topic": "activity", **fields}]})
    await live.silence()


async def trade(rig: TradingRig, alice: Trader, market: str = "market") -> None:
    await rig.rest(a_sell("bob", 40, 5 * TOKEN, salt=str(next(rig.numbers)), market=market))
    await alice.placed(a_buy("alice", 40, 5 * TOKEN, salt=str(next(rig.numbers)), market=market))
    while rig.context.streams.live.waiting:
        await rig.context.streams.live.publish(rig.context.streams.live.waiting.popleft())


async def test_a_trade_is_published_to_subscribers_of_activity(
    rig: TradingRig, alice: Trader, live: Listener
) -> None:
    await subscribe(live, type="trades")
    await trade(rig, alice)
    message = await live.message()
    payload = message["payload"]
    assert (message["topic"], message["type"], message["timestamp"]) == (
        "activity",
        "trades",
        NOW_MS,
    )
    assert set(message) == {"topic", "type", "timestamp", "payload", "connection_id"}
    assert (payload["price"], payload["size"], payload["side"]) == (0.4, 5, "BUY")
    assert (payload["outcome"], payload["outcomeIndex"]) == ("Yes", 0)
    assert (payload["asset"], payload["timestamp"]) == (an_asset(is_yes=True), NOW_S)
    assert payload["proxyWallet"] == checksum_address(alice.address)
    await live.silence()


async def test_any_type_gets_both_messages_of_a_trade_once(
    rig: TradingRig, alice: Trader, live: Listener
) -> None:
    await subscribe(live)
    await subscribe(live, type="trades")
    await trade(rig, alice)
    assert [(await live.message())["type"] for _ in range(2)] == ["trades", "orders_matched"]
    await live.silence()


@pytest.mark.parametrize("form", [json.dumps, dict])
async def test_filters_choose_a_market_or_an_event(
    rig: TradingRig, alice: Trader, live: Listener, form: Any
) -> None:
    listing = rig.context.market_names.find(a_market_id(rig))
    assert listing is not None
    await subscribe(live, type="trades", filters=form({"market_slug": "another"}))
    await trade(rig, alice)
    await live.silence()
    await subscribe(live, type="trades", filters=form({"event_slug": listing.event_slug}))
    await trade(rig, alice)
    assert (await live.message())["payload"]["slug"] == listing.slug
    await subscribe(
        live, "unsubscribe", type="trades", filters=form({"event_slug": listing.event_slug})
    )
    await trade(rig, alice)
    await live.silence()


@pytest.mark.parametrize("topic", ["comments", "crypto_prices", "crypto_prices_chainlink"])
async def test_a_topic_without_a_source_stays_silent(
    rig: TradingRig, alice: Trader, live: Listener, topic: str
) -> None:
    await subscribe(live, topic=topic, type="*")
    await trade(rig, alice)
    await live.silence()


@pytest.mark.parametrize(
    "message",
    [
        "x",
        [],
        {"action": "publish", "subscriptions": [{"topic": "activity"}]},
        {"action": "subscribe", "subscriptions": []},
        {"action": "subscribe", "subscriptions": [{"topic": "weather"}]},
        {"action": "subscribe", "subscriptions": [{"topic": "activity", "type": "x"}]},
        {"action": "subscribe", "subscriptions": [{"topic": "activity", "filters": "x"}]},
        {
            "action": "subscribe",
            "subscriptions": [{"topic": "activity", "filters": {"event_slug": "x" * 301}}],
        },
    ],
)
async def test_a_malformed_message_is_refused(live: Listener, message: Any) -> None:
    await live.send(message)
    await expect_refusal(live)


async def test_the_subscriptions_of_a_connection_are_bounded(live: Listener) -> None:
    one = {"topic": "activity"}
    many = [
        one | {"filters": {"event_slug": str(number)}}
        for number in range(SUBSCRIPTIONS_PER_CONNECTION_MAX)
    ]
    await live.send({"action": "subscribe", "subscriptions": many})
    await live.silence()
    await live.send({"action": "subscribe", "subscriptions": many})
    await live.silence()
    await live.send({"action": "subscribe", "subscriptions": [one]})
    await expect_refusal(live, "too_many_subscriptions")


async def test_nothing_is_left_of_a_connection_that_ended(
    rig: TradingRig, host: str, alice: Trader
) -> None:
    streams = rig.context.streams
    async with listening(host, "/ws") as live:
        await subscribe(live)
        assert kept(streams) == (False, 1)
    await no_connections(streams)
    assert kept(streams) == (True, 0)
    await trade(rig, alice)
    assert not streams.live.waiting


def kept(streams: Streams) -> tuple[bool, int]:
    return streams.live.is_idle, len(streams.open)


def a_market_id(rig: TradingRig) -> Any:
    return next(iter(rig.context.books.market_by_id))
