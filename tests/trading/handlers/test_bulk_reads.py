from typing import Any

import httpx
import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import TOKEN, a_buy, a_sell, a_settlement, a_word, an_asset

from foretell.domain.exchange.trade import TradeStatus
from foretell.trading.handlers.bulk_reads import ORDERS_MAX, VOLUMES_MAX

pytestmark = pytest.mark.anyio

YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
MARKET = a_word("market")


async def get(rig: TradingRig, path: str, **query: Any) -> Any:
    answer = await rig.client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def post(rig: TradingRig, path: str, body: object, **query: Any) -> httpx.Response:
    return await rig.client.post(path, json=body, params=query)


@pytest.mark.parametrize("path", ["/prices", "/midpoints", "/spreads"])
async def test_a_query_has_the_answer_of_the_body(rig: TradingRig, path: str) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    await rig.rest(a_sell("bob", price_ticks=45))
    body = [{"token_id": token_id} for token_id in (YES, NO, "7")]
    posted = (await post(rig, path, body)).json()
    assert len(posted) == 2
    assert await get(rig, path, token_ids=f"{YES},{NO},7") == posted
    assert await get(rig, path, token_id=[YES, NO, "7"]) == posted
    assert await get(rig, path) == {}
    refused = await rig.client.get(path, params={"token_ids": "x"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_token_id")


async def test_prices_are_of_one_side_if_it_is_named(rig: TradingRig) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    await rig.rest(a_sell("bob", price_ticks=45))
    assert await get(rig, "/prices", token_ids=YES, side="sell") == {YES: {"SELL": "0.4"}}
    refused = await rig.client.get("/prices", params={"token_ids": YES, "side": "x"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_side")


async def test_each_order_has_a_status_of_its_own(alice: Trader, bob: Trader) -> None:
    own = (await alice.placed(a_buy("alice")))["orderID"]
    other = (await bob.placed(a_buy("bob")))["orderID"]
    body = [{"orderId": each} for each in (other, own, own.upper().replace("0X", "0x"), "?")]
    answer = await alice.send("POST", "/data/orders", body)
    assert answer.status_code == 207
    results = answer.json()
    assert [each["status"] for each in results] == [404, 200, 200, 404]
    assert [each["orderId"] for each in results] == [each["orderId"] for each in body]
    assert results[1]["order"] == await alice.get(f"/data/order/{own}")
    assert results[0] == {"orderId": other, "status": 404, "error": "order not found"}


async def test_each_market_has_a_volume_or_a_status(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    await alice.placed(a_buy("alice", price_ticks=40, size_units=10 * TOKEN))
    await bob.placed(a_sell("bob", price_ticks=40, size_units=10 * TOKEN))
    await rig.settle_tables()
    unknown = a_word("unknown")
    body = [
        {"conditionId": MARKET, "tokenIds": [YES, NO]},
        {"conditionId": unknown},
        {"conditionId": MARKET, "tokenIds": ["7"]},
    ]
    answer = await post(rig, "/data/volumes", body, include_24h="true")
    assert answer.status_code == 207
    first, second, third = answer.json()
    assert first == {"conditionId": MARKET, "status": 200, "volume": "4", "volume24h": "4"}
    assert second == {"conditionId": unknown, "status": 404, "error": "market not found"}
    assert third["status"] == 400
    rig.clock.move(25 * 60 * 60 * 1000)
    later = (await post(rig, "/data/volumes", body[:1], include_24h="true")).json()
    assert (later[0]["volume"], later[0]["volume24h"]) == ("4", "0")
    assert "volume24h" not in (await post(rig, "/data/volumes", body[:1])).json()[0]


async def test_a_trade_that_has_failed_is_in_no_volume(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    for size_units in (10 * TOKEN, 5 * TOKEN):
        await alice.placed(a_buy("alice", price_ticks=40, size_units=size_units))
        await bob.placed(a_sell("bob", price_ticks=40, size_units=size_units))
    first, _ = rig.host.engine.state.unsettled_trades
    await rig.submit(a_settlement(first, TradeStatus.FAILED, ""))
    await rig.settle_tables()
    body = [{"conditionId": MARKET}]
    [result] = (await post(rig, "/data/volumes", body, include_24h="true")).json()
    assert (result["volume"], result["volume24h"]) == ("2", "2")


async def test_bulk_requests_are_bounded(alice: Trader) -> None:
    orders = [{"orderId": "x"}] * (ORDERS_MAX + 1)
    volumes = [{"conditionId": "x"}] * (VOLUMES_MAX + 1)
    answers = [
        await alice.send("POST", "/data/orders", orders),
        await post(alice.rig, "/data/volumes", volumes),
        await alice.send("POST", "/data/orders", {"orderId": "x"}),
    ]
    codes = [(each.status_code, each.json()["code"]) for each in answers]
    assert codes == [(400, "batch_too_long")] * 2 + [(400, "malformed_batch")]
