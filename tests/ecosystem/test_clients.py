"""Uses of programs of the ecosystem, through the unmodified clients that they use."""

import time
from typing import Any

import pytest
from tests.ecosystem.clients import Client, Family, Refused, a_client
from tests.rigs.trading import TradingRig
from tests.rigs.values import (
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    TOKEN,
    a_buy,
    a_sell,
    a_word,
    an_address,
    an_asset,
    an_observation,
)

from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, ChangeTick
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import SignatureType
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import checksum_address

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
MARKET = a_word("market")


def order_args(price: float, size: float, side: str = "BUY", **fields: Any) -> dict[str, Any]:
    args = {"token_id": YES, "price": price, "size": size, "side": side}
    return {"__type": "OrderArgs"} | args | fields


def market_args(amount: float, side: str = "BUY", **fields: Any) -> dict[str, Any]:
    return {"__type": "MarketOrderArgs", "token_id": YES, "amount": amount, "side": side} | fields


def tokens(*token_ids: str) -> list[dict[str, Any]]:
    return [{"__type": "BookParams", "token_id": token_id} for token_id in token_ids]


async def test_keys_are_created_derived_listed_and_deleted(host: str, family: Family) -> None:
    async with a_client(family, host, "alice") as alice:
        created = await alice.call("create_api_key", keep="one")
        assert await alice.call("create_api_key") == created
        assert await alice.call("derive_api_key") == created
        await alice.call("set_api_creds", {"__kept": "one"})
        other = await alice.call("create_api_key", 5)
        listed = await alice.call("get_api_keys")
        ids = listed["apiKeys"] if isinstance(listed, dict) else listed
        assert set(ids) == {created["api_key"], other["api_key"]}
        assert (await alice.call("get_closed_only_mode"))["closed_only"] is False
        assert await alice.call("delete_api_key")
        with pytest.raises(Refused) as refused:
            await alice.call("get_api_keys")
        assert refused.value.status == 401
        fresh = await alice.call("create_or_derive_api_creds")
        assert fresh["api_key"] not in {created["api_key"], other["api_key"]}


async def test_a_key_that_was_never_created_cannot_be_derived(host: str, family: Family) -> None:
    async with a_client(family, host, "bob") as bob:
        with pytest.raises(Refused) as refused:
            await bob.call("derive_api_key")
    assert refused.value.status in {400, 404}


async def test_the_server_answers(alice: Client) -> None:
    assert await alice.call("get_ok") == "OK"
    before_s = int(time.time())
    assert before_s <= await alice.call("get_server_time") <= time.time()


async def test_books_and_prices_are_read(rig: TradingRig, alice: Client) -> None:
    await rig.rest(a_buy("bob", price_ticks=40))
    await rig.rest(a_buy("bob", price_ticks=38))
    await rig.rest(a_sell("bob", price_ticks=45, size_units=7_500_000))
    book = await alice.call("get_order_book", YES, keep="book")
    assert [level["price"] for level in book["bids"]] == ["0.38", "0.4"]
    assert book["asks"] == [{"price": "0.45", "size": "7.5"}]
    assert await alice.call("get_order_book_hash", {"__kept": "book"}) == book["hash"]
    assert [each["asset_id"] for each in await alice.call("get_order_books", tokens(YES, NO))] == [
        YES,
        NO,
    ]
    assert await alice.call("get_midpoint", YES) == {"mid": "0.425"}
    assert await alice.call("get_midpoints", tokens(YES, NO)) == {YES: "0.425", NO: "0.575"}
    assert await alice.call("get_price", YES, "BUY") == {"price": "0.45"}
    sides = [each | {"side": "SELL"} for each in tokens(YES)]
    assert await alice.call("get_prices", sides) == {YES: {"SELL": "0.4"}}
    assert await alice.call("get_spread", YES) == {"spread": "0.05"}
    assert await alice.call("get_spreads", tokens(YES)) == {YES: "0.05"}
    assert await alice.call("get_tick_size", YES) == "0.01"
    assert await alice.call("get_neg_risk", YES) is False
    assert await alice.call("get_fee_rate_bps", YES) == 0


