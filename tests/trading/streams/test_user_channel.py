from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_sell,
    a_settlement,
    a_spending,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_order_id,
    some_funds,
)
from tests.trading.rig import Trader, TradingRig, a_rig
from tests.trading.serving import Listener, listening, serving

from foretell.domain.exchange.commands import (
    AllowanceSeen,
    CancelSeen,
    ExpireOrders,
    NonceSeen,
    ResolveMarket,
    SplitTrade,
)
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import checksum_address
from foretell.trading.streams.user_channel import MARKETS_PER_CONNECTION_MAX
from foretell.trading.wire.orders import ZERO_UUID

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
MARKET = a_word("market")


@pytest.fixture
async def host(rig: TradingRig) -> AsyncIterator[str]:
    async with serving(rig.app) as host:
        yield host


@pytest.fixture
async def alices(host: str, alice: Trader) -> AsyncIterator[Listener]:
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(alice)
        yield listener


Story = Callable[[Trader, Trader], Coroutine[Any, Any, tuple[str, int]]]
"""What happens to an order of alice: its id, and how many messages tell of it."""


def told(message: dict[str, Any]) -> tuple[str, str, str]:
    return message["event_type"], message["type"], message["status"]


async def test_an_order_that_rests_is_told_as_a_placement(alice: Trader, alices: Listener) -> None:
    order = a_buy("alice", price_ticks=40, expiration_s=NOW_S + 600)
    await alice.placed(order, "GTD")
    message = await alices.message()
    assert message == {
        "sequence": 1,
        "stream_id": message["stream_id"],
        "server_ts_ms": NOW_MS,
        "journal_sequence": 3,
        "event_type": "order",
        "type": "PLACEMENT",
        "timestamp": str(NOW_S),
        "order_owner": alice.key_id,
        "id": an_order_id(order),
        "status": "LIVE",
        "owner": alice.key_id,
        "maker_address": checksum_address(alice.address),
        "market": MARKET,
        "asset_id": YES,
        "side": "BUY",
        "original_size": "10",
        "size_matched": "0",
        "price": "0.4",
        "associate_trades": [],
        "outcome": "Yes",
        "created_at": NOW_S,
        "expiration": str(NOW_S + 600),
        "order_type": "GTD",
        "close_reason": None,
    }
    await alices.silence()


async def test_an_order_that_matches_at_once_is_placed_updated_and_traded(
    alice: Trader, bob: Trader, alices: Listener
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    answer = await alice.placed(a_buy("alice", price_ticks=40))
    placed, updated, trade = await alices.messages(3)
    assert told(placed) == ("order", "PLACEMENT", "LIVE")
    assert told(updated) == ("order", "UPDATE", "MATCHED")
    assert (placed["size_matched"], updated["size_matched"]) == ("0", "10")
    assert updated["associate_trades"] == answer["tradeIDs"]
    assert told(trade) == ("trade", "TRADE", "MATCHED")
    assert trade["id"] == answer["tradeIDs"][0]
    assert (trade["timestamp"], trade["matchtime"]) == (str(NOW_S), str(NOW_S))
    assert trade["trade_owner"] == trade["owner"] == alice.key_id
    assert (trade["trader_side"], trade["asset_id"], trade["price"]) == ("TAKER", YES, "0.4")
    assert trade["maker_orders"][0]["owner"] == ZERO_UUID


async def test_a_part_that_matched_leaves_the_rest_live(
    alice: Trader, bob: Trader, alices: Listener
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40, size_units=6 * TOKEN))
    await alice.placed(a_buy("alice", price_ticks=40, size_units=10 * TOKEN))
    _, updated, _ = await alices.messages(3)
    assert (told(updated), updated["size_matched"]) == (("order", "UPDATE", "LIVE"), "6")


async def test_a_resting_order_is_updated_by_every_fill(
    alice: Trader, bob: Trader, alices: Listener
) -> None:
    await alice.placed(a_buy("alice", price_ticks=40, size_units=10 * TOKEN))
    await alices.message()
    trade_ids = []
    for salt, units in (("1", 6), ("2", 5)):
        order = a_sell("bob", price_ticks=40, size_units=units * TOKEN, salt=salt)
        trade_ids += (await bob.placed(order))["tradeIDs"]
    first, _, second, trade = await alices.messages(4)
    assert (told(first), first["size_matched"]) == (("order", "UPDATE", "LIVE"), "6")
    assert (told(second), second["size_matched"]) == (("order", "UPDATE", "MATCHED"), "10")
    assert second["associate_trades"] == trade_ids
    assert (trade["trader_side"], trade["size"], trade["owner"]) == ("MAKER", "4", alice.key_id)
    assert trade["maker_orders"][0]["owner"] == alice.key_id
    assert bob.key_id not in str(trade)


