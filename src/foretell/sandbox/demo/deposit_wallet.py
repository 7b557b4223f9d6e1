"""Chapter 4: a deposit wallet buys, by version 2 of the order struct, what an address sells by version 1."""

from typing import Final

from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.hexadecimal import Address
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import (
    PERCENT,
    Traders,
    agree,
    new_trader,
    place,
    wait_for_collateral,
    wait_for_trades,
)
from foretell.sandbox.market_creation import SandboxMarket
from foretell.sandbox.session import approvals
from foretell.sdk.deposit_wallet import DepositWalletClient
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.trading import TradingClient, Wallet

FUNDS_UNITS: Final = 500 * UNITS_PER_TOKEN
SIZE_UNITS: Final = 10 * UNITS_PER_TOKEN
CENTS: Final = 70


async def trade_from_deposit_wallet(
    session: DemoSession, market: SandboxMarket, traders: Traders
) -> dict[str, Address]:
    """Have Dora's deposit wallet buy from Alice's address, and return the wallet by its name.

    The exchange of a sandbox of an earlier version accepts version 1 alone, and is left as it is.
    """
    if session.deployment.separators().first_of_version(2) is None:
        session.state("this sandbox is of an earlier version, without orders of version 2")
        return {}
    dora = await _new_wallet_owner(session)
    cost = SIZE_UNITS * CENTS // PERCENT
    offer = await place(session, traders.alice, market.token_yes, Side.SELL, SIZE_UNITS, cost)
    agree("Alice's offer", offer["status"], "live")
    bid = await place(session, dora, market.token_yes, Side.BUY, SIZE_UNITS, cost)
    agree("Dora's order", bid["status"], "matched")
    session.state(f"Alice sells 10 Yes at 0.{CENTS} by version 1, Dora's wallet buys by version 2")
    (trade,) = await wait_for_trades(session, dora, market, 1)
    session.state(f"trade {trade['id']} is CONFIRMED in {trade['transaction_hash'][:18]}…")
    return {"Dora's wallet": dora.wallet.maker}


async def _new_wallet_owner(session: DemoSession) -> TradingClient:
    """Return the client of a deposit wallet that the relayer deployed, with collateral and approvals."""
    key = await session.new_account()
    owner, deployment = await new_trader(session, Wallet(key)), session.deployment
    safe = deployment.safe_of(owner.wallet.address)
    relayer = RelayerClient(session.relayer, owner, deployment, safe)
    address = deployment.deposit_wallets_of(owner.wallet.address)[0]

    async def now_s() -> int:
        return session.now_s()

    factory = deployment.deposit_wallet_factories[0]
    deposit = DepositWalletClient(relayer, factory, address, now_s)
    with session.waiting("the relayer deploys a deposit wallet"):
        wallet = await deposit.create()
    await session.fund(wallet, FUNDS_UNITS)
    with session.waiting("the wallet approves, in a batch that Dora signed"):
        calls = approvals(session.deployment)
        await deposit.execute(calls)
    dora = await new_trader(session, Wallet(key, deposit_wallet=wallet))
    await wait_for_collateral(session, dora)
    session.state(f"Dora trades with deposit wallet {wallet}, deployed and driven by the relayer")
    return dora
