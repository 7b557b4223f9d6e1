from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig, a_rig
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
    an_asset,
    an_observation,
    an_order_id,
    some_funds,
)
from tests.trading.rig import Listener, listening

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
from foretell.engine.writer.returned_orders import returned_order
from foretell.store.trading.orders import load_orders
from foretell.trading.wire.orders import ZERO_UUID

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
MARKET = a_word("market")


Story = Callable[[Trader, Trader], Coroutine[Any, Any, tuple[str, int]]]
"""Changes an order of alice; returns its id and the number of messages about it."""


def kind_of(message: dict[str, Any]) -> tuple[str, str, str]:
    return message["event_type"], message["type"], message["status"]


async def test_a_resting_order_is_published_as_a_placement(alice: Trader, alices: Listener) -> None:
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
    assert kind_of(placed) == ("order", "PLACEMENT", "LIVE")
    assert kind_of(updated) == ("order", "UPDATE", "MATCHED")
    assert (placed["size_matched"], updated["size_matched"]) == ("0", "10")
    assert updated["associate_trades"] == answer["tradeIDs"]
    assert kind_of(trade) == ("trade", "TRADE", "MATCHED")
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
    assert (kind_of(updated), updated["size_matched"]) == (("order", "UPDATE", "LIVE"), "6")


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
    assert (kind_of(first), first["size_matched"]) == (("order", "UPDATE", "LIVE"), "6")
    assert (kind_of(second), second["size_matched"]) == (("order", "UPDATE", "MATCHED"), "10")
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
    assert kind_of(updated) == ("order", "UPDATE", "MATCHED")


