import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.rows import Rows
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    TOKEN,
    a_buy,
    a_sell,
    a_word,
    an_asset,
    an_observation,
    an_open_market,
    some_funds,
    some_rules,
)
from tests.trading.rig import Listener, expect_refusal, listening

from foretell.domain.exchange.commands import AllowanceSeen, CancelOrders, ChangeTick, ResolveMarket
from foretell.trading.streams.connection import BAD_MESSAGES_MAX
from foretell.trading.streams.market_channel import TOKENS_PER_CONNECTION_MAX

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
STREAM = {"sequence", "stream_id", "server_ts_ms", "journal_sequence"}


@pytest.fixture
async def host(rig: TradingRig) -> AsyncIterator[str]:
    announcing = asyncio.create_task(rig.context.streams.announce())
    async with serving(rig.app) as host:
        yield host
    announcing.cancel()
    await asyncio.gather(announcing, return_exceptions=True)


@pytest.fixture
async def listener(host: str) -> AsyncIterator[Listener]:
    async with listening(host, "/ws/market") as listener:
        yield listener


def bare(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the members that differ between connections."""
    assert set(message) >= STREAM
    return {name: value for name, value in message.items() if name not in STREAM}


async def book_of(rig: TradingRig, token_id: str) -> dict[str, Any]:
    response = await rig.client.get("/book", params={"token_id": token_id})
    book: dict[str, Any] = response.json()
    return book


async def test_a_subscriber_receives_the_books_at_once_in_one_array(
    rig: TradingRig, listener: Listener
) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    await listener.subscribe(YES, NO)
    frame = await listener.message()
    assert [bare(book) for book in frame] == [
        {"event_type": "book"} | await book_of(rig, token_id) for token_id in (YES, NO)
    ]
    assert [book["sequence"] for book in frame] == [1, 2]
    assert {book["journal_sequence"] for book in frame} == {rig.context.books.sequence}
    assert {book["server_ts_ms"] for book in frame} == {NOW_MS}


async def test_an_order_changes_a_level_of_both_tokens(rig: TradingRig, listener: Listener) -> None:
    await listener.subscribe(YES, initial_dump=False)
    await listener.silence()
    await rig.rest(a_buy("alice", price_ticks=40))
    message = await listener.message()
    assert bare(message) == {
        "event_type": "price_change",
        "market": a_word("market"),
        "timestamp": str(NOW_MS),
        "price_changes": [
            {
                "asset_id": YES,
                "price": "0.4",
                "size": "10",
                "side": "BUY",
                "hash": (await book_of(rig, YES))["hash"],
                "best_bid": "0.4",
                "best_ask": "1",
            },
            {
                "asset_id": NO,
                "price": "0.6",
                "size": "10",
                "side": "SELL",
                "hash": (await book_of(rig, NO))["hash"],
                "best_bid": "0",
                "best_ask": "0.6",
            },
        ],
    }


async def test_a_cancel_removes_the_level(rig: TradingRig, listener: Listener) -> None:
    order_id = await rig.rest(a_sell("alice", price_ticks=40))
    await listener.subscribe(NO, initial_dump=False)
    await listener.silence()
    alice = a_sell("alice").signer
    await rig.submit(CancelOrders(NOW_MS, alice, (order_id,)))
    message = await listener.message()
    sizes = {
        (each["asset_id"], each["side"], each["price"]): each["size"]
        for each in message["price_changes"]
    }
    assert sizes == {(YES, "SELL", "0.4"): "0", (NO, "BUY", "0.6"): "0"}


async def test_a_trade_is_followed_by_its_levels_and_the_whole_book(
    rig: TradingRig, listener: Listener
) -> None:
    await rig.rest(a_sell("alice", price_ticks=40, size_units=6 * TOKEN))
    await rig.rest(a_sell("alice", price_ticks=41, size_units=6 * TOKEN))
    await listener.subscribe(YES, NO, initial_dump=False)
    await listener.silence()
    await rig.rest(a_buy("bob", price_ticks=41, size_units=10 * TOKEN))
    first, second, changes, yes, no = await listener.messages(5)
    assert bare(first) == {
        "event_type": "last_trade_price",
        "asset_id": YES,
        "market": a_word("market"),
        "price": "0.4",
        "size": "6",
        "side": "BUY",
        "fee_rate_bps": "0",
        "timestamp": str(NOW_MS),
    }
    assert (second["price"], second["size"]) == ("0.41", "4")
    assert changes["event_type"] == "price_change"
    assert bare(yes) == {"event_type": "book"} | await book_of(rig, YES)
    assert bare(no) == {"event_type": "book"} | await book_of(rig, NO)
    assert yes["last_trade_price"] == "0.41"
    numbers = [message["sequence"] for message in (first, second, changes, yes, no)]
    assert numbers == [1, 2, 3, 4, 5]
    assert len({message["journal_sequence"] for message in (first, yes)}) == 1


async def test_a_last_trade_is_published_for_the_takers_token(
    rig: TradingRig, listener: Listener
) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    await listener.subscribe(YES, initial_dump=False)
    await listener.silence()
    await rig.rest(a_buy("bob", price_ticks=60, is_yes=False))
    messages = await listener.messages(2)
    assert [message["event_type"] for message in messages] == ["price_change", "book"]


async def test_other_tokens_are_not_published(rig: TradingRig, listener: Listener) -> None:
    await rig.open("other", "alice")
    await listener.subscribe(YES, initial_dump=False)
    await listener.silence()
    await rig.rest(a_buy("alice", market="other"), market=an_open_market("other"))
    await listener.silence()


async def test_a_market_stands_for_both_its_tokens(rig: TradingRig, listener: Listener) -> None:
    await listener.send({"type": "MARKET", "markets": [a_word("market").upper(), a_word("x")]})
    frame = await listener.message()
    assert [book["asset_id"] for book in frame] == [YES, NO]
    await rig.rest(a_buy("alice"))
    assert (await listener.message())["event_type"] == "price_change"


@pytest.mark.parametrize(
    "message",
    [
        {"type": "market", "asset_ids": [YES]},
        {"type": "Market", "assets_ids": [YES], "operation": "subscribe", "level": 2},
        {"assets_ids": [YES], "operation": "subscribe"},
    ],
)
async def test_spellings_of_a_subscription_are_understood(
    listener: Listener, message: object
) -> None:
    await listener.send(message)
    assert [book["asset_id"] for book in await listener.message()] == [YES]


async def test_tokens_are_added_once_and_removed(rig: TradingRig, listener: Listener) -> None:
    await listener.subscribe(YES)
    assert len(await listener.message()) == 1
    await listener.send({"assets_ids": [YES, NO], "operation": "subscribe"})
    assert [book["asset_id"] for book in await listener.message()] == [NO]
    await listener.send({"assets_ids": [NO, "12"], "operation": "unsubscribe"})
    await listener.silence()
    await rig.rest(a_buy("alice", price_ticks=40))
    assert (await listener.message())["event_type"] == "price_change"
    await listener.send({"type": "market", "assets_ids": [YES], "operation": "unsubscribe"})
    await listener.silence()
    await rig.rest(a_buy("alice", price_ticks=41))
    await listener.silence()


async def test_a_token_that_does_not_trade_yet_is_published_when_it_does(
    rig: TradingRig, listener: Listener
) -> None:
    token_id = an_asset(is_yes=True, market="later")
    await listener.subscribe(token_id)
    await listener.silence()
    await rig.open("later", "alice")
    await rig.rest(a_buy("alice", market="later"), market=an_open_market("later"))
    assert (await listener.message())["price_changes"][0]["asset_id"] == token_id


async def test_best_prices_are_published_to_clients_that_asked_for_them(
    rig: TradingRig, listener: Listener
) -> None:
    await listener.subscribe(YES, initial_dump=False, custom_feature_enabled=True)
    await listener.silence()
    await rig.rest(a_buy("alice", price_ticks=40))
    _, best = await listener.messages(2)
    assert bare(best) == {
        "event_type": "best_bid_ask",
        "asset_id": YES,
        "market": a_word("market"),
        "best_bid": "0.4",
        "best_ask": "1",
        "spread": "0.6",
        "timestamp": str(NOW_MS),
    }
    await rig.rest(a_buy("alice", price_ticks=30))
    assert (await listener.message())["event_type"] == "price_change"
    await listener.silence()


async def test_a_finer_tick_of_each_token_is_published_before_any_price_in_it(
    rig: TradingRig, listener: Listener
) -> None:
    await listener.subscribe(YES, NO, initial_dump=False)
    await listener.silence()
    await rig.submit(ChangeTick(NOW_MS, a_word("market"), 1_000))
    finer = an_open_market(rules=some_rules(1_000))
    await rig.rest(a_buy("alice", price_ticks=35, ticks_per_one=1_000), market=finer)
    yes, no, change = await listener.messages(3)
    assert bare(yes) == {
        "event_type": "tick_size_change",
        "asset_id": YES,
        "market": a_word("market"),
        "old_tick_size": "0.01",
        "new_tick_size": "0.001",
        "timestamp": str(NOW_MS),
    }
    assert bare(no) == bare(yes) | {"asset_id": NO}
    assert [each["price"] for each in change["price_changes"]] == ["0.035", "0.965"]


async def test_a_finer_tick_alone_is_no_change_of_the_best_prices(
    rig: TradingRig, listener: Listener
) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    await listener.subscribe(YES, initial_dump=False, custom_feature_enabled=True)
    await listener.silence()
    await rig.submit(ChangeTick(NOW_MS, a_word("market"), 1_000))
    await rig.rest(a_buy("bob", price_ticks=30))
    kinds = [message["event_type"] for message in await listener.messages(2)]
    assert kinds == ["tick_size_change", "price_change"]
    await listener.silence()


async def test_a_later_message_turns_best_prices_off_and_on(
    rig: TradingRig, listener: Listener
) -> None:
    await listener.subscribe(YES, initial_dump=False, custom_feature_enabled=True)
    await listener.subscribe(YES)
    await listener.send({"assets_ids": [YES], "custom_feature_enabled": False})
    await listener.silence()
    await rig.rest(a_buy("alice", price_ticks=40))
    await listener.messages(1)
    await listener.silence()
    await listener.subscribe(YES, custom_feature_enabled=True)
    await listener.silence()
    await rig.rest(a_buy("alice", price_ticks=41))
    assert len(await listener.messages(2)) == 2


async def test_a_new_market_is_announced_to_clients_that_asked_for_it(
    rig: TradingRig, host: str, listener: Listener
) -> None:
    await listener.subscribe(custom_feature_enabled=True)
    await listener.silence()
    async with listening(host, "/ws/market") as other:
        await other.subscribe(YES, initial_dump=False)
        await other.silence()
        await rig.open("rain")
        message = await listener.message()
        await other.silence()
    assert bare(message) == {
        "event_type": "new_market",
        "id": "2",
        "question": "Will it rain?",
        "market": a_word("rain"),
        "condition_id": a_word("rain"),
        "slug": "will-it-rain",
        "description": "Resolves to Yes when rain was seen by the operator.",
        "assets_ids": [an_asset(is_yes=yes, market="rain") for yes in (True, False)],
        "clob_token_ids": [an_asset(is_yes=yes, market="rain") for yes in (True, False)],
        "outcomes": ["Yes", "No"],
        "tags": ["Politics", "World", "News"],
        "active": True,
        "order_price_min_tick_size": "0.01",
        "taker_base_fee": 0,
        "fees_enabled": False,
        "timestamp": str(NOW_MS),
        "event_message": {
            "id": "2",
            "ticker": "event-rain",
            "slug": "event-rain",
            "title": "About rain",
            "description": "Resolves to Yes when rain was seen by the operator.",
        },
    }


@pytest.mark.parametrize(
    ("yes", "no", "token_id", "outcome"),
    [(1, 0, YES, "Yes"), (0, 5, NO, "No"), (1, 1, "", "")],
)
async def test_a_resolved_market_is_announced_with_its_winner(
    rig: TradingRig, listener: Listener, yes: int, no: int, token_id: str, outcome: str
) -> None:
    await rig.rest(a_buy("alice"))
    await listener.subscribe(YES, initial_dump=False, custom_feature_enabled=True)
    await listener.silence()
    async with rig.context.database.writing() as tx:
        await Rows(tx).resolve("market", yes, no)
    await rig.submit(ResolveMarket(NOW_MS, a_word("market")))
    *_, message = await listener.messages(3)
    assert message["event_type"] == "market_resolved"
    assert (message["winning_asset_id"], message["winning_outcome"]) == (token_id, outcome)
    assert message["assets_ids"] == [YES, NO]


async def test_a_market_without_a_listing_is_not_announced(
    rig: TradingRig, listener: Listener
) -> None:
    await listener.subscribe(custom_feature_enabled=True)
    await listener.silence()
    await rig.submit(an_open_market("nameless"), ResolveMarket(NOW_MS, a_word("market")))
    await rig.open("rain")
    assert (await listener.message())["slug"] == "will-it-rain"


async def test_the_names_of_a_market_are_read_without_a_subscriber(
    rig: TradingRig, host: str
) -> None:
    await rig.open("rain")
    async with listening(host, "/ws/market") as listener:
        await listener.subscribe(YES, custom_feature_enabled=True, initial_dump=False)
        await listener.silence()
    assert rig.context.market_names.find(a_word("rain")) is not None


@pytest.mark.parametrize(
    "message",
    [
        "hello",
        "{",
        "[1]",
        '"x"',
        {"type": "weather"},
        {"type": "market", "operation": "shout"},
        {"type": "market", "assets_ids": "all"},
        {"type": "market", "assets_ids": [5]},
        {"type": "market", "assets_ids": ["0x12"]},
        {"type": "market", "assets_ids": ["9" * 79]},
    ],
)
async def test_a_message_that_is_not_understood_is_answered_so(
    listener: Listener, message: object
) -> None:
    await listener.send(message)
    await expect_refusal(listener)
    await listener.subscribe(YES)
    assert len(await listener.message()) == 1


async def test_a_binary_message_is_not_understood(listener: Listener) -> None:
    await listener.connection.send(b"PING")
    await expect_refusal(listener)


@pytest.mark.case("H-03")
async def test_too_many_malformed_messages_close_the_connection(
    rig: TradingRig, listener: Listener
) -> None:
    for _ in range(BAD_MESSAGES_MAX):
        await listener.send("hello")
    assert await listener.close_code() == 1008
    assert rig.context.streams.connection_count == 0


@pytest.mark.case("H-03")
async def test_a_connection_holds_only_so_many_tokens(listener: Listener) -> None:
    tokens = [str(number) for number in range(TOKENS_PER_CONNECTION_MAX)]
    await listener.subscribe(*tokens)
    await listener.silence()
    await listener.subscribe("501")
    assert "501 tokens" in await expect_refusal(listener, "too_many_subscriptions")
    await listener.send({"assets_ids": ["0"], "operation": "unsubscribe"})
    await listener.subscribe(YES)
    assert len(await listener.message()) == 1


@pytest.mark.parametrize("ping", ["PING", "ping", " PING\n"])
async def test_a_ping_is_answered(listener: Listener, ping: str) -> None:
    await listener.send(ping)
    assert await listener.text() == "PONG"


@pytest.mark.parametrize("path", ["/ws/market", "/ws/market/"])
async def test_the_channel_is_also_there_with_a_slash(host: str, path: str) -> None:
    async with listening(host, path) as listener:
        await listener.subscribe(YES)
        assert len(await listener.message()) == 1


async def test_subscriptions_end_with_their_connection(rig: TradingRig, host: str) -> None:
    async with listening(host, "/ws/market") as listener:
        await listener.subscribe(YES, NO, custom_feature_enabled=True)
        await listener.message()
        assert not rig.context.streams.market.is_idle
    async with asyncio.timeout(60):
        while not rig.context.streams.market.is_idle:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)


async def test_two_connections_have_sequences_of_their_own(rig: TradingRig, host: str) -> None:
    async with (
        listening(host, "/ws/market") as one,
        listening(host, "/ws/market") as other,
    ):
        await one.subscribe(YES)
        (first,) = await one.message()
        await other.subscribe(YES, initial_dump=False)
        await other.silence()
        await rig.rest(a_buy("alice"))
        second, also = await one.message(), await other.message()
    assert first["stream_id"] == second["stream_id"] != also["stream_id"]
    assert (first["sequence"], second["sequence"], also["sequence"]) == (1, 2, 1)
    assert bare(second) == bare(also)


@pytest.mark.case("H-05")
async def test_a_book_built_from_the_stream_equals_the_served_book(
    rig: TradingRig, alice: Trader, bob: Trader, listener: Listener
) -> None:
    """Apply only changes of orders, trades, cancels and an allowance that is revoked."""
    await rig.submit(some_funds("carol"))
    await listener.subscribe(YES)
    (first,) = await listener.message()
    kept = {
        side: {level["price"]: level["size"] for level in first[key]}
        for side, key in (("BUY", "bids"), ("SELL", "asks"))
    }
    await alice.placed(a_buy("alice", price_ticks=40))
    await alice.placed(a_buy("alice", price_ticks=42, size_units=25 * TOKEN))
    await bob.placed(a_sell("bob", price_ticks=42, size_units=5 * TOKEN))
    await bob.placed(a_buy("bob", price_ticks=55, is_yes=False))
    await bob.placed(a_sell("bob", price_ticks=41, size_units=50 * TOKEN))
    await rig.rest(a_buy("carol", price_ticks=30))
    await alice.placed(a_buy("alice", price_ticks=45, size_units=7 * TOKEN, salt="9"))
    await bob.send("DELETE", "/cancel-all")
    gone = AllowanceSeen(a_buy("carol").signer, EXCHANGE, is_collateral=True, units=0)
    await rig.submit(an_observation(allowances=[gone]))
    await listener.send("PING")
    while (text := await listener.text()) != "PONG":
        follow(kept, text)
    book = await book_of(rig, YES)
    assert kept["BUY"] == {level["price"]: level["size"] for level in book["bids"]}
    assert kept["SELL"] == {level["price"]: level["size"] for level in book["asks"]}


def follow(kept: dict[str, dict[str, str]], text: str) -> None:
    for change in json.loads(text).get("price_changes", ()):
        if change["asset_id"] == YES:
            kept[change["side"]].pop(change["price"], None)
            if change["size"] != "0":
                kept[change["side"]][change["price"]] = change["size"]
