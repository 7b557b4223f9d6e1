"""kill -9 of a running installation: what was acknowledged is there after the next start."""

import asyncio
from typing import Any

import pytest
from tests.rigs.installation import Running

from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import Role
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.sandbox.demo.create_market import demo_wish, make_market, resume_market
from foretell.sandbox.demo.output import show
from foretell.sandbox.demo.resolution import balance, merge, redeem, resolve, wallets
from foretell.sandbox.demo.session import Stage
from foretell.sandbox.demo.trade import gather_traders, place, wait_for_funds
from foretell.sdk.http import wait_for

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e killed")]


async def test_a_market_traded_across_kills_ends_with_every_unit_accounted_for(
    running: Running,
) -> None:
    async with running.stage() as stage:
        market = await make_market(
            stage, demo_wish(stage, stage.new_salt()), stage.account(Role.CREATOR)
        )
        traders = await gather_traders(stage)
        await wait_for_funds(stage, traders)
        size, cost = 100 * UNITS_PER_TOKEN, 60 * UNITS_PER_TOKEN
        resting = await place(stage, traders.alice, market.token_yes, Side.BUY, size, cost)

        await running.restart()
        book = await stage.trading.get("/book", token_id=market.token_yes)
        assert [(level["price"], level["size"]) for level in book["bids"]] == [("0.6", "100")]
        (still_open,) = (await traders.alice.get("/data/orders"))["data"]
        assert still_open["id"] == resting["orderID"]
        assert await traders.alice.create_key() == traders.alice.credentials

        await place(stage, traders.bob, market.token_no, Side.BUY, size, size - cost)
        await running.restart()
        sale, price = 40 * UNITS_PER_TOKEN, 26 * UNITS_PER_TOKEN
        await place(stage, traders.alice, market.token_yes, Side.SELL, sale, price)
        await place(stage, traders.bob, market.token_yes, Side.BUY, sale, price)
        await running.restart()

        async def confirmed() -> list[Any] | None:
            page = await traders.bob.get("/data/trades", market=market.condition_id)
            trades = page["data"]
            return trades if [each["status"] for each in trades] == ["CONFIRMED"] * 2 else None

        await wait_for("both trades to be confirmed", confirmed)
        await show(stage, market, traders.alice.wallet.maker, traders.bob.wallet.maker)
        carols_safe = await merge(stage, market)
        await running.restart()
        await resolve(stage, market)
        await redeem(stage, market, traders.bobs_safe)
        await balance(stage, market, wallets(traders, carols_safe))
    assert "1080 in = 990 out + 90 still locked" in running.told()


async def test_a_relayed_transaction_that_was_taken_is_sent_once(running: Running) -> None:
    async with running.stage() as stage:
        traders = await gather_traders(stage)
        relayer, collateral = traders.bobs_safe, stage.deployment.collateral
        other = traders.alice.wallet.maker
        taken = await relayer.hand_in([InnerCall(collateral, Transfer(other, 7).encode())])
        await running.restart()
        await relayer.finish(taken)
        has = await collateral_of(stage, relayer.safe)
    assert has == 500 * UNITS_PER_TOKEN - 7


async def collateral_of(stage: Stage, wallet: Any) -> int:
    call = {"to": stage.deployment.collateral, "data": "0x70a08231" + wallet[2:].rjust(64, "0")}
    return int(str(await stage.rpc.send("eth_call", call, "latest")), 16)


@pytest.mark.parametrize("seconds", [0.0, 3.0])
async def test_a_first_start_killed_on_its_way_is_completed_by_the_next(
    blank: Running, seconds: float
) -> None:
    blank.begin()
    await blank.until_there_is("seed-request")
    await asyncio.sleep(seconds)
    ready = await blank.restart()
    async with blank.stage() as stage:
        (market,) = await stage.discovery.get("/markets", slug=ready.market.slug)
    assert market["conditionId"] == ready.market.condition_id
    assert blank.stop() == 0


async def test_a_creator_goes_on_after_a_kill(running: Running) -> None:
    async with running.stage() as stage:
        wish, creator = demo_wish(stage, stage.new_salt()), stage.account(Role.CREATOR)
        noted: list[str] = []
        asked = asyncio.create_task(make_market(stage, wish, creator, noted.append))

        async def checked() -> bool | None:
            if not noted:
                return None
            answer = await stage.worker.get("/pending", requestId=noted[0])
            return True if answer["request"]["status"] == "metadata_update_pending" else None

        await wait_for("the transactions to be checked", checked)
        asked.cancel()
        await running.restart()
        made = await resume_market(stage, creator, noted[0])
        assert made is not None
        (listed,) = await stage.discovery.get("/markets", slug=wish.slug)
    assert listed["conditionId"] == made.condition_id
