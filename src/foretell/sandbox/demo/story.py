"""The first story: a market from creation to redemption."""

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.sandbox.demo.create_market import demo_draft, make_market
from foretell.sandbox.demo.deposit_wallet import trade_from_deposit_wallet
from foretell.sandbox.demo.output import show
from foretell.sandbox.demo.resolution import (
    balance,
    merge,
    redeem,
    refuse_early_redemption,
    resolve,
    wallets,
)
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import gather_traders, trade


async def play(session: DemoSession) -> None:
    """Play a market from creation to redemption; raise at the first amount that is wrong."""
    session.chapter("1. A market is created")
    market = await make_market(
        session, demo_draft(session, session.new_salt()), session.account(AccountRole.CREATOR)
    )
    session.chapter("2. Two traders meet")
    traders = await gather_traders(session)
    await trade(session, market, traders)
    session.chapter("3. What happened")
    await show(session, market, traders.alice.wallet.maker, traders.bob.wallet.maker)
    session.chapter("4. A deposit wallet trades")
    doras_wallet = await trade_from_deposit_wallet(session, market, traders)
    session.chapter("5. The market ends")
    carols_safe = await merge(session, market)
    await refuse_early_redemption(session, market, traders.bobs_safe)
    await resolve(session, market)
    await redeem(session, market, traders.bobs_safe)
    session.chapter("6. The books are closed")
    await balance(session, market, wallets(traders, carols_safe) | doras_wallet)
