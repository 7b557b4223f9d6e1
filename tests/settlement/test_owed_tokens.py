"""Tokens that a wallet refused are shown as owed, and claimed, on a real chain (H-1)."""

import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, Reader, no_node
from tests.rigs.sandbox import SandboxMarket
from tests.rigs.values import an_address
from tests.settlement.rig import HELD, UNIT, SettlementRig, Trader
from tests.settlement.test_two_faced import a_two_faced_trader

from foretell.chain.rpc import Rpc
from foretell.chain.views import owed_units
from foretell.data.context import DataContext
from foretell.data.owed_reader import OwedReader
from foretell.data.routes import build_app
from foretell.data.solvency_books import SolvencyBooks
from foretell.domain.contracts.calldata import CLAIM_TOKENS
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.reconciliation.verify import verify_data

pytestmark = pytest.mark.anyio

PRICE_TICKS, SIZE = 60, 10 * UNIT
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"


@pytest.fixture
async def market(rig: SettlementRig) -> SandboxMarket:
    return await rig.open("rain")


@pytest.fixture
async def data(rig: SettlementRig) -> AsyncIterator[Reader]:
    """The data API over the tables and the chain of the rig."""
    async with Rpc(rig.sandbox.rpc_url) as rpc:
        owed = OwedReader(rig.sandbox.deployment.exchanges, partial(owed_units, rpc))
        books = SolvencyBooks(rig.database, None, no_node, rig.clock.now_ms)
        context = DataContext(rig.database, BLOBS, rig.clock.now_ms, books, owed)
        yield Reader(an_app(build_app, context))


async def refuse_a_delivery(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> Trader:
    """Settle a match whose tokens one maker refuses, and return that maker."""
    liar = await a_two_faced_trader(rig, market)
    await deliver(rig, market, liar, traders[2], SIZE)
    return liar


async def deliver(
    rig: SettlementRig, market: SandboxMarket, maker: Trader, taker: Trader, size: int
) -> None:
    """Settle a match that brings No to its maker."""
    await maker.buy(market, PRICE_TICKS, size, is_yes=False)
    await taker.buy(market, 100 - PRICE_TICKS, size)
    await rig.settle()


async def size_of(data: Reader, wallet: Address, token: int) -> tuple[float, float]:
    """Return a position's size and cost."""
    rows = await data.get("/positions", user=wallet, sizeThreshold=0)
    found = [(row["size"], row["initialValue"]) for row in rows if row["asset"] == str(token)]
    return found[0] if found else (0, 0)


async def test_h1_what_is_owed_is_shown_until_it_is_claimed(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], data: Reader
) -> None:
    liar, friend = await refuse_a_delivery(rig, market, traders), traders[1].wallet
    token, exchange = market.tokens.no, rig.exchange(market)
    assert (await size_of(data, liar.wallet, token))[0] == HELD / UNIT
    page = await data.get("/owed", user=liar.wallet)
    title, outcome = page["owed"][0].pop("title"), page["owed"][0].pop("outcome")
    assert (title, outcome) == ("Will it rain?", "No")
    slugs = page["owed"][0].pop("slug"), page["owed"][0].pop("eventSlug")
    assert all(slugs)
    assert page == {
        "owed": [
            {
                "proxyWallet": checksum_address(liar.wallet),
                "exchange": checksum_address(exchange),
                "asset": str(token),
                "conditionId": market.condition_id,
                "size": SIZE / UNIT,
                "outcomeIndex": 1,
                "negativeRisk": False,
            }
        ],
        "next": "",
    }
    assert await data.get("/owed", user=friend) == {"owed": [], "next": ""}
    first = await data.get("/owed", user=liar.wallet, limit=1)
    assert first["next"] == f"{token}-{exchange}"
    rest = await data.get("/owed", user=liar.wallet, limit=1, after=first["next"])
    assert rest == {"owed": [], "next": ""}

    size, cost = await size_of(data, friend, token)
    await liar.execute(exchange, CLAIM_TOKENS.encode(token, friend))
    assert await data.get("/owed", user=liar.wallet) == {"owed": [], "next": ""}
    await rig.see()
    after = await size_of(data, friend, token)
    assert after == (size + SIZE / UNIT, cost + SIZE / UNIT * PRICE_TICKS / 100)
    assert await rig.chain_units(friend, AssetId(str(token))) == after[0] * UNIT
    report = await verify_data(rig.database, rig.sandbox.rpc, rig.sandbox.deployment)
    assert [str(each) for each in report.differences] == []


async def test_what_is_owed_is_as_the_page_computes_it(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], data: Reader
) -> None:
    dora = await refuse_a_delivery(rig, market, traders)
    await deliver(rig, market, dora, traders[2], 4 * UNIT)
    [owed] = (await data.get("/owed", user=dora.wallet))["owed"]
    text = PAGE.read_text().partition("And of what is owed")[2]
    [size] = re.findall(r"^\| size of what is owed \| 10 \+ 4 \| (\d+) \|$", text, re.MULTILINE)
    assert owed["size"] == int(size)


@pytest.mark.usefixtures("earlier_exchange")
async def test_an_exchange_of_an_earlier_deployment_keeps_nothing(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    key = rig.exchange(market), AssetId(str(market.tokens.no))
    assert await owed_units(rig.sandbox.rpc, traders[0].wallet, [key]) == [0]


async def test_a_node_that_does_not_answer_is_a_documented_refusal_and_only_for_wallets_that_are_owed(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    liar = await refuse_a_delivery(rig, market, traders)
    books = SolvencyBooks(rig.database, None, no_node, rig.clock.now_ms)
    owed = OwedReader(rig.sandbox.deployment.exchanges, no_node)
    context = DataContext(rig.database, BLOBS, rig.clock.now_ms, books, owed)
    data = Reader(an_app(build_app, context))
    status, body = await data.refused("/owed", user=liar.wallet)
    assert (status, body["error"].split(":")[0]) == (502, "chain_unavailable")
    assert await data.get("/owed", user=an_address("nobody")) == {"owed": [], "next": ""}
    status, body = await data.refused("/owed", user=liar.wallet, after="12x")
    assert (status, body["error"].split(":")[0]) == (400, "invalid_field")