async def test_markets_are_listed(alice: Client) -> None:
    for method in (
        "get_markets",
        "get_simplified_markets",
        "get_sampling_markets",
        "get_sampling_simplified_markets",
    ):
        page = await alice.call(method)
        assert [market["condition_id"] for market in page["data"]] == [MARKET]
        assert page["next_cursor"] == "LTE="
    market = await alice.call("get_market", MARKET)
    assert [token["token_id"] for token in market["tokens"]] == [YES, NO]
    assert await alice.call("get_market_trades_events", MARKET) == []


async def test_a_limit_order_is_placed_read_and_canceled(rig: TradingRig, alice: Client) -> None:
    placed = await alice.call("create_and_post_order", order_args(0.4, 10))
    assert (placed["success"], placed["status"]) == (True, "live")
    order = await alice.call("get_order", placed["orderID"])
    assert (order["price"], order["original_size"], order["side"]) == ("0.4", "10", "BUY")
    assert [each["id"] for each in await alice.call("get_orders")] == [placed["orderID"]]
    params = {"__type": "OpenOrderParams", "market": MARKET, "asset_id": NO}
    assert await alice.call("get_orders", params) == []
    assert await alice.call("cancel", placed["orderID"]) == {
        "canceled": [placed["orderID"]],
        "not_canceled": {},
    }
    assert not rig.host.engine.state.live_orders


async def test_an_order_of_an_event_is_signed_for_its_exchange_and_placed(
    rig: TradingRig, alice: Client
) -> None:
    await rig.open("unique", "alice", exchange=NEG_RISK_EXCHANGE)
    token_id = an_asset(is_yes=True, market="unique")
    assert await alice.call("get_neg_risk", token_id) is True
    placed = await alice.call("create_and_post_order", order_args(0.4, 10, token_id=token_id))
    assert (placed["success"], placed["status"]) == (True, "live")
    order = rig.host.engine.state.live_orders[placed["orderID"]]
    assert order.condition_id == a_word("unique")


@pytest.mark.parametrize(
    ("price", "size"), [(0.01, 5), (0.99, 5.01), (0.57, 33.33), (0.33, 7.77), (0.29, 1234.56)]
)
@pytest.mark.parametrize("side", ["BUY", "SELL"])
async def test_orders_of_every_size_are_rounded_so_that_they_are_accepted(
    host: str, families: list[Family], price: float, size: float, side: str
) -> None:
    async with a_client(families[0], host, "alice") as alice:
        await alice.log_in()
        placed = await alice.call("create_and_post_order", order_args(price, size, side))
    assert placed["status"] == "live"


async def test_a_client_with_a_cached_tick_still_trades(rig: TradingRig, alice: Client) -> None:
    assert await alice.call("get_tick_size", YES) == "0.01"
    await rig.submit(ChangeTick(rig.clock.at_ms, MARKET, 1_000))
    placed = await alice.call("create_and_post_order", order_args(0.97, 10))
    order = await alice.call("get_order", placed["orderID"])
    assert (placed["status"], order["price"]) == ("live", "0.97")


async def test_a_client_that_starts_after_the_change_prices_in_the_finer_tick(
    rig: TradingRig, alice: Client
) -> None:
    await rig.rest(a_sell("bob", price_ticks=97, size_units=50 * TOKEN))
    await rig.submit(ChangeTick(rig.clock.at_ms, MARKET, 1_000))
    assert await alice.call("get_tick_size", YES) == "0.001"
    placed = await alice.call("create_and_post_order", order_args(0.965, 10))
    order = await alice.call("get_order", placed["orderID"])
    assert (placed["status"], order["price"]) == ("live", "0.965")
    await alice.call("create_market_order", market_args(12.5), keep="order")
    taken = await alice.call("post_order", {"__kept": "order"}, "FOK")
    assert taken["status"] == "matched"


async def test_an_order_till_a_date_is_placed(rig: TradingRig, alice: Client) -> None:
    expiration = rig.host.engine.clock_ms() // 1000 + 600
    await alice.call("create_order", order_args(0.4, 10, expiration=expiration), keep="order")
    placed = await alice.call("post_order", {"__kept": "order"}, "GTD")
    live = rig.host.engine.state.live_orders[placed["orderID"]]
    assert live.leaves_at_s == expiration - 60


