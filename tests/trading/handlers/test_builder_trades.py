"""Attribution: which builder brought an order, its trades, and the accounts of its fees."""

from typing import Any

import pytest
from tests.rigs.orders.builders import Builder, a_builder_of
from tests.rigs.orders.version_2 import a_builder, a_v2_buy, some_v2_fields
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_MS, NOW_S, TOKEN, a_buy, a_sell, a_settlement, a_word, some_rules

from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.builder_fees import BuilderRates
from foretell.domain.values.hexadecimal import Bytes32, checksum_address
from foretell.store.outbox.settlements import record_settlements
from foretell.store.trading.builder_trades import record_builder_rates

pytestmark = pytest.mark.anyio


@pytest.fixture
async def builder(rig: TradingRig) -> Builder:
    return await a_builder_of(await rig.trader("builder"))


async def trades_of(rig: TradingRig, code: str, **query: Any) -> list[Any]:
    answer = await rig.client.get("/builder/trades", params={"builder_code": code, **query})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


async def brought(builder: Builder, owner: Trader, order: Any, order_type: str = "GTC") -> Any:
    answer = await builder.bring(owner, order, order_type)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_trade_of_a_brought_order_is_the_builder_s(
    rig: TradingRig, alice: Trader, bob: Trader, builder: Builder
) -> None:
    resting = await bob.placed(a_sell("bob", 40, 5 * TOKEN))
    taking = await brought(builder, alice, a_buy("alice", 40, 10 * TOKEN))
    assert resting["status"] == "live"
    answer = await builder.send("GET", "/builder/trades")
    page = answer.json()
    assert (page["next_cursor"], page["count"]) == ("LTE=", 1)
    (trade,) = page["data"]
    assert "etag" not in answer.headers
    assert page["data"] == await trades_of(rig, builder.code)
    assert trade == {
        "id": taking["tradeIDs"][0],
        "tradeType": "TAKER",
        "takerOrderHash": taking["orderID"],
        "builder": builder.code,
        "market": trade["market"],
        "assetId": a_buy("alice").token_id,
        "side": "BUY",
        "size": "5",
        "sizeUsdc": "2",
        "price": "0.4",
        "status": "MATCHED",
        "outcome": "Yes",
        "outcomeIndex": 0,
        "owner": "00000000-0000-0000-0000-000000000000",
        "maker": checksum_address(alice.address),
        "transactionHash": "",
        "matchTime": str(NOW_S),
        "bucketIndex": 0,
        "fee": "0",
        "feeUsdc": "0",
        "builderFee": "0",
        "builderCode": builder.code,
        "err_msg": None,
        "code": None,
        "createdAt": trade["createdAt"],
        "updatedAt": trade["createdAt"],
    }


async def test_a_maker_s_builder_has_the_maker_s_part(
    rig: TradingRig, alice: Trader, bob: Trader, builder: Builder
) -> None:
    await brought(builder, bob, a_sell("bob", 40, 6 * TOKEN))
    await bob.placed(a_sell("bob", 39, 5 * TOKEN))
    await alice.placed(a_buy("alice", 40, 11 * TOKEN))
    (trade,) = await trades_of(rig, builder.code)
    assert (trade["tradeType"], trade["side"], trade["size"]) == ("MAKER", "SELL", "6")
    assert (trade["sizeUsdc"], trade["price"]) == ("2.4", "0.4")
    assert trade["maker"] == checksum_address(bob.address)


async def test_the_code_that_an_owner_signed_goes_before_the_headers(
    rig: TradingRig, alice: Trader, bob: Trader, builder: Builder
) -> None:
    await bob.placed(a_sell("bob", 50, 20 * TOKEN))
    signed = a_builder(7)
    await brought(builder, alice, a_v2_buy("alice", v2=some_v2_fields(builder=signed)))
    assert len(await trades_of(rig, signed)) == 1
    assert await trades_of(rig, builder.code) == []


