"""Programs that call every public method of a client, one for each dialect of methods.

A step names a method and its arguments. What a step keeps, later steps refer to.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.rigs.values import a_word, an_address, an_asset

from foretell.domain.values.hexadecimal import checksum_address

YES: Final = an_asset(is_yes=True)
NO: Final = an_asset(is_yes=False)
MARKET: Final = a_word("market")
BUILDER: Final = "0x" + "b1" * 32
ALICE: Final = checksum_address(an_address("alice"))
DAY: Final = "2026-01-31"


class Step(NamedTuple):
    """A call of a method; its result is kept under a name."""

    method: str
    args: tuple[Any, ...] = ()
    keep: str = ""


Program = tuple[Step, ...]


def kept(path: str) -> dict[str, str]:
    return {"__kept": path}


def typed(kind: str, **fields: Any) -> dict[str, Any]:
    return {"__type": kind} | fields


def steps(*methods: str, args: tuple[Any, ...] = ()) -> Iterator[Step]:
    """Yield a step of each method, with the same arguments."""
    for method in methods:
        yield Step(method, args)


def python_reads() -> Iterator[Step]:
    """Yield what the clients in Python read alike."""
    books = [typed("BookParams", token_id=token) for token in (YES, NO)]
    sides = [each | {"side": "SELL"} for each in books]
    yield from steps("get_ok", "get_server_time", "get_address", "get_version")
    yield from steps("assert_level_1_auth", "assert_level_2_auth")
    yield from steps("get_api_keys", "get_closed_only_mode", "get_notifications")
    yield from steps(
        *("get_markets", "get_simplified_markets"),
        *("get_sampling_markets", "get_sampling_simplified_markets"),
    )
    yield from steps("get_market", "get_market_trades_events", args=(MARKET,))
    yield from steps("get_clob_market_info", args=(MARKET,))
    yield Step("get_order_book", (YES,), keep="book")
    yield from steps("get_order_books", "get_midpoints", "get_spreads", args=(books,))
    yield from steps("get_last_trades_prices", args=(books,))
    yield from steps("get_midpoint", "get_spread", "get_tick_size", "get_neg_risk", args=(YES,))
    yield from steps("get_last_trade_price", "get_fee_rate_bps", args=(YES,))
    yield Step("get_price", (YES, "BUY"))
    yield Step("get_prices", (sides,))
    yield Step("calculate_market_price", (YES, "BUY", 2.0, "FOK"))
    collateral = typed("BalanceAllowanceParams", asset_type="COLLATERAL")
    yield from steps("get_balance_allowance", "update_balance_allowance", args=(collateral,))
    yield Step("is_order_scoring", (typed("OrderScoringParams", orderId=a_word("x")),))
    yield Step("are_orders_scoring", (typed("OrdersScoringParams", orderIds=[a_word("x")]),))
    yield Step("drop_notifications", (typed("DropNotificationParams", ids=["1"]),))
    yield from python_quotes()


def python_quotes() -> Iterator[Step]:
    """Yield the calls of the part for requests for quotes."""
    order = {"token_id": YES, "price": 0.5, "side": "BUY", "size": 10.0}
    both = {"request_id": "r", "quote_id": "q", "expiration": 4_000_000_000}
    yield Step("rfq.create_rfq_request", (typed("RfqUserRequest", **order),))
    yield Step("rfq.cancel_rfq_request", (typed("CancelRfqRequestParams", request_id="r"),))
    yield from steps(
        *("rfq.get_rfq_requests", "rfq.get_rfq_quotes", "rfq.rfq_config"),
        *("rfq.get_rfq_requester_quotes", "rfq.get_rfq_quoter_quotes"),
    )
    yield Step("rfq.create_rfq_quote", (typed("RfqUserQuote", request_id="r", **order),))
    yield Step("rfq.get_rfq_best_quote", (typed("GetRfqBestQuoteParams", request_id="r"),))
    yield Step("rfq.cancel_rfq_quote", (typed("CancelRfqQuoteParams", quote_id="q"),))
    yield Step("rfq.accept_rfq_quote", (typed("AcceptQuoteParams", **both),))
    yield Step("rfq.approve_rfq_order", (typed("ApproveOrderParams", **both),))


def python_orders(price: float) -> dict[str, Any]:
    return typed("OrderArgs", token_id=YES, price=price, size=10.0, side="BUY")


def python_market_order() -> dict[str, Any]:
    return typed("MarketOrderArgs", token_id=YES, amount=2.0, side="BUY")


def python_version_1() -> Iterator[Step]:
    """Yield the program of py-clob-client and kuest's clients."""
    yield Step("create_api_key", keep="created")
    yield from steps("derive_api_key")
    yield Step("create_or_derive_api_creds", keep="creds")
    yield Step("set_api_creds", (kept("creds"),))
    yield from python_reads()
    yield Step("get_order_book_hash", (kept("book"),))
    yield from steps("get_collateral_address", "get_conditional_address", "get_exchange_address")
    yield from steps("clear_tick_size_cache", "can_builder_auth", "assert_builder_auth")
    yield Step("get_builder_trades")
    yield Step("get_market_by_token", (YES,))
    yield Step("get_builder_fee_rate", (BUILDER,))
    yield Step("create_readonly_api_key", keep="readonly")
    yield Step("get_readonly_api_keys")
    yield Step("validate_readonly_api_key", (ALICE, kept("readonly.api_key")))
    yield Step("delete_readonly_api_key", (kept("readonly.api_key"),))
    yield from python_version_1_orders()