async def test_a_post_only_order_is_placed_or_refused(rig: TradingRig, alice: Client) -> None:
    await rig.rest(a_sell("bob", price_ticks=40))
    await alice.call("create_order", order_args(0.4, 10), keep="crossing")
    with pytest.raises(Refused) as refused:
        await alice.call("post_order", {"__kept": "crossing"}, "GTC", post_only=True)
    assert refused.value.status == 400
    assert refused.value.error["error"] == "invalid post-only order: order crosses book"
    await alice.call("create_order", order_args(0.39, 10), keep="resting")
    assert (await alice.call("post_order", {"__kept": "resting"}, "GTC", post_only=True))[
        "status"
    ] == "live"


@pytest.mark.parametrize("order_type", ["FOK", "FAK"])
async def test_a_market_order_buys_for_a_sum(
    rig: TradingRig, alice: Client, order_type: str
) -> None:
    await rig.rest(a_sell("bob", price_ticks=40, size_units=10 * TOKEN))
    await rig.rest(a_sell("bob", price_ticks=43, size_units=50 * TOKEN))
    await alice.call("create_market_order", market_args(12.5), keep="order")
    placed = await alice.call("post_order", {"__kept": "order"}, order_type)
    assert placed["status"] == "matched"
    assert float(placed["makingAmount"]) == pytest.approx(12.5, abs=0.01)
    assert float(placed["takingAmount"]) == pytest.approx(10 + 8.5 / 0.43, abs=0.03)
    (trade,) = await alice.call("get_trades")
    assert trade["id"] == placed["tradeIDs"][0]
    assert (trade["trader_side"], len(trade["maker_orders"])) == ("TAKER", 2)


@pytest.mark.parametrize("order_type", ["FOK", "FAK"])
async def test_a_market_order_sells_shares(rig: TradingRig, alice: Client, order_type: str) -> None:
    await rig.rest(a_buy("bob", price_ticks=43, size_units=50 * TOKEN))
    await alice.call("create_market_order", market_args(20, "SELL"), keep="order")
    placed = await alice.call("post_order", {"__kept": "order"}, order_type)
    assert (placed["makingAmount"], placed["takingAmount"]) == ("20", "8.6")
    last = await alice.call("get_last_trade_price", YES)
    assert last == {"price": "0.43", "side": "SELL"}
    assert (await alice.call("get_last_trades_prices", tokens(YES)))[0]["price"] == "0.43"
    (event,) = await alice.call("get_market_trades_events", MARKET)
    assert event["user"]["address"] == checksum_address(alice.address)


async def test_an_order_that_cannot_be_filled_is_killed(rig: TradingRig, alice: Client) -> None:
    await rig.rest(a_sell("bob", price_ticks=40, size_units=10 * TOKEN))
    args = market_args(100, price=0.5)
    await alice.call("create_market_order", args, keep="order")
    with pytest.raises(Refused) as refused:
        await alice.call("post_order", {"__kept": "order"}, "FOK")
    assert refused.value.error["error"].startswith("order couldn't be fully filled")
    assert (await alice.call("post_order", {"__kept": "order"}, "FAK"))["takingAmount"] == "10"


async def test_orders_are_placed_and_canceled_together(rig: TradingRig, alice: Client) -> None:
    for number in range(3):
        args = order_args(0.2 + number / 100, 10)
        await alice.call("create_order", args, keep=f"order {number}")
    batch = [
        {"__type": "PostOrdersArgs", "order": {"__kept": f"order {number}"}, "orderType": "GTC"}
        for number in range(3)
    ]
    answers = await alice.call("post_orders", batch)
    ids = [answer["orderID"] for answer in answers]
    assert [answer["status"] for answer in answers] == ["live"] * 3
    assert (await alice.call("cancel_orders", ids[:1]))["canceled"] == ids[:1]
    assert (await alice.call("cancel_market_orders", "", NO))["canceled"] == []
    assert set((await alice.call("cancel_market_orders", MARKET))["canceled"]) == set(ids[1:])
    await alice.call("create_and_post_order", order_args(0.3, 10))
    assert len((await alice.call("cancel_all"))["canceled"]) == 1
    assert not rig.host.engine.state.live_orders