@pytest.mark.parametrize("order_type", ["FOK", "FAK"])
async def test_an_order_that_only_takes_is_never_live_for_long(
    alice: Trader, bob: Trader, alices: Listener, order_type: str
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40, size_units=100 * TOKEN))
    await alice.placed(a_spending("alice", 50, 10 * TOKEN), order_type)
    placed, updated, _ = await alices.messages(3)
    assert (placed["original_size"], updated["size_matched"]) == ("25", "25")
    assert told(updated) == ("order", "UPDATE", "MATCHED")


async def test_a_canceled_order_is_told_with_its_reason(alice: Trader, alices: Listener) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    await alice.send("DELETE", "/order", {"orderID": order_id})
    _, gone = await alices.messages(2)
    assert (gone["id"], told(gone)) == (order_id, ("order", "CANCELLATION", "CANCELED"))
    assert gone["close_reason"] == "canceled"


async def test_an_order_that_leaves_by_itself_is_told(
    rig: TradingRig, alice: Trader, alices: Listener
) -> None:
    await alice.placed(a_buy("alice", expiration_s=NOW_S + 100), "GTD")
    await rig.tell(ExpireOrders(NOW_MS + 40_000))
    _, expired = await alices.messages(2)
    assert (expired["close_reason"], expired["timestamp"]) == ("expired", str(NOW_S + 40))
    await alice.placed(a_buy("alice", price_ticks=20))
    gone = AllowanceSeen(alice.address, EXCHANGE, is_collateral=True, units=0)
    await rig.tell(an_observation(allowances=[gone]))
    _, underfunded = await alices.messages(2)
    assert underfunded["close_reason"] == "underfunded"


