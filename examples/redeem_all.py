"""Redeem every resolved position of a wallet. Run it from time to time: it does nothing when there is none."""

import asyncio

import sandbox
from foretell.domain.values.amounts import decimal_text
from foretell.sdk.client import Foretell


async def main() -> None:
    """Redeem what the first trader holds."""
    async with Foretell.connect(sandbox.urls(), sandbox.signer("trader", 1)) as foretell:
        before = int((await foretell.trader.collateral()).balance)
        redeemed = await foretell.redeem_all()
        for condition in redeemed:
            market = await foretell.apis.discovery.market(condition.condition_id)
            print(f"redeemed {market.question}")
        after = int((await foretell.trader.collateral()).balance)
        print(
            f"{len(redeemed)} markets; collateral {decimal_text(before)} -> {decimal_text(after)}"
        )


asyncio.run(main())