def python_version_1_orders() -> Iterator[Step]:
    """Yield the second half of that program: orders and trades."""
    yield Step("create_and_post_order", (python_orders(0.2),), keep="placed")
    yield Step("get_order", (kept("placed.orderID"),))
    yield from steps("get_orders")
    yield Step("cancel", (kept("placed.orderID"),))
    yield Step("create_order", (python_orders(0.21),), keep="order")
    yield Step("post_order", (kept("order"), "GTC"), keep="posted")
    yield Step("cancel_orders", ([kept("posted.orderID")],))
    batch = [typed("PostOrdersArgs", order=kept("other"), orderType="GTC")]
    yield Step("create_order", (python_orders(0.22),), keep="other")
    yield Step("post_orders", (batch,))
    yield Step("cancel_market_orders", (MARKET,))
    yield Step("create_market_order", (python_market_order(),), keep="market order")
    yield Step("post_order", (kept("market order"), "FOK"))
    yield from steps("get_trades", "cancel_all")
    yield Step("post_heartbeat", (None,))
    yield Step("delete_api_key")


def python_version_2() -> Iterator[Step]:
    """Yield the program of py-clob-client-v2."""
    yield Step("create_api_key", keep="created")
    yield from steps("derive_api_key")
    yield Step("create_or_derive_api_key", keep="creds")
    yield Step("set_api_creds", (kept("creds"),))
    yield from python_reads()
    levels = [typed("OrderSummary", price="0.4", size="1")]
    book = typed("OrderBookSummary", market=MARKET, asset_id=YES, bids=levels, asks=levels)
    yield Step("get_order_book_hash", (book,))
    yield Step("get_fee_exponent", (YES,))
    history = typed("PricesHistoryParams", market=YES, interval="1d")
    yield Step("get_prices_history", (history,))
    yield from steps("get_current_rewards", "get_reward_percentages", "get_pre_migration_orders")
    yield from steps(
        *("get_earnings_for_user_for_day", "get_total_earnings_for_user_for_day"),
        "get_user_earnings_and_markets_config",
        args=(DAY,),
    )
    yield Step("get_raw_rewards_for_market", (MARKET,))
    yield from python_version_2_keys()
    yield from python_version_2_orders()


def python_version_2_keys() -> Iterator[Step]:
    """Yield the second part of that program: keys of other kinds."""
    yield from steps("create_builder_api_key", "get_builder_api_keys", "revoke_builder_api_key")
    yield Step("get_builder_trades", (typed("BuilderTradeParams", builder_code=BUILDER),))
    yield Step("create_readonly_api_key", keep="readonly")
    yield Step("get_readonly_api_keys")
    yield Step("delete_readonly_api_key", (kept("readonly.apiKey"),))


def python_version_2_orders() -> Iterator[Step]:
    """Yield the last part of that program: orders and trades."""
    yield Step("create_and_post_order", (python_orders(0.2),), keep="placed")
    yield Step("get_order", (kept("placed.orderID"),))
    yield from steps("get_open_orders")
    yield Step("cancel_order", (typed("OrderPayload", orderID=kept("placed.orderID")),))
    yield Step("create_order", (python_orders(0.21),), keep="order")
    yield Step("post_order", (kept("order"), "GTC"), keep="posted")
    yield Step("cancel_orders", ([kept("posted.orderID")],))
    batch = [typed("PostOrdersV2Args", order=kept("other"), orderType="GTC")]
    yield Step("create_order", (python_orders(0.22),), keep="other")
    yield Step("post_orders", (batch,))
    yield Step("cancel_market_orders", (typed("OrderMarketCancelParams", market=MARKET),))
    yield Step("create_market_order", (python_market_order(),))
    options = typed("PartialCreateOrderOptions", tick_size="0.01", neg_risk=False)
    market_order = (python_market_order(), options, "FOK", True)
    yield Step("create_and_post_market_order", market_order)
    yield from steps("get_trades", "get_trades_paginated", "cancel_all", "post_heartbeat")
    yield Step("delete_api_key")