@pytest.mark.parametrize("reason", ["canceled_on_chain", "nonce_raised"])
async def test_who_ends_an_order_on_the_chain_hears_that_it_left_the_book(
    rig: TradingRig, alice: Trader, alices: Listener, reason: str
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    ends = {
        "canceled_on_chain": an_observation(cancels=(CancelSeen(EXCHANGE, order_id),)),
        "nonce_raised": an_observation(nonces=(NonceSeen(EXCHANGE, alice.address, 1),)),
    }
    await rig.tell(ends[reason])
    _, gone = await alices.messages(2)
    assert (gone["id"], told(gone)) == (order_id, ("order", "CANCELLATION", "CANCELED"))
    assert gone["close_reason"] == reason
    assert (await alice.get(f"/data/order/{order_id}"))["close_reason"] == reason


async def test_the_end_of_a_market_closes_its_orders(
    rig: TradingRig, alice: Trader, alices: Listener
) -> None:
    await alice.placed(a_buy("alice"))
    await rig.tell(ResolveMarket(NOW_MS, MARKET))
    _, gone = await alices.messages(2)
    assert (gone["type"], gone["close_reason"]) == ("CANCELLATION", "market_resolved")


async def test_an_order_left_with_dust_is_matched(
    alice: Trader, bob: Trader, alices: Listener
) -> None:
    await alice.placed(a_buy("alice", price_ticks=33, size_units=10 * TOKEN))
    await alices.message()
    odd = a_sell("bob", price_ticks=33, size_units=10 * TOKEN - 100)
    await bob.placed(odd)
    await bob.placed(a_sell("bob", price_ticks=33, size_units=10 * TOKEN, salt="2"))
    messages = await alices.messages(4)
    assert told(messages[-2]) == ("order", "UPDATE", "MATCHED")


async def filled_at_once(alice: Trader, bob: Trader) -> tuple[str, int]:
    await bob.placed(a_sell("bob", price_ticks=40))
    return (await alice.placed(a_buy("alice", price_ticks=40)))["orderID"], 3


async def filled_by_another(alice: Trader, bob: Trader) -> tuple[str, int]:
    order_id: str = (await alice.placed(a_buy("alice", price_ticks=40)))["orderID"]
    await bob.placed(a_sell("bob", price_ticks=40))
    return order_id, 3


async def filled_in_part(alice: Trader, bob: Trader) -> tuple[str, int]:
    order_id: str = (await alice.placed(a_buy("alice", price_ticks=40)))["orderID"]
    await bob.placed(a_sell("bob", price_ticks=40, size_units=6 * TOKEN))
    return order_id, 3


async def matched_in_part_at_once(alice: Trader, bob: Trader) -> tuple[str, int]:
    await bob.placed(a_sell("bob", price_ticks=40, size_units=6 * TOKEN))
    return (await alice.placed(a_buy("alice", price_ticks=40)))["orderID"], 3


async def killed(alice: Trader, bob: Trader) -> tuple[str, int]:
    await bob.placed(a_sell("bob", price_ticks=50, size_units=6 * TOKEN))
    return (await alice.placed(a_spending("alice", 50, 10 * TOKEN), "FAK"))["orderID"], 3


async def canceled(alice: Trader, _: Trader) -> tuple[str, int]:
    order_id: str = (await alice.placed(a_buy("alice")))["orderID"]
    await alice.send("DELETE", "/order", {"orderID": order_id})
    return order_id, 2


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (filled_at_once, "filled"),
        (filled_by_another, "filled"),
        (filled_in_part, None),
        (matched_in_part_at_once, None),
        (killed, "killed"),
        (canceled, "canceled"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_an_order_is_over_for_the_reason_that_the_api_tells(
    alice: Trader, bob: Trader, alices: Listener, story: Story, reason: str | None
) -> None:
    order_id, count = await story(alice, bob)
    told = [each for each in await alices.messages(count) if each["event_type"] == "order"]
    assert [each["close_reason"] for each in told] == [None, reason]
    assert (await alice.get(f"/data/order/{order_id}"))["close_reason"] == reason


async def test_an_order_of_ones_own_in_the_way_is_canceled(alice: Trader, alices: Listener) -> None:
    own = (await alice.placed(a_sell("alice", price_ticks=40)))["orderID"]
    await alice.placed(a_buy("alice", price_ticks=40))
    _, placed, gone = await alices.messages(3)
    assert placed["type"] == "PLACEMENT"
    assert (gone["id"], gone["close_reason"]) == (own, "self_trade")


async def test_a_trade_is_told_at_every_step_of_its_settlement(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    (trade_id,) = (await alice.placed(a_buy("alice", price_ticks=40)))["tradeIDs"]
    await alices.messages(3)
    rig.clock.move(5_000)
    await rig.tell(
        a_settlement(trade_id, TradeStatus.RETRYING, ""),
        a_settlement(trade_id, TradeStatus.CONFIRMED, a_word("tx")),
    )
    messages = await alices.messages(3)
    assert [message["status"] for message in messages] == ["RETRYING", "MINED", "CONFIRMED"]
    assert [message["transaction_hash"] for message in messages] == ["", a_word("tx"), a_word("tx")]
    assert {message["id"] for message in messages} == {trade_id}
    assert not rig.context.streams._user._unsettled


async def test_a_trade_that_splits_is_told_part_by_part(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    carol = await rig.trader("carol")
    await rig.tell(some_funds("alice", "bob", "carol"))
    await bob.placed(a_sell("bob", price_ticks=40))
    refused = (await carol.placed(a_sell("carol", price_ticks=40, size_units=20 * TOKEN)))[
        "orderID"
    ]
    buying = a_buy("alice", price_ticks=40, size_units=25 * TOKEN)
    (trade_id,) = (await alice.placed(buying))["tradeIDs"]
    await alices.messages(3)
    await rig.tell(SplitTrade(NOW_MS, trade_id, ((refused,),), (refused,)))
    kept, part = await alices.messages(2)
    assert [(each["status"], each["size"]) for each in (kept, part)] == [
        ("MATCHED", "10"),
        ("MATCHED", "15"),
    ]
    assert [each["maker_orders"][0]["order_id"] for each in (kept, part)][1] == refused
    assert (kept["id"], kept["bucket_index"], part["bucket_index"]) == (trade_id, 0, 0)
    await rig.tell(a_settlement(part["id"], TradeStatus.FAILED, ""))
    failed = await alices.message()
    assert (failed["id"], failed["status"]) == (part["id"], "FAILED")
    gone = await carol.get(f"/data/order/{refused}")
    assert (gone["close_reason"], gone["associate_trades"]) == ("reverts_on_chain", [part["id"]])
    told = {each["id"]: each["status"] for each in (await alice.get("/data/trades"))["data"]}
    assert told == {trade_id: "MATCHED", part["id"]: "FAILED"}


async def test_a_maker_hears_of_the_part_that_its_fill_is_in_and_of_no_other(
    rig: TradingRig, host: str, alice: Trader, bob: Trader
) -> None:
    carol = await rig.trader("carol")
    await rig.tell(some_funds("alice", "bob", "carol"))
    await bob.placed(a_sell("bob", price_ticks=40))
    other = (await carol.placed(a_sell("carol", price_ticks=40)))["orderID"]
    async with listening(host, "/ws/user") as bobs, listening(host, "/ws/user") as carols:
        await bobs.log_in(bob)
        await carols.log_in(carol)
        buying = a_buy("alice", price_ticks=40, size_units=20 * TOKEN)
        (trade_id,) = (await alice.placed(buying))["tradeIDs"]
        await bobs.messages(2)
        await carols.messages(2)
        await rig.tell(SplitTrade(NOW_MS, trade_id, ((other,),), ()))
        assert (await bobs.message())["id"] == trade_id
        assert (await carols.message())["id"] != trade_id
        await bobs.silence()
        await carols.silence()


async def test_orders_in_the_book_name_the_part_that_their_fill_went_to(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    carol = await rig.trader("carol")
    await rig.tell(some_funds("alice", "bob", "carol"))
    other = (await carol.placed(a_sell("carol", price_ticks=40)))["orderID"]
    placed = await alice.placed(a_buy("alice", price_ticks=40, size_units=30 * TOKEN))
    (trade_id,) = placed["tradeIDs"]
    await alices.messages(3)
    await rig.tell(SplitTrade(NOW_MS, trade_id, ((other,),), ()))
    _, part = await alices.messages(2)
    await alice.send("DELETE", "/order", {"orderID": placed["orderID"]})
    assert (await alices.message())["associate_trades"] == [trade_id, part["id"]]


async def test_both_sides_of_a_trade_are_told_and_nobody_else(
    rig: TradingRig, host: str, alice: Trader, bob: Trader
) -> None:
    carol = await rig.trader("carol")
    async with (
        listening(host, "/ws/user") as alices,
        listening(host, "/ws/user") as bobs,
        listening(host, "/ws/user") as carols,
    ):
        await alices.log_in(alice)
        await bobs.log_in(bob)
        await carols.log_in(carol)
        await alice.placed(a_buy("alice", price_ticks=40))
        await bob.placed(a_buy("bob", price_ticks=60, is_yes=False))
        assert [m["event_type"] for m in await alices.messages(3)] == ["order", "order", "trade"]
        taker = (await bobs.messages(3))[-1]
        assert (taker["trader_side"], taker["asset_id"]) == ("TAKER", NO)
        assert taker["maker_orders"][0]["match_type"] == "MINT"
        await carols.silence()


async def test_every_key_of_an_address_hears_of_its_orders(
    rig: TradingRig, host: str, alice: Trader, alices: Listener
) -> None:
    other = await rig.trader("alice", nonce=1)
    async with listening(host, "/ws/user/") as listener:
        await listener.log_in(other)
        await alice.placed(a_buy("alice"))
        assert (await listener.message())["owner"] == alice.key_id
        assert (await alices.message())["type"] == "PLACEMENT"


@pytest.mark.parametrize("name", ["apiKey", "apikey", "api_key", "key"])
async def test_a_key_may_be_spelled_in_several_ways(host: str, alice: Trader, name: str) -> None:
    auth = {name: alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    async with listening(host, "/ws/user") as listener:
        await listener.send({"type": "USER", "auth": auth, "markets": [], "initial_dump": True})
        await listener.silence()
        await alice.placed(a_buy("alice"))
        assert (await listener.message())["type"] == "PLACEMENT"


@pytest.mark.parametrize(
    "changed",
    [
        {"apiKey": "nobody's"},
        {"secret": "x"},
        {"passphrase": "x"},
        {"secret": ""},
        None,
    ],
)
async def test_who_is_not_known_is_told_so_and_left(
    host: str, alice: Trader, changed: dict[str, str] | None
) -> None:
    auth = {"apiKey": alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    message: dict[str, Any] = {"type": "user"}
    message |= {} if changed is None else {"auth": auth | changed}
    async with listening(host, "/ws/user") as listener:
        await listener.send(message)
        assert (await listener.message())["error"] == "Unauthorized/Invalid api key"
        assert await listener.close_code() == 1008


async def test_who_logs_in_while_the_database_does_not_answer_is_told_so_and_left(
    rig: TradingRig, host: str, alice: Trader
) -> None:
    auth = {"apiKey": alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    async with rig.context.database.writing() as tx:
        await tx.execute(sa.text("ALTER TABLE api_keys RENAME TO hidden"))
    async with listening(host, "/ws/user") as listener:
        await listener.send({"type": "user", "auth": auth})
        message = await listener.message()
        assert (message["code"], message["error"]) == ("store_unavailable", message["message"])
        assert await listener.close_code() == 1013
    async with rig.context.database.writing() as tx:
        await tx.execute(sa.text("ALTER TABLE hidden RENAME TO api_keys"))
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(alice)


@pytest.mark.spec(53)
async def test_a_revoked_keys_connection_is_closed_at_once(
    rig: TradingRig, host: str, alice: Trader, alices: Listener
) -> None:
    other = await rig.trader("alice", nonce=1)
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(other)
        await alice.send("DELETE", "/auth/api-key")
        assert await alices.close_code() == 1008
        await other.placed(a_buy("alice"))
        assert (await listener.message())["type"] == "PLACEMENT"
    async with listening(host, "/ws/user") as again:
        await again.send({"type": "user", "auth": {"apiKey": alice.key_id, "secret": alice.secret}})
        assert (await again.message())["code"] == "revoked_key"


@pytest.mark.parametrize(
    ("messages", "told_of"),
    [
        ([{"markets": [MARKET]}], {"market"}),
        ([{"markets": [MARKET.upper().replace("0X", "0x")]}], {"market"}),
        ([{"markets": []}], {"market", "other"}),
        ([{"markets": [MARKET]}, {"operation": "subscribe", "markets": []}], {"market", "other"}),
        ([{"markets": []}, {"operation": "unsubscribe", "markets": [MARKET]}], {"other"}),
        (
            [
                {"markets": []},
                {"operation": "unsubscribe", "markets": [MARKET]},
                {"operation": "subscribe", "markets": [MARKET]},
            ],
            {"market", "other"},
        ),
        ([{"markets": [MARKET]}, {"operation": "unsubscribe", "markets": [MARKET]}], set()),
        ([{"markets": []}, {"operation": "unsubscribe", "markets": []}], set()),
        (
            [{"markets": [MARKET]}, {"operation": "subscribe", "markets": [a_word("other")]}],
            {"market", "other"},
        ),
    ],
)
async def test_markets_are_wanted_and_unwanted(
    rig: TradingRig,
    host: str,
    alice: Trader,
    messages: list[dict[str, Any]],
    told_of: set[str],
) -> None:
    await rig.open("other", "alice")
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(alice, **messages[0])
        for message in messages[1:]:
            await listener.send(message)
        await listener.silence()
        await alice.placed(a_buy("alice"))
        await alice.placed(a_buy("alice", market="other"))
        seen = {(await listener.message())["market"] for _ in told_of}
        await listener.silence()
    assert seen == {a_word(name) for name in told_of}


@pytest.mark.parametrize(
    "message",
    ["hello", {"type": "market"}, {"type": "user", "operation": "x"}, {"markets": "all"}],
)
async def test_what_is_not_understood_is_said_to_be_so(alices: Listener, message: object) -> None:
    await alices.send(message)
    assert await alices.text() == "INVALID OPERATION"


async def test_a_connection_names_only_so_many_markets(alices: Listener) -> None:
    markets = [a_word(f"m{number}") for number in range(MARKETS_PER_CONNECTION_MAX)]
    await alices.send({"operation": "unsubscribe", "markets": markets})
    await alices.silence()
    await alices.send({"operation": "unsubscribe", "markets": [MARKET]})
    assert await alices.text() == "INVALID OPERATION"


async def test_orders_and_trades_of_before_a_restart_are_followed(
    database_file: Path, tmp_path: Path
) -> None:
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market", "alice", "bob")
        alice, bob = await rig.trader("alice"), await rig.trader("bob")
        await bob.placed(a_sell("bob", price_ticks=40, size_units=5 * TOKEN))
        answer = await alice.placed(a_buy("alice", price_ticks=40, size_units=12 * TOKEN))
    async with a_rig(tmp_path / "journal", database_file) as rig:
        alice.rig = bob.rig = rig
        async with serving(rig.app) as host, listening(host, "/ws/user") as listener:
            await listener.log_in(alice)
            await rig.tell(a_settlement(answer["tradeIDs"][0], TradeStatus.MINED, a_word("tx")))
            mined = await listener.message()
            await bob.placed(a_sell("bob", price_ticks=40, size_units=5 * TOKEN, salt="2"))
            updated = await listener.message()
    assert (mined["status"], mined["size"]) == ("MINED", "5")
    assert (updated["size_matched"], len(updated["associate_trades"])) == ("10", 2)
    assert updated["id"] == answer["orderID"]


async def test_what_is_kept_of_orders_goes_with_them(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    await alice.placed(a_buy("alice", price_ticks=40))
    await bob.placed(a_sell("bob", price_ticks=40))
    await bob.placed(a_sell("bob", price_ticks=80))
    await bob.send("DELETE", "/cancel-all")
    user = rig.context.streams._user
    assert not user._live
    assert len(user._unsettled) == 1
    assert an_address("alice") in next(iter(user._unsettled.values())).addresses