async def test_trades_are_filtered(rig: TradingRig, alice: Client) -> None:
    await rig.rest(a_sell("bob", price_ticks=40, size_units=20 * TOKEN))
    placed = await alice.call("create_and_post_order", order_args(0.4, 10))
    params = {"__type": "TradeParams", "id": placed["tradeIDs"][0], "market": MARKET}
    assert len(await alice.call("get_trades", params)) == 1
    now_s = int(time.time())
    later = {"__type": "TradeParams", "after": now_s + 1000}
    assert await alice.call("get_trades", later) == []
    own = {"__type": "TradeParams", "maker_address": alice.address, "before": now_s + 1000}
    assert len(await alice.call("get_trades", own)) == 1


async def test_balances_and_allowances_are_read(alice: Client) -> None:
    collateral = {"__type": "BalanceAllowanceParams", "asset_type": "COLLATERAL"}
    answer = await alice.call("get_balance_allowance", collateral)
    assert answer["balance"] == str(10**6 * TOKEN)
    assert checksum_address(EXCHANGE) in answer["allowances"]
    assert await alice.call("update_balance_allowance", collateral) == answer
    conditional = collateral | {"asset_type": "CONDITIONAL", "token_id": YES}
    assert (await alice.call("get_balance_allowance", conditional))["balance"] == str(10**6 * TOKEN)


async def test_a_program_sends_heartbeats_and_reads_empty_lists(alice: Client) -> None:
    first = (await alice.call("post_heartbeat", None))["heartbeat_id"]
    assert (await alice.call("post_heartbeat", first))["heartbeat_id"] != first
    assert await alice.call("get_notifications") == []
    await alice.call("drop_notifications", {"__type": "DropNotificationParams", "ids": ["1"]})
    params = {"__type": "OrderScoringParams", "orderId": a_word("x")}
    assert await alice.call("is_order_scoring", params) == {"scoring": False}
    many = {"__type": "OrdersScoringParams", "orderIds": [a_word("x")]}
    assert await alice.call("are_orders_scoring", many) == {a_word("x"): False}


async def test_a_refusal_has_the_words_that_clients_know(alice: Client) -> None:
    with pytest.raises(Refused) as refused:
        await alice.call("create_and_post_order", order_args(0.5, 10**8))
    assert refused.value.status == 400
    assert refused.value.error["error"] == "not enough balance / allowance"
    with pytest.raises(Refused) as refused:
        await alice.call("create_and_post_order", order_args(0.5, 1))
    assert "lower than the minimum: 5" in refused.value.error["error"]
    with pytest.raises(Refused) as refused:
        await alice.call("get_order_book", "12")
    assert refused.value.status == 404


@pytest.mark.parametrize("kind", [SignatureType.PROXY, SignatureType.SAFE])
async def test_a_wallet_trades_through_its_owner(
    rig: TradingRig, host: str, family: Family, kind: SignatureType
) -> None:
    wallet = rig.context.wallets.by_signature_type(an_address("alice"), kind)
    await rig.submit(
        an_observation(
            [BalanceSeen(wallet, COLLATERAL, 100 * TOKEN)],
            [AllowanceSeen(wallet, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
        )
    )
    async with a_client(family, host, "alice", signature_type=int(kind), funder=wallet) as alice:
        await alice.log_in()
        placed = await alice.call("create_and_post_order", order_args(0.4, 10))
        params = {"__type": "BalanceAllowanceParams", "asset_type": "COLLATERAL"}
        balance = await alice.call("get_balance_allowance", params)
    assert placed["status"] == "live"
    assert rig.host.engine.state.live_orders[placed["orderID"]].maker == wallet
    assert (balance["balance"], balance["reserved"]) == (str(100 * TOKEN), str(4 * TOKEN))


async def test_clients_of_different_families_trade_with_each_other(
    host: str, families: list[Family]
) -> None:
    one, other = families
    async with a_client(one, host, "alice") as alice, a_client(other, host, "bob") as bob:
        await alice.log_in()
        await bob.log_in()
        resting = await alice.call("create_and_post_order", order_args(0.4, 10))
        taking = await bob.call("create_and_post_order", order_args(0.6, 10, token_id=NO))
        assert taking["status"] == "matched"
        (trade,) = await alice.call("get_trades")
        assert trade["maker_orders"][0]["order_id"] == resting["orderID"]
        assert trade["maker_orders"][0]["match_type"] == "MINT"
