"""The example of builders' fees on the trading API's page: each figure is what the API accounts."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests.rigs.orders.builders import a_builder_of
from tests.rigs.trading import TradingRig
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_sell, some_rules

from foretell.domain.portfolio.builder_fees import BuilderRates, base_fee_units
from foretell.store.trading.builder_trades import record_builder_rates

pytestmark = pytest.mark.anyio

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "trading-api.md"
EXAMPLE: Final = "For example, a market has a `base_fee`"
RATE_BPS: Final = 441
FILLS: Final = {"first": (37, 10 * TOKEN), "second": (38, 20 * TOKEN)}


def documented() -> dict[str, float]:
    text = PAGE.read_text().partition(EXAMPLE)[2].partition("`GET /fees/")[0]
    rows = re.findall(r"^\| ([\w ]+) \| [^|]+ \| ([\d.]+) \|$", text, re.MULTILINE)
    return {figure: float(value) for figure, value in rows}


async def test_the_fees_of_the_example_are_what_the_api_accounts(rig: TradingRig) -> None:
    await rig.open("feed", "alice", "bob", rules=some_rules(fee_rate_bps=RATE_BPS))
    alice, bob = await rig.trader("alice"), await rig.trader("bob")
    builder = await a_builder_of(bob)
    async with rig.context.database.writing() as tx:
        await record_builder_rates(tx, builder.code, BuilderRates(NOW_MS, 3000, 100))
    fields: dict[str, Any] = {"market": "feed", "fee_rate_bps": RATE_BPS}
    for price, size in FILLS.values():
        sold = await builder.bring(bob, a_sell("bob", price, size, **fields), "GTC")
        assert sold.status_code == 200, sold.text
    bought = await builder.bring(alice, a_buy("alice", 38, 30 * TOKEN, **fields), "GTC")
    assert bought.status_code == 200, bought.text
    query = {"builder_code": builder.code}
    parts = (await rig.client.get("/builder/trades", params=query)).json()["data"]
    (taker,) = [each for each in parts if each["tradeType"] == "TAKER"]
    fee_by_price = {each["price"]: each["fee"] for each in parts if each["tradeType"] == "MAKER"}
    accounted = {
        "fee of the taker": float(taker["fee"]),
        "builderFee of the taker": float(taker["builderFee"]),
    }
    for name, (price, size) in FILLS.items():
        base = base_fee_units(size, price, 100, RATE_BPS) / TOKEN
        accounted[f"base of the {name} fill"] = base
        accounted[f"fee of the {name} maker"] = float(fee_by_price[f"0.{price}"])
    assert accounted == documented()