async def test_trades_of_a_builder_are_filtered_and_paged(
    rig: TradingRig, alice: Trader, bob: Trader, builder: Builder
) -> None:
    await bob.placed(a_sell("bob", 40, 12 * TOKEN))
    first = await brought(builder, alice, a_buy("alice", 40, 5 * TOKEN))
    rig.clock.at_ms += 10_000
    second = await brought(builder, alice, a_buy("alice", 40, 7 * TOKEN))
    ids = [each["tradeIDs"][0] for each in (second, first)]
    market = (await trades_of(rig, builder.code))[0]["market"]
    token = a_buy("alice").token_id
    later_s = NOW_S + 5
    for query, expected in (
        ({}, ids),
        ({"id": ids[0]}, ids[:1]),
        ({"before": later_s}, ids[1:]),
        ({"after": later_s}, ids[:1]),
        ({"market": market, "asset_id": token, "maker_address": alice.address}, ids),
        ({"market": a_word("another")}, []),
        ({"asset_id": "1"}, []),
        ({"maker_address": bob.address}, []),
        ({"next_cursor": "MQ=="}, ids[1:]),
    ):
        found = await trades_of(rig, builder.code, **query)
        assert [each["id"] for each in found] == expected


@pytest.mark.parametrize("code", ["", "0x1", "x" * 66, "1" * 64])
async def test_a_code_is_32_bytes(rig: TradingRig, code: str) -> None:
    answer = await rig.client.get("/builder/trades", params={"builder_code": code})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_builder_code")


async def test_fees_are_accounted_by_the_rates_of_the_trade_s_time(rig: TradingRig) -> None:
    await rig.open("feed", "alice", "bob", rules=some_rules(fee_rate_bps=441))
    alice, bob = await rig.trader("alice"), await rig.trader("bob")
    builder = await a_builder_of(bob)
    await set_rates(rig, builder.code, BuilderRates(NOW_MS, 3000, 100))
    fields: dict[str, Any] = {"market": "feed", "fee_rate_bps": 441}
    await brought(builder, bob, a_sell("bob", 50, 100 * TOKEN, **fields))
    taken = await brought(builder, alice, a_buy("alice", 50, 100 * TOKEN, **fields))
    await set_rates(rig, builder.code, BuilderRates(NOW_MS + 1, 0, 0))
    taker, maker = await trades_of(rig, builder.code)
    assert (taker["fee"], taker["feeUsdc"], taker["builderFee"]) == ("1.575", "1.575", "0.4725")
    assert (maker["fee"], maker["builderFee"]) == ("0.5", "0.5")
    (trade_id,) = taken["tradeIDs"]
    async with rig.context.database.writing() as tx:
        await record_settlements(tx, [Settlement(trade_id, failure="InvalidNonce")])
    await rig.submit(a_settlement(trade_id, TradeStatus.FAILED))
    failed = await trades_of(rig, builder.code)
    assert [each["fee"] for each in failed] == ["0", "0"]
    assert {(each["err_msg"], each["code"]) for each in failed} == {
        ("InvalidNonce", "invalid_nonce")
    }


async def test_the_rates_of_a_builder_are_zero_until_the_operator_sets_them(
    rig: TradingRig, builder: Builder
) -> None:
    path = f"/fees/builder-fees/{builder.code}"
    assert set((await rig.client.get(path)).json().values()) == {0}
    await set_rates(rig, builder.code, BuilderRates(NOW_MS, 3000, 50))
    await set_rates(rig, builder.code, BuilderRates(NOW_MS + 10**9, 1, 1))
    assert (await rig.client.get(path)).json() == {
        "builder_maker_flat_fee_bps": 50,
        "builder_taker_fee_share_bps": 3000,
        "builder_maker_fee_rate_bps": 50,
        "builder_taker_fee_rate_bps": 0,
    }


async def test_an_order_that_is_brought_again_by_another_stays_the_first_builder_s(
    rig: TradingRig, alice: Trader, bob: Trader, builder: Builder
) -> None:
    order = a_buy("alice", 40, 5 * TOKEN)
    await brought(builder, alice, order)
    other = await a_builder_of(bob)
    assert (await brought(other, alice, order))["replayed"] is True
    await bob.placed(a_sell("bob", 40, 5 * TOKEN))
    assert len(await trades_of(rig, builder.code)) == 1
    assert await trades_of(rig, other.code) == []


async def set_rates(rig: TradingRig, code: Bytes32, rates: BuilderRates) -> None:
    async with rig.context.database.writing() as tx:
        await record_builder_rates(tx, code, rates)
