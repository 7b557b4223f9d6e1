import asyncio
from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    EXCHANGE,
    TOKEN,
    a_buy,
    a_sell,
    a_signed_order,
    a_word,
    an_asset,
    an_observation,
)

from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import SignatureType
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.engine.protocol.requests import CancelOrdersRequest
from foretell.trading.handlers.cancels import CANCELS_PER_REQUEST_MAX

pytestmark = pytest.mark.anyio

DEAD = "order can't be found - already canceled or matched"


@pytest.mark.spec(102)
@pytest.mark.parametrize("name", ["orderID", "orderId"])
async def test_an_order_is_canceled_by_its_id(rig: TradingRig, alice: Trader, name: str) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    response = await alice.send("DELETE", "/order", {name: order_id})
    assert response.status_code == 200
    assert response.json() == {"canceled": [order_id], "not_canceled": {}}
    assert not rig.host.engine.state.live_orders


async def test_an_order_that_is_not_in_the_book_is_not_canceled(alice: Trader) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    await alice.send("DELETE", "/order", {"orderID": order_id})
    response = await alice.send("DELETE", "/order", {"orderID": order_id})
    assert response.json() == {"canceled": [], "not_canceled": {order_id: DEAD}}


async def test_an_order_of_another_address_is_not_canceled(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    one = await bob.send("DELETE", "/order", {"orderID": order_id})
    many = await bob.send("DELETE", "/orders", [order_id])
    everything = await bob.send("DELETE", "/cancel-all")
    market = await bob.send("DELETE", "/cancel-market-orders", {"market": a_word("market")})
    assert one.json() == many.json() == {"canceled": [], "not_canceled": {order_id: DEAD}}
    assert everything.json() == market.json() == {"canceled": [], "not_canceled": {}}
    assert list(rig.host.engine.state.live_orders) == [order_id]


@pytest.mark.parametrize("body", [{}, {"orderID": ""}, {"orderID": "0x12"}, {"orderID": "x" * 66}])
async def test_a_malformed_order_id_is_refused(alice: Trader, body: Any) -> None:
    response = await alice.send("DELETE", "/order", body)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid orderID")


@pytest.mark.parametrize("body", [[], 5, {"orderID": 5}, "x"])
async def test_a_malformed_body_of_a_cancel_is_refused(alice: Trader, body: Any) -> None:
    response = await alice.send("DELETE", "/order", body)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid order payload")


async def test_several_orders_are_canceled_at_once(alice: Trader) -> None:
    ids = [(await alice.placed(a_buy("alice", price_ticks=ticks)))["orderID"] for ticks in (20, 30)]
    gone = a_word("gone")
    response = await alice.send("DELETE", "/orders", [*ids, gone, ids[0].upper().replace("X", "x")])
    assert response.json() == {"canceled": ids, "not_canceled": {gone: DEAD}}


async def test_the_orders_of_one_cancel_are_bounded(alice: Trader) -> None:
    ids = [a_word("gone")] * (CANCELS_PER_REQUEST_MAX + 1)
    response = await alice.send("DELETE", "/orders", ids)
    assert response.json()["error"] == "Too many orders in payload, max allowed: 3000"
    assert (await alice.send("DELETE", "/orders", ids[1:])).status_code == 200


async def test_all_orders_of_an_address_are_canceled_whichever_key_and_wallet_they_have(
    rig: TradingRig, alice: Trader
) -> None:
    safe = rig.context.wallets.safe_of(alice.address)
    await rig.open("other", "alice")
    await rig.submit(
        an_observation(
            [BalanceSeen(safe, COLLATERAL, 100 * TOKEN)],
            [AllowanceSeen(safe, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
        )
    )
    orders = [
        a_buy("alice"),
        a_sell("alice", price_ticks=70),
        a_buy("alice", market="other"),
        a_signed_order("alice", maker=safe, signature_type=SignatureType.SAFE),
    ]
    ids = {(await alice.placed(order))["orderID"] for order in orders}
    other_key = await rig.trader("alice", nonce=1)
    canceled = (await other_key.send("DELETE", "/cancel-all")).json()["canceled"]
    assert set(canceled) == ids
    assert not rig.host.engine.state.live_orders


@pytest.mark.parametrize(
    ("body", "canceled"),
    [
        ({"market": a_word("market")}, {"yes", "no"}),
        ({"market": a_word("market").upper().replace("0X", "0x"), "asset_id": ""}, {"yes", "no"}),
        ({"asset_id": an_asset(is_yes=True)}, {"yes"}),
        ({"assetId": an_asset(is_yes=False), "market": ""}, {"no"}),
        ({"market": a_word("market"), "asset_id": an_asset(is_yes=True)}, {"yes"}),
        ({"market": a_word("other"), "asset_id": an_asset(is_yes=True)}, set()),
        ({"market": a_word("no such market")}, set()),
        ({"asset_id": "12"}, set()),
    ],
)
async def test_a_markets_orders_are_canceled_or_those_of_a_token(
    rig: TradingRig, alice: Trader, body: Any, canceled: set[str]
) -> None:
    await rig.open("other", "alice")
    orders = {
        "yes": a_buy("alice", price_ticks=20),
        "no": a_buy("alice", price_ticks=20, is_yes=False),
        "other": a_buy("alice", market="other"),
    }
    ids = {name: (await alice.placed(order))["orderID"] for name, order in orders.items()}
    response = await alice.send("DELETE", "/cancel-market-orders", body)
    assert set(response.json()["canceled"]) == {ids[name] for name in canceled}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Invalid order payload"),
        ({"market": "", "asset_id": ""}, "Invalid order payload"),
        ({"market": "0x12"}, "Invalid market"),
        ([], "Invalid order payload"),
    ],
)
async def test_a_market_must_be_named_to_cancel_its_orders(
    alice: Trader, body: Any, words: str
) -> None:
    response = await alice.send("DELETE", "/cancel-market-orders", body)
    assert (response.status_code, response.json()["error"]) == (400, words)


async def test_a_cancel_at_one_engine_waits_for_no_other_task(
    rig: TradingRig, alice: Trader
) -> None:
    """A finding: beside a busy loop each task costs a cancel two of its turns, and orders have none."""
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    loop, started = asyncio.get_running_loop(), list[str]()

    def start(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
        started.append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **options)

    request = CancelOrdersRequest(alice.address, [order_id])
    loop.set_task_factory(start)
    try:
        reply = await rig.context.shards.cancel(request)
    finally:
        loop.set_task_factory(None)
    assert reply.canceled == [order_id]
    assert started == []
