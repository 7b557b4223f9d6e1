"""Uses of the clients that sign version 2 of the order struct: for addresses, Safes and deposit wallets."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from tests.ecosystem.clients import (
    KUEST_V2,
    NAMES,
    POLYMARKET_V2,
    Client,
    Family,
    Refused,
    a_client,
)
from tests.rigs.orders.version_2 import a_deposit_wallet
from tests.rigs.trading import TradingRig
from tests.rigs.values import (
    EXCHANGE,
    TOKEN,
    a_sell,
    a_word,
    an_address,
    an_asset,
    an_observation,
)

from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, checksum_address

pytestmark = pytest.mark.anyio

YES: Final = an_asset(is_yes=True)
NO: Final = an_asset(is_yes=False)
BUILDER: Final = "0x" + "b1" * 32


@contextlib.asynccontextmanager
async def running(*names: str) -> AsyncIterator[list[Family]]:
    families = [Family(name) for name in names]
    try:
        yield families
    finally:
        for family in families:
            await family.stop()


def order_args(price: float, size: float, side: str = "BUY", **fields: Any) -> dict[str, Any]:
    args = {"token_id": YES, "price": price, "size": size, "side": side}
    return {"__type": "OrderArgs"} | args | fields


async def endow(rig: TradingRig, wallet: Address, market: str = "market") -> None:
    """Have the engine see collateral and both tokens of a wallet, and its approvals."""
    tokens = [an_asset(is_yes=is_yes, market=market) for is_yes in (True, False)]
    assets: list[AssetId] = [COLLATERAL, *tokens]
    await rig.submit(
        an_observation(
            [BalanceSeen(wallet, asset, 1_000 * TOKEN) for asset in assets],
            [
                AllowanceSeen(wallet, EXCHANGE, is_collateral=kind, units=AMOUNT_UNITS_MAX)
                for kind in (True, False)
            ],
        )
    )
    rig.chain.contracts.add(wallet)
    rig.chain.owners_by_wallet[wallet] = (an_address("alice"),)


@contextlib.asynccontextmanager
async def polymarket(
    family: Family, host: str, person: str, kind: int, funder: Address | None = None
) -> AsyncIterator[Client]:
    async with a_client(family, host, person, kind, funder) as client:
        await client.log_in("create_or_derive_api_key")
        yield client


@contextlib.asynccontextmanager
async def kuest(family: Family, host: str, person: str, funder: Address) -> AsyncIterator[Client]:
    async with a_client(family, host, person, 3, funder) as client:
        await client.log_in()
        yield client


@pytest.mark.parametrize("kind", ["address", "proxy", "safe", "wallet"])
async def test_polymarket_s_client_signs_version_2_for_every_wallet(
    rig: TradingRig, host: str, kind: str
) -> None:
    alice = an_address("alice")
    number, funder = {
        "address": (0, None),
        "proxy": (1, rig.context.wallets.proxy_wallet_of(alice)),
        "safe": (2, rig.context.wallets.safe_of(alice)),
        "wallet": (3, a_deposit_wallet("alice", 1)),
    }[kind]
    await endow(rig, funder or alice)
    async with (
        running(POLYMARKET_V2) as [family],
        polymarket(family, host, "alice", number, funder) as client,
    ):
        assert await client.call("get_version") == 2
        args = order_args(0.4, 10, builder_code=BUILDER)
        placed = await client.call("create_and_post_order", args)
        assert (placed["success"], placed["status"]) == (True, "live")
        order = await client.call("get_order", placed["orderID"])
        assert order["maker_address"] == checksum_address(funder or alice)
        assert [each["id"] for each in await client.call("get_open_orders")] == [placed["orderID"]]
        balance = await client.call(
            "get_balance_allowance",
            {"__type": "BalanceAllowanceParams", "asset_type": "COLLATERAL"},
        )
        assert int(balance["balance"]) == 1_000 * TOKEN
        payload = {"__type": "OrderPayload", "orderID": placed["orderID"]}
        canceled = await client.call("cancel_order", payload)
        assert canceled["canceled"] == [placed["orderID"]]


async def test_polymarket_s_client_makes_builder_s_keys_and_reads_a_builder_s_trades(
    rig: TradingRig, host: str
) -> None:
    await endow(rig, an_address("alice"))
    async with (
        running(POLYMARKET_V2) as [family],
        polymarket(family, host, "alice", 0) as client,
    ):
        made = await client.call("create_builder_api_key")
        assert set(made) == {"key", "secret", "passphrase"}
        assert [each["key"] for each in await client.call("get_builder_api_keys")] == [made["key"]]
        placed = await client.call(
            "create_and_post_order", order_args(0.4, 10, builder_code=BUILDER)
        )
        await rig.rest(a_sell("bob", price_ticks=40, size_units=10 * TOKEN))
        found = await client.call(
            "get_builder_trades", {"__type": "BuilderTradeParams", "builder_code": BUILDER}
        )
        (trade,) = found["trades"]
        assert (trade["tradeType"], trade["size"], trade["price"]) == ("MAKER", "10", "0.4")
        assert placed["status"] == "live"
        assert await client.call("revoke_builder_api_key") == "OK"
        assert await client.call("get_builder_api_keys") == []


@pytest.mark.parametrize(("side", "amount"), [("BUY", 1.0), ("BUY", 7.77), ("SELL", 0.01)])
async def test_polymarket_s_client_sends_market_orders_of_any_size(
    rig: TradingRig, host: str, side: str, amount: float
) -> None:
    await rig.rest(a_sell("bob", price_ticks=41))
    await rig.rest(a_sell("bob", price_ticks=65, size_units=100 * TOKEN, is_yes=False))
    async with (
        running(POLYMARKET_V2) as [family],
        polymarket(family, host, "alice", 0) as client,
    ):
        args = {
            "__type": "MarketOrderArgs",
            "token_id": YES,
            "amount": amount,
            "side": side,
            "price": 0.5 if side == "BUY" else 0.3,
        }
        order = await client.call("create_market_order", args, keep="order")
        assert order["timestamp"]
        placed = client.call("post_order", {"__kept": "order"}, "FAK", defer_exec=True)
        assert (await placed)["status"] == "matched"


@pytest.mark.parametrize("size", [0.5])
async def test_polymarket_s_client_is_refused_a_market_order_that_spends_too_little(
    host: str, size: float
) -> None:
    async with (
        running(POLYMARKET_V2) as [family],
        polymarket(family, host, "alice", 0) as client,
    ):
        args = {
            "__type": "MarketOrderArgs",
            "token_id": YES,
            "amount": size,
            "side": "BUY",
            "price": 0.5,
        }
        await client.call("create_market_order", args, keep="order")
        with pytest.raises(Refused) as refused:
            await client.call("post_order", {"__kept": "order"}, "FAK", defer_exec=True)
        assert refused.value.error["code"] == "budget_below_minimum"


async def test_kuest_s_client_trades_for_a_deposit_wallet(rig: TradingRig, host: str) -> None:
    wallet = a_deposit_wallet("alice")
    await endow(rig, wallet)
    async with running(KUEST_V2) as [family], kuest(family, host, "alice", wallet) as client:
        placed = await client.call("create_and_post_order", order_args(0.4, 10))
        assert (placed["success"], placed["status"]) == (True, "live")
        order = await client.call("get_order", placed["orderID"])
        assert order["maker_address"] == checksum_address(wallet)
        balance = await client.call(
            "get_balance_allowance",
            {"__type": "BalanceAllowanceParams", "asset_type": "COLLATERAL"},
        )
        assert int(balance["balance"]) == 1_000 * TOKEN
        assert (await client.call("cancel", placed["orderID"]))["canceled"] == [placed["orderID"]]
        assert (await client.call("get_order_book", YES))["bids"] == []
        assert await client.call("get_tick_size", YES) == "0.01"
        assert [each["condition_id"] for each in (await client.call("get_markets"))["data"]] == [
            a_word("market")
        ]


async def test_a_wallet_that_does_not_exist_yet_is_named_to_kuest_s_client(host: str) -> None:
    wallet = a_deposit_wallet("alice")
    async with running(KUEST_V2) as [family], kuest(family, host, "alice", wallet) as client:
        with pytest.raises(Refused) as refused:
            await client.call("create_and_post_order", order_args(0.4, 10))
        assert refused.value.error["code"] == "wallet_refuses"


async def test_all_clients_trade_in_one_book(rig: TradingRig, host: str) -> None:
    """Each of three wallets of new clients buys what a client of version 1 sells, and the reverse."""
    wallets = [a_deposit_wallet("alice"), a_deposit_wallet("alice", 1)]
    for wallet in wallets:
        await endow(rig, wallet)
    async with (
        running(*NAMES, KUEST_V2, POLYMARKET_V2) as [older, older_kuest, newer_kuest, newer],
        a_client(older, host, "bob") as first,
        a_client(older_kuest, host, "bob") as second,
        kuest(newer_kuest, host, "alice", wallets[0]) as third,
        polymarket(newer, host, "alice", 3, wallets[1]) as fourth,
    ):
        for client in (first, second):
            await client.log_in()
        for client in (first, second):
            sale = await client.call("create_and_post_order", order_args(0.4, 10, "SELL"))
            assert sale["status"] == "live"
        bought = await third.call("create_and_post_order", order_args(0.4, 10))
        assert bought["status"] == "matched"
        await fourth.call("create_order", order_args(0.4, 10), keep="order")
        met = await fourth.call("post_order", {"__kept": "order"}, "GTC", defer_exec=True)
        assert met["status"] == "matched"
        bid = await third.call("create_and_post_order", order_args(0.5, 5))
        assert bid["status"] == "live"
        sold = await first.call("create_and_post_order", order_args(0.5, 5, "SELL"))
        assert sold["status"] == "matched"
        makers = {
            maker["maker_address"]
            for trade in await third.call("get_trades")
            for maker in trade["maker_orders"]
        }
        assert makers == {checksum_address(each) for each in (an_address("bob"), wallets[0])}
