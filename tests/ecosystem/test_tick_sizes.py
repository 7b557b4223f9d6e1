"""Every client rounds amounts by a table of its own: its orders are accepted at each tick size that it knows."""

from typing import Any, Final

import pytest
from tests.ecosystem.clients import KUEST_V2, NAMES, POLYMARKET_V2, Client, Family, a_client
from tests.ecosystem.test_version_2_clients import endow
from tests.rigs.orders.version_2 import a_deposit_wallet
from tests.rigs.trading import TradingRig
from tests.rigs.values import (
    TOKEN,
    a_buy,
    a_sell,
    an_address,
    an_asset,
    an_open_market,
    some_rules,
)

pytestmark = pytest.mark.anyio

POLYMARKET: Final = "@polymarket/clob-client"
COARSE_TO_FINE: Final = (10, 100, 1_000, 10_000)
ALL_TICKS: Final = (10, 100, 200, 400, 1_000, 10_000)
TICKS_OF: Final = {
    **dict.fromkeys((*NAMES, KUEST_V2, POLYMARKET), COARSE_TO_FINE),
    **dict.fromkeys((POLYMARKET_V2, f"{POLYMARKET}-v2"), ALL_TICKS),
}
"""The ticks in 1 that each client has in its table."""
SIZE: Final = 17.31
BUDGET: Final = 7.77
SOLD: Final = 6.13


class Placer:
    """A client's orders for one token, in the dialect of the client."""

    def __init__(self, client: Client, name: str, token_id: str) -> None:
        self._client = client
        self._is_in_typescript = name.startswith("@")
        self._is_v2 = name.endswith("-v2")
        self._token_id = token_id

    async def limit(self, side: str, price: float) -> Any:
        if self._is_in_typescript:
            order = {"tokenID": self._token_id, "price": price, "size": SIZE, "side": side}
            return await self._client.call("createAndPostOrder", order)
        order = {"token_id": self._token_id, "price": price, "size": SIZE, "side": side}
        return await self._client.call("create_and_post_order", {"__type": "OrderArgs"} | order)

    async def market(self, side: str, amount: float, price: float) -> Any:
        terms = {"amount": amount, "side": side, "price": price}
        if self._is_in_typescript:
            order = {"tokenID": self._token_id} | terms
            how = ("FAK", True) if self._is_v2 else ("FAK",)
            return await self._client.call("createAndPostMarketOrder", order, None, *how)
        order = {"__type": "MarketOrderArgs", "token_id": self._token_id} | terms
        await self._client.call("create_market_order", order, keep="market order")
        # A client of version 2 asks for the settlement for half a minute, unless it is deferred.
        options: dict[str, Any] = {"defer_exec": True} if self._is_v2 else {}
        return await self._client.call("post_order", {"__kept": "market order"}, "FAK", **options)

    async def cancel_all(self) -> None:
        await self._client.call("cancelAll" if self._is_in_typescript else "cancel_all")


@pytest.mark.parametrize("name", TICKS_OF)
async def test_orders_of_a_client_are_accepted_at_every_tick_size_that_it_knows(
    rig: TradingRig, host: str, name: str
) -> None:
    is_wallet = name == KUEST_V2
    wallet = a_deposit_wallet("alice") if is_wallet else an_address("alice")
    family = Family(name)
    try:
        async with a_client(
            family, host, "alice", 3 if is_wallet else 0, wallet if is_wallet else None
        ) as alice:
            login = "createOrDeriveApiKey" if name.startswith("@") else "create_or_derive_api_creds"
            await alice.log_in("create_or_derive_api_key" if name == POLYMARKET_V2 else login)
            for ticks_per_one in TICKS_OF[name]:
                market = f"ticks {ticks_per_one}"
                await rig.open(market, "alice", "bob", rules=some_rules(ticks_per_one))
                await endow(rig, wallet, market)
                token = an_asset(is_yes=True, market=market)
                await check_orders(rig, Placer(alice, name, token), market, ticks_per_one)
    finally:
        await family.stop()


async def check_orders(rig: TradingRig, placer: Placer, market: str, ticks_per_one: int) -> None:
    """Place orders of awkward amounts at the first, a middle and the last tick, and take awkward ones."""
    for price_ticks in (1, ticks_per_one // 3, ticks_per_one - 1):
        for side in ("BUY", "SELL"):
            placed = await placer.limit(side, price_ticks / ticks_per_one)
            assert placed["status"] == "live", (price_ticks, ticks_per_one, placed)
            live = rig.host.engine.state.live_orders[placed["orderID"]]
            assert live.price_ticks == price_ticks
            await placer.cancel_all()
    price_ticks = ticks_per_one // 3
    price, size_units = price_ticks / ticks_per_one, 100 * TOKEN
    resting: dict[str, Any] = {"market": market, "ticks_per_one": ticks_per_one}
    resting |= {"price_ticks": price_ticks, "size_units": size_units}
    opened = an_open_market(market, rules=some_rules(ticks_per_one))
    await rig.rest(a_sell("bob", **resting), market=opened)
    bought = await placer.market("BUY", BUDGET, price)
    assert bought["status"] == "matched"
    await rig.rest(a_buy("bob", **resting | {"salt": "2"}), market=opened)
    sold = await placer.market("SELL", SOLD, price)
    assert sold["status"] == "matched"