class WalletCall(NamedTuple):
    """A call that a wallet makes: its target and data."""

    wallet: str
    target: str
    data: str
    deadline_s: int


def python_relayer(made: WalletCall, *, is_kuest: bool) -> Iterator[Step]:
    """Yield the program of the clients of relayers in Python."""
    yield from steps("assert_signer_needed", "assert_builder_creds_needed")
    yield from steps("get_expected_deposit_wallet", "derive_deposit_wallet", "get_expected_safe")
    yield from steps("get_expected_proxy_wallet")
    yield Step("get_deployed", (made.wallet,))
    yield Step("deploy_deposit_wallet", keep="created")
    states = (["STATE_CONFIRMED"], "STATE_FAILED", 60, 1_000)
    yield Step("poll_until_state", (kept("created"), *states))
    kind = ("WALLET",)
    yield Step("get_nonce", (ALICE, *kind))
    yield Step("get_relay_payload", (ALICE, "SAFE"))
    calls = [typed("DepositWalletCall", target=made.target, value="0", data=made.data)]
    nonce = () if is_kuest else ("0",)
    batch = (calls, made.wallet, *nonce, str(made.deadline_s))
    yield Step("execute_deposit_wallet_batch", batch)
    yield Step("deploy")
    operation = typed("OperationType", name="Call")
    order = {"to": made.target, "operation": operation, "data": made.data, "value": "0"}
    safe_call = typed("SafeTransaction", **order)
    yield Step("execute", ([safe_call], "a call"))
    yield Step("get_transaction", (kept("created"),))
    yield from steps("get_transactions")


def python_proxies(made: WalletCall) -> Iterator[Step]:
    """Yield the program of the client in Python that knows proxy wallets: the methods for these."""
    yield Step("get_expected_proxy_wallet")
    yield Step("get_deployed", (made.wallet, "PROXY"))
    yield Step("get_relay_payload", (ALICE, "PROXY"))
    yield Step("get_nonce", (ALICE, "PROXY"))
    sent = [typed("Transaction", to=made.target, data=made.data, value="0")]
    yield Step("execute", (sent, "a call"), keep="sent")
    yield Step("poll_until_state", (kept("sent"), ["STATE_CONFIRMED"], "STATE_FAILED", 60, 1_000))
    yield Step("get_transaction", (kept("sent"),))


def typescript_proxies(made: WalletCall) -> Iterator[Step]:
    """Yield the same program of the client in TypeScript, which keeps its wallet's address to itself."""
    yield Step("getDeployed", (made.wallet, "PROXY"))
    yield Step("getRelayPayload", (ALICE, "PROXY"))
    yield Step("getNonce", (ALICE, "PROXY"))
    sent = [{"to": made.target, "data": made.data, "value": "0"}]
    yield Step("execute", (sent, "a call"), keep="sent")
    sent_id, states = kept("sent.transactionID"), (["STATE_CONFIRMED"], "STATE_FAILED", 60, 1_000)
    yield Step("pollUntilState", (sent_id, *states))
    yield Step("getTransaction", (sent_id,))


def typescript_relayer(made: WalletCall) -> Iterator[Step]:
    """Yield the program of the client of relayers in TypeScript."""
    yield Step("deriveDepositWalletAddress")
    yield Step("getDeployed", (made.wallet, "WALLET"))
    yield Step("deployDepositWallet", keep="created")
    states = (["STATE_CONFIRMED"], "STATE_FAILED", 60, 1_000)
    yield Step("pollUntilState", (kept("created.transactionID"), *states))
    yield Step("getNonce", (ALICE, "WALLET"))
    yield Step("getRelayPayload", (ALICE, "SAFE"))
    calls = [{"target": made.target, "value": "0", "data": made.data}]
    yield Step("executeDepositWalletBatch", (calls, made.wallet, str(made.deadline_s)))
    yield Step("deploy")
    yield Step("execute", ([{"to": made.target, "data": made.data, "value": "0"}], "a call"))
    yield Step("getTransaction", (kept("created.transactionID"),))
    yield from steps("getTransactions")
