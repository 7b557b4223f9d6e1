"""Resting orders of one trader over HTTP, and what was answered, whatever becomes of the installation."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from foretell.domain.errors.command import ApiRefused, ApiUnreachable
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.hexadecimal import Bytes32
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import FUNDS_UNITS, new_trader, wait_for_collateral
from foretell.sandbox.session import approval_calls
from foretell.sdk.http import wait_for
from foretell.sdk.trading import TradingClient, Wallet

LIVE_MAX: Final = 60
"""A page of open orders has all of them."""
SIZE_UNITS: Final = 10 * UNITS_PER_TOKEN
COST_UNITS: Final = 5 * UNITS_PER_TOKEN
SAME_WITHIN_S: Final = 600.0
UNAUTHORIZED: Final = 401


@dataclass
class RestingOrders:
    """The orders that were acknowledged and not canceled, and the refusals."""

    trader: TradingClient
    token_id: str
    salts: Iterator[int]
    live: dict[Bytes32, None] = field(default_factory=dict)
    canceled: set[Bytes32] = field(default_factory=set)
    refusals: list[ApiRefused] = field(default_factory=list)
    answers: int = 0

    @classmethod
    async def of_new_trader(cls, session: DemoSession) -> "RestingOrders":
        """Return the orders, none yet, of an account that was just funded for nearly no more than `LIVE_MAX`."""
        trader = await new_trader(session, Wallet(await session.new_account()))
        await session.fund(trader.wallet.maker, FUNDS_UNITS)
        await session.caller(trader.wallet.private_key).call_all(approval_calls(session.deployment))
        await wait_for_collateral(session, trader)
        token_id = session.ready.market.token_yes
        return cls(trader, token_id, itertools.count(session.new_salt()))

    async def place(self) -> None:
        """Place an order that rests."""
        order = self.trader.sign_order(
            self.token_id, Side.BUY, SIZE_UNITS, COST_UNITS, next(self.salts)
        )
        try:
            answer = await self.trader.place(order)
        except ApiRefused as refusal:
            self.refusals.append(refusal)
        else:
            assert answer["status"] == "live", answer
            self.live[answer["orderID"]] = None
            self.answers += 1

    async def cancel(self) -> None:
        """Cancel the oldest order."""
        order_id = next(iter(self.live))
        try:
            answer = await self.trader.send("DELETE", "/order", {"orderID": order_id})
        except ApiRefused as refusal:
            self.refusals.append(refusal)
            return
        del self.live[order_id]
        assert answer["canceled"] == [order_id], answer
        self.canceled.add(order_id)
        self.answers += 1

    async def act(self) -> None:
        """Place an order, and cancel one when there are many."""
        await self.place()
        if len(self.live) >= LIVE_MAX:
            await self.cancel()

    async def act_when_answered(self) -> None:
        """Act if anything answers; a database that is new has no API keys."""
        with contextlib.suppress(ApiUnreachable):
            await self.act()
            if self.refusals and self.refusals[-1].status == UNAUTHORIZED:
                with contextlib.suppress(ApiRefused):
                    await self.trader.create_key()

    async def check(self) -> None:
        """Wait until the open orders are those that were acknowledged and not canceled."""

        async def same() -> bool | None:
            page = await self.trader.get("/data/orders")
            return True if {each["id"] for each in page["data"]} == set(self.live) else None

        await wait_for("the acknowledged orders to be those in the tables", same, SAME_WITHIN_S)
