"""Orders and cancels over HTTP while the node of an installation does not answer."""

import os
import signal
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console
from tests.app.rig import anvil_pid
from tests.rigs.in_process import installed, sandbox_settings

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import ApiRefused
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import new_trader, place, wait_for_collateral
from foretell.sandbox.ready import NOT_SEEDED, SeededMarket, describe
from foretell.sandbox.seed import SEED_NOTE, approve_traders, seed_market
from foretell.sdk.http import wait_for
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = pytest.mark.anyio

WITHIN_S: Final = 600.0
LAG_S_MAX: Final = 3
SIZE_UNITS: Final = 10 * UNITS_PER_TOKEN


async def bid(session: DemoSession, trader: TradingClient, market: SeededMarket) -> Any:
    cost = SIZE_UNITS // 10
    return await place(session, trader, market.token_yes, Side.BUY, SIZE_UNITS, cost)


@pytest.mark.case("E-05")
async def test_while_the_node_does_not_answer_orders_are_refused_and_cancels_pass(
    tmp_path: Path,
) -> None:
    settings = sandbox_settings(tmp_path, chain_block_s=0.1, chain_lag_s_max=LAG_S_MAX)
    async with installed(settings) as running:
        assert running.deployment is not None
        ready = describe(settings.base_url, settings.devchain_url, running.deployment, NOT_SEEDED)
        quiet = Console(quiet=True)
        async with DemoSession.open(ready, running.deployment, console=quiet) as session:
            market = await seed_market(session, tmp_path / SEED_NOTE, lambda: None)
            await approve_traders(session)
            trader = await new_trader(session, Wallet(session.account(AccountRole.TRADER)))
            await wait_for_collateral(session, trader)
            resting = await bid(session, trader, market)
            trader.http.attempts_within_s = 0  # a refusal is not waited out

            async def fetch_refusal() -> ApiRefused | None:
                try:
                    await bid(session, trader, market)
                except ApiRefused as refusal:
                    return refusal
                return None

            async def fetch_placed() -> Any:
                return None if await fetch_refusal() else True

            os.kill(anvil_pid(settings), signal.SIGSTOP)
            try:
                refusal = await wait_for("a refusal", fetch_refusal, WITHIN_S)
                canceled = await trader.send("DELETE", "/order", {"orderID": resting["orderID"]})
            finally:
                os.kill(anvil_pid(settings), signal.SIGCONT)
            await wait_for("an order", fetch_placed, WITHIN_S)
    assert (refusal.status, canceled["canceled"]) == (503, [resting["orderID"]])
    assert "engine_cancel_only" in refusal.body
    assert f"{LAG_S_MAX} s are allowed" in refusal.body
