"""kill -9 of a running installation: what was acknowledged exists after the next start."""

import asyncio
from typing import Any

import pytest
from tests.rigs.installation import Running

from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.sandbox.demo.create_market import demo_draft, make_market
from foretell.sandbox.demo.output import show
from foretell.sandbox.demo.resolution import balance, merge, redeem, resolve, wallets
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import gather_traders, place, wait_for_funds
from foretell.sandbox.market_creation import CHECKED, MarketCreator
from foretell.sdk.http import wait_for

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e killed")]

WITHIN_S = 600.0


async def test_a_market_traded_across_kills_ends_with_every_unit_accounted_for(
    running: Running,
) -> None:
    async with running.session() as session:
        market = await make_market(
            session, demo_draft(session, session.new_salt()), session.account(AccountRole.CREATOR)
        )
        traders = await gather_traders(session)
        await wait_for_funds(session, traders)
        size, cost = 100 * UNITS_PER_TOKEN, 60 * UNITS_PER_TOKEN
        resting = await place(session, traders.alice, market.token_yes, Side.BUY, size, cost)

        await running.restart()
        book = await session.trading.get("/book", token_id=market.token_yes)
        assert [(level["price"], level["size"]) for level in book["bids"]] == [("0.6", "100")]
        (still_open,) = (await traders.alice.get("/data/orders"))["data"]
        assert still_open["id"] == resting["orderID"]
        assert await traders.alice.create_key() == traders.alice.credentials

        await place(session, traders.bob, market.token_no, Side.BUY, size, size - cost)
        await running.restart()
        sale, price = 40 * UNITS_PER_TOKEN, 26 * UNITS_PER_TOKEN
        await place(session, traders.alice, market.token_yes, Side.SELL, sale, price)
        await place(session, traders.bob, market.token_yes, Side.BUY, sale, price)
        await running.restart()

        async def confirmed() -> list[Any] | None:
            page = await traders.bob.get("/data/trades", market=market.condition_id)
            trades = page["data"]
            return trades if [each["status"] for each in trades] == ["CONFIRMED"] * 2 else None

        await wait_for("both trades to be confirmed", confirmed, WITHIN_S)
        await show(session, market, traders.alice.wallet.maker, traders.bob.wallet.maker)
        carols_safe = await merge(session, market)
        await running.restart()
        await resolve(session, market)
        await redeem(session, market, traders.bobs_safe)
        await balance(session, market, wallets(traders, carols_safe))
    assert "1080 in = 990 out + 90 still locked" in running.demo_output()


async def test_a_relayed_transaction_that_was_accepted_is_sent_once(running: Running) -> None:
    async with running.session() as session:
        traders = await gather_traders(session)
        relayer, collateral = traders.bobs_safe, session.deployment.collateral
        other = traders.alice.wallet.maker
        accepted = await relayer.submit([InnerCall(collateral, Transfer(other, 7).encode())])
        await running.restart()
        await relayer.wait_until_mined(accepted)
        has = await collateral_of(session, relayer.safe)
    assert has == 500 * UNITS_PER_TOKEN - 7


async def collateral_of(session: DemoSession, wallet: Any) -> int:
    call = {"to": session.deployment.collateral, "data": "0x70a08231" + wallet[2:].rjust(64, "0")}
    return int(str(await session.rpc.send("eth_call", call, "latest")), 16)


@pytest.mark.parametrize("seconds", [0.0, 3.0])
async def test_an_interrupted_first_start_is_completed_by_the_next(
    fresh: Running, seconds: float
) -> None:
    fresh.begin()
    await fresh.until_there_is("seed-request")
    await asyncio.sleep(seconds)
    ready = await fresh.restart()
    async with fresh.session() as session:
        (market,) = await session.discovery.get("/markets", slug=ready.market.slug)
    assert market["conditionId"] == ready.market.condition_id
    assert fresh.stop() == 0


async def test_a_creation_continues_after_a_kill(running: Running) -> None:
    async with running.session() as session:
        draft = demo_draft(session, session.new_salt())
        creator = session.account(AccountRole.CREATOR)
        noted: list[str] = []
        creating = asyncio.create_task(make_market(session, draft, creator, noted.append))

        async def checked() -> bool | None:
            if creating.done():
                creating.result()
            if not noted:
                return None
            answer = await session.worker.get("/pending", requestId=noted[0])
            # On a busy machine the creator may be further than this test when it looks again.
            return True if answer["request"]["status"] in CHECKED else None

        await wait_for("the transactions to be checked", checked, WITHIN_S)
        creating.cancel()
        await running.restart()
        (made,) = await MarketCreator(session, creator, session).resume(noted[0])
        (listed,) = await session.discovery.get("/markets", slug=draft.slug)
    assert listed["conditionId"] == made.condition_id
