"""The story of a market, told while it happens."""

from foretell.domain.contracts.sandbox_accounts import Role
from foretell.sandbox.demo.create_market import demo_wish, make_market
from foretell.sandbox.demo.output import show
from foretell.sandbox.demo.resolution import (
    balance,
    merge,
    redeem,
    refuse_early_redemption,
    resolve,
    wallets,
)
from foretell.sandbox.demo.session import Stage
from foretell.sandbox.demo.trade import gather_traders, trade


async def play(stage: Stage) -> None:
    """Play a market from creation to redemption; anything but the story's end raises."""
    stage.chapter("1. A market is created")
    market = await make_market(
        stage, demo_wish(stage, stage.new_salt()), stage.account(Role.CREATOR)
    )
    stage.chapter("2. Two traders meet")
    traders = await gather_traders(stage)
    await trade(stage, market, traders)
    stage.chapter("3. What happened")
    await show(stage, market, traders.alice.wallet.maker, traders.bob.wallet.maker)
    stage.chapter("4. The market ends")
    carols_safe = await merge(stage, market)
    await refuse_early_redemption(stage, market, traders.bobs_safe)
    await resolve(stage, market)
    await redeem(stage, market, traders.bobs_safe)
    stage.chapter("5. The books are closed")
    await balance(stage, market, wallets(traders, carols_safe))