async def test_a_canceled_order_is_published_with_its_reason(
    alice: Trader, alices: Listener
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    await alice.send("DELETE", "/order", {"orderID": order_id})
    _, gone = await alices.messages(2)
    assert (gone["id"], kind_of(gone)) == (order_id, ("order", "CANCELLATION", "CANCELED"))
    assert gone["close_reason"] == "canceled"


async def test_an_order_that_leaves_the_book_by_itself_is_published(
    rig: TradingRig, alice: Trader, alices: Listener
) -> None:
    await alice.placed(a_buy("alice", expiration_s=NOW_S + 100), "GTD")
    await rig.submit(ExpireOrders(NOW_MS + 40_000))
    _, expired = await alices.messages(2)
    assert (expired["close_reason"], expired["timestamp"]) == ("expired", str(NOW_S + 40))
    await alice.placed(a_buy("alice", price_ticks=20))
    gone = AllowanceSeen(alice.address, EXCHANGE, is_collateral=True, units=0)
    await rig.submit(an_observation(allowances=[gone]))
    _, underfunded = await alices.messages(2)
    assert underfunded["close_reason"] == "underfunded"


@pytest.mark.parametrize("reason", ["canceled_on_chain", "nonce_raised"])
async def test_an_order_that_its_maker_ended_on_the_chain_is_published(
    rig: TradingRig, alice: Trader, alices: Listener, reason: str
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    ends = {
        "canceled_on_chain": an_observation(cancels=(CancelSeen(EXCHANGE, order_id),)),
        "nonce_raised": an_observation(nonces=(NonceSeen(EXCHANGE, alice.address, 1),)),
    }
    await rig.submit(ends[reason])
    _, gone = await alices.messages(2)
    assert (gone["id"], kind_of(gone)) == (order_id, ("order", "CANCELLATION", "CANCELED"))
    assert gone["close_reason"] == reason
    assert (await alice.get(f"/data/order/{order_id}"))["close_reason"] == reason


async def test_the_end_of_a_market_closes_its_orders(
    rig: TradingRig, alice: Trader, alices: Listener
) -> None:
    await alice.placed(a_buy("alice"))
    await rig.submit(ResolveMarket(NOW_MS, MARKET))
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
    assert kind_of(messages[-2]) == ("order", "UPDATE", "MATCHED")


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
async def test_an_order_closes_for_the_reason_that_the_api_returns(
    alice: Trader, bob: Trader, alices: Listener, story: Story, reason: str | None
) -> None:
    order_id, count = await story(alice, bob)
    messages = [each for each in await alices.messages(count) if each["event_type"] == "order"]
    assert [each["close_reason"] for each in messages] == [None, reason]
    assert (await alice.get(f"/data/order/{order_id}"))["close_reason"] == reason


async def test_an_order_of_ones_own_in_the_way_is_canceled(alice: Trader, alices: Listener) -> None:
    own = (await alice.placed(a_sell("alice", price_ticks=40)))["orderID"]
    await alice.placed(a_buy("alice", price_ticks=40))
    _, placed, gone = await alices.messages(3)
    assert placed["type"] == "PLACEMENT"
    assert (gone["id"], gone["close_reason"]) == (own, "self_trade")


async def test_a_trade_is_published_at_every_step_of_its_settlement(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    (trade_id,) = (await alice.placed(a_buy("alice", price_ticks=40)))["tradeIDs"]
    await alices.messages(3)
    rig.clock.move(5_000)
    await rig.submit(
        a_settlement(trade_id, TradeStatus.RETRYING, ""),
        a_settlement(trade_id, TradeStatus.CONFIRMED, a_word("tx")),
    )
    messages = await alices.messages(3)
    assert [message["status"] for message in messages] == ["RETRYING", "MINED", "CONFIRMED"]
    assert [message["transaction_hash"] for message in messages] == ["", a_word("tx"), a_word("tx")]
    assert {message["id"] for message in messages} == {trade_id}
    assert not rig.context.streams.user.unsettled_trades


async def test_a_trade_that_splits_is_published_part_by_part(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    carol = await rig.trader("carol")
    await rig.submit(some_funds("alice", "bob", "carol"))
    await bob.placed(a_sell("bob", price_ticks=40))
    refused = (await carol.placed(a_sell("carol", price_ticks=40, size_units=20 * TOKEN)))[
        "orderID"
    ]
    buying = a_buy("alice", price_ticks=40, size_units=25 * TOKEN)
    (trade_id,) = (await alice.placed(buying))["tradeIDs"]
    await alices.messages(3)
    await rig.submit(SplitTrade(NOW_MS, trade_id, ((refused,),), (refused,)))
    kept, part = await alices.messages(2)
    assert [(each["status"], each["size"]) for each in (kept, part)] == [
        ("MATCHED", "10"),
        ("MATCHED", "15"),
    ]
    assert [each["maker_orders"][0]["order_id"] for each in (kept, part)][1] == refused
    assert (kept["id"], kept["bucket_index"], part["bucket_index"]) == (trade_id, 0, 0)
    cause = a_settlement(part["id"], TradeStatus.FAILED, "", cause="OrderExpired")
    await rig.submit(cause)
    failed = await alices.message()
    assert (failed["id"], failed["status"]) == (part["id"], "FAILED")
    assert (failed["err_msg"], failed["code"]) == ("OrderExpired", "order_expired")
    gone = await carol.get(f"/data/order/{refused}")
    assert (gone["close_reason"], gone["associate_trades"]) == ("reverts_on_chain", [part["id"]])
    statuses = {each["id"]: each["status"] for each in (await alice.get("/data/trades"))["data"]}
    assert statuses == {trade_id: "MATCHED", part["id"]: "FAILED"}


async def test_an_order_that_a_failed_trade_gives_back_is_published_as_live(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    await rig.submit(some_funds("alice", "bob"))
    selling = a_sell("alice", price_ticks=40)
    order_id = (await alice.placed(selling))["orderID"]
    (trade_id,) = (await bob.placed(a_buy("bob", price_ticks=40)))["tradeIDs"]
    await alices.messages(3)
    await rig.settle_tables()
    async with rig.context.database.reading() as tx:
        row = returned_order((await load_orders(tx, [order_id]))[order_id], {order_id: [trade_id]})
    failed = a_settlement(trade_id, TradeStatus.FAILED, "")
    seen = msgspec.structs.replace(failed.trades[0], returned=(row,))
    await rig.submit(msgspec.structs.replace(failed, trades=(seen,)))
    order, trade = await alices.messages(2)
    assert (order["event_type"], order["type"], order["id"]) == ("order", "UPDATE", order_id)
    assert (order["status"], order["size_matched"], order["close_reason"]) == ("LIVE", "0", None)
    assert (trade["id"], trade["status"]) == (trade_id, "FAILED")
    listed = await alice.get(f"/data/order/{order_id}")
    assert (listed["status"], listed["size_matched"]) == ("LIVE", "0")
    cancel = await alice.send("DELETE", "/order", {"orderID": order_id})
    assert cancel.json()["canceled"] == [order_id]


async def test_a_maker_receives_only_the_part_of_its_fill(
    rig: TradingRig, host: str, alice: Trader, bob: Trader
) -> None:
    carol = await rig.trader("carol")
    await rig.submit(some_funds("alice", "bob", "carol"))
    await bob.placed(a_sell("bob", price_ticks=40))
    other = (await carol.placed(a_sell("carol", price_ticks=40)))["orderID"]
    async with listening(host, "/ws/user") as bobs, listening(host, "/ws/user") as carols:
        await bobs.log_in(bob)
        await carols.log_in(carol)
        buying = a_buy("alice", price_ticks=40, size_units=20 * TOKEN)
        (trade_id,) = (await alice.placed(buying))["tradeIDs"]
        await bobs.messages(2)
        await carols.messages(2)
        await rig.submit(SplitTrade(NOW_MS, trade_id, ((other,),), ()))
        assert (await bobs.message())["id"] == trade_id
        assert (await carols.message())["id"] != trade_id
        await bobs.silence()
        await carols.silence()


async def test_orders_in_the_book_name_the_part_that_their_fill_went_to(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    carol = await rig.trader("carol")
    await rig.submit(some_funds("alice", "bob", "carol"))
    other = (await carol.placed(a_sell("carol", price_ticks=40)))["orderID"]
    placed = await alice.placed(a_buy("alice", price_ticks=40, size_units=30 * TOKEN))
    (trade_id,) = placed["tradeIDs"]
    await alices.messages(3)
    await rig.submit(SplitTrade(NOW_MS, trade_id, ((other,),), ()))
    _, part = await alices.messages(2)
    await alice.send("DELETE", "/order", {"orderID": placed["orderID"]})
    assert (await alices.message())["associate_trades"] == [trade_id, part["id"]]


async def test_a_trade_is_published_to_both_sides_only(
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


async def test_every_key_of_an_address_receives_its_orders(
    rig: TradingRig, host: str, alice: Trader, alices: Listener
) -> None:
    other = await rig.trader("alice", nonce=1)
    async with listening(host, "/ws/user/") as listener:
        await listener.log_in(other)
        await alice.placed(a_buy("alice"))
        assert (await listener.message())["owner"] == alice.key_id
        assert (await alices.message())["type"] == "PLACEMENT"


async def test_orders_and_trades_from_before_a_restart_are_published(
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
            await rig.submit(a_settlement(answer["tradeIDs"][0], TradeStatus.MINED, a_word("tx")))
            mined = await listener.message()
            await bob.placed(a_sell("bob", price_ticks=40, size_units=5 * TOKEN, salt="2"))
            updated = await listener.message()
    assert (mined["status"], mined["size"]) == ("MINED", "5")
    assert (updated["size_matched"], len(updated["associate_trades"])) == ("10", 2)
    assert updated["id"] == answer["orderID"]


async def test_an_order_that_is_over_is_kept_only_in_its_unsettled_trade(
    rig: TradingRig, alice: Trader, bob: Trader, alices: Listener
) -> None:
    await alice.placed(a_buy("alice", price_ticks=40))
    (trade_id,) = (await bob.placed(a_sell("bob", price_ticks=40)))["tradeIDs"]
    await bob.placed(a_sell("bob", price_ticks=80))
    await bob.send("DELETE", "/cancel-all")
    user = rig.context.streams.user
    assert not user.live_orders
    assert list(user.unsettled_trades) == [trade_id]
    await alices.messages(3)
    await rig.submit(a_settlement(trade_id, TradeStatus.MINED, a_word("tx")))
    assert (await alices.message())["id"] == trade_id
