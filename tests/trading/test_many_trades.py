"""An order with more trades than it names: every read and each message has the newest of them."""

import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import TOKEN, a_buy, a_sell, some_funds
from tests.trading.rig import listening

pytestmark = pytest.mark.anyio

MOST = 100
FILLS = 105


async def filled(rig: TradingRig, alice: Trader) -> tuple[str, list[str]]:
    """Fill an order of alice bit by bit, and return it and the trades."""
    await rig.submit(some_funds("alice", "bob", units=10**9 * TOKEN))
    order_id = (await alice.placed(a_buy("alice", 40, 10 * FILLS * TOKEN)))["orderID"]
    sells = [a_sell("bob", 40, 5 * TOKEN, salt=str(salt)) for salt in range(FILLS)]
    for sell in sells:
        await rig.rest(sell)
    await rig.settle_tables()
    rows = (await alice.get("/data/trades"))["data"]
    return order_id, [row["id"] for row in rows][::-1]


async def test_attack_h1_every_read_of_an_order_names_its_newest_trades(
    rig: TradingRig, alice: Trader
) -> None:
    order_id, newest = await filled(rig, alice)
    [listed] = (await alice.get("/data/orders"))["data"]
    bulk = (await alice.send("POST", "/data/orders", [{"orderId": order_id}])).json()
    for read in (listed, await alice.get(f"/data/order/{order_id}"), bulk[0]["order"]):
        assert (len(read["associate_trades"]), read["id"]) == (MOST, order_id)
        assert sorted(read["associate_trades"]) == sorted(newest)
        assert read["size_matched"] == str(5 * FILLS)


async def test_attack_h1_an_update_of_an_order_names_its_newest_trades(
    rig: TradingRig, alice: Trader
) -> None:
    async with serving(rig.app) as host, listening(host, "/ws/user") as alices:
        await alices.log_in(alice)
        await filled(rig, alice)
        messages = await alices.messages(1 + 2 * FILLS)
        updates = [each for each in messages if each["event_type"] == "order"]
        trades = [each["id"] for each in messages if each["event_type"] == "trade"]
        assert [len(each["associate_trades"]) for each in updates[MOST - 1 :]] == [
            MOST - 1,
            *[MOST] * (FILLS + 1 - MOST),
        ]
        assert updates[-1]["associate_trades"] == trades[-MOST:]
        assert len(rig.context.streams.user.live_orders[updates[0]["id"]].trade_ids) == MOST
