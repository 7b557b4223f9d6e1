"""The program that calls every public method of the trading clients in TypeScript."""

from collections.abc import Iterator
from typing import Any

from tests.ecosystem.compatibility.programs import (
    ALICE,
    BUILDER,
    DAY,
    MARKET,
    NO,
    YES,
    Step,
    kept,
    steps,
)
from tests.rigs.values import a_word


def typescript() -> Iterator[Step]:
    """Yield the program of both clients; each has a few methods that the other lacks."""
    yield Step("createApiKey", keep="created")
    yield from steps("deriveApiKey")
    yield Step("createOrDeriveApiKey", keep="creds")
    yield Step("set_api_creds", (kept("creds"),))
    yield from _reads()
    yield from _keys()
    yield from _quotes()
    yield from _orders()
    yield from steps("getTrades", "getTradesPaginated", "cancelAll", "postHeartbeat")
    yield from steps("revokeBuilderApiKey", "deleteApiKey")  # one client signs with either key


def _reads() -> Iterator[Step]:
    books = [{"token_id": token, "side": "SELL"} for token in (YES, NO)]
    yield from steps("getOk", "getServerTime", "getVersion", "getApiKeys", "getClosedOnlyMode")
    yield from steps(
        *("getMarkets", "getSimplifiedMarkets"),
        *("getSamplingMarkets", "getSamplingSimplifiedMarkets"),
    )
    yield from steps("getMarket", "getClobMarketInfo", "getMarketTradesEvents", args=(MARKET,))
    yield Step("getOrderBook", (YES,), keep="book")
    yield Step("getOrderBookHash", (kept("book"),))
    yield from steps("getOrderBooks", "getMidpoints", "getPrices", "getSpreads", args=(books,))
    yield from steps("getLastTradesPrices", args=(books,))
    yield from steps("getTickSize", "clearTickSizeCache", "getNegRisk", args=(YES,))
    yield from steps("getFeeRateBps", "getFeeExponent", "getMidpoint", "getSpread", args=(YES,))
    yield Step("getLastTradePrice", (YES,))
    yield Step("getPrice", (YES, "BUY"))
    yield Step("getPricesHistory", ({"market": YES, "interval": "1d"},))
    yield Step("calculateMarketPrice", (YES, "BUY", 2, "FOK"))
    collateral = {"asset_type": "COLLATERAL"}
    yield from steps("getBalanceAllowance", "updateBalanceAllowance", args=(collateral,))
    yield Step("isOrderScoring", ({"order_id": a_word("x")},))
    yield Step("areOrdersScoring", ({"orderIds": [a_word("x")]},))
    yield from steps("getNotifications", "getCurrentRewards", "getRewardPercentages")
    yield Step("dropNotifications", ({"ids": ["1"]},))
    yield from steps(
        *("getEarningsForUserForDay", "getTotalEarningsForUserForDay"),
        "getUserEarningsAndMarketsConfig",
        args=(DAY,),
    )
    yield Step("getRawRewardsForMarket", (MARKET,))
    yield Step("getPreMigrationOrders")


def _keys() -> Iterator[Step]:
    yield from steps("createBuilderApiKey", "getBuilderApiKeys")
    yield Step("getBuilderTrades", ({"builder_code": BUILDER},))
    yield Step("createReadonlyApiKey", keep="readonly")
    yield Step("getReadonlyApiKeys")
    yield Step("validateReadonlyApiKey", (ALICE, kept("readonly.apiKey")))
    yield Step("deleteReadonlyApiKey", (kept("readonly.apiKey"),))


def _quotes() -> Iterator[Step]:
    order = {"tokenID": YES, "price": 0.5, "side": "BUY", "size": 10}
    both = {"requestId": "r", "quoteId": "q", "expiration": 4_000_000_000}
    yield Step("rfq.createRfqRequest", (order,))
    yield Step("rfq.cancelRfqRequest", ({"requestId": "r"},))
    yield from steps(
        *("rfq.getRfqRequests", "rfq.rfqConfig"),
        *("rfq.getRfqRequesterQuotes", "rfq.getRfqQuoterQuotes"),
    )
    yield Step("rfq.createRfqQuote", (order | {"requestId": "r"},))
    yield Step("rfq.getRfqBestQuote", ({"requestId": "r"},))
    yield Step("rfq.cancelRfqQuote", ({"quoteId": "q"},))
    yield from steps("rfq.acceptRfqQuote", "rfq.approveRfqOrder", args=(both,))


def _order(price: float) -> dict[str, Any]:
    return {"tokenID": YES, "price": price, "size": 10, "side": "BUY"}


def _orders() -> Iterator[Step]:
    yield Step("createAndPostOrder", (_order(0.2),), keep="placed")
    yield Step("getOrder", (kept("placed.orderID"),))
    yield Step("getOpenOrders")
    yield Step("cancelOrder", ({"orderID": kept("placed.orderID")},))
    yield Step("createOrder", (_order(0.21),), keep="order")
    yield Step("postOrder", (kept("order"), "GTC"), keep="posted")
    yield Step("cancelOrders", ([kept("posted.orderID")],))
    yield Step("createOrder", (_order(0.22),), keep="other")
    yield Step("postOrders", ([{"order": kept("other"), "orderType": "GTC"}],))
    yield Step("cancelMarketOrders", ({"market": MARKET},))
    amount = {"tokenID": YES, "amount": 2, "side": "BUY"}
    yield Step("createMarketOrder", (amount,))
    yield Step("createAndPostMarketOrder", (amount, {"tickSize": "0.01"}, "FOK", True))
    exact = {"tokenID": YES, "makerAmount": "2000000", "takerAmount": "10000000", "side": "BUY"}
    yield Step("createExchangeV3OrderFromAmounts", (exact,))
