"""A market maker: quotes both sides around a price, renews its quotes, and leaves nothing behind.

It buys both tokens: a bid for No at 0.48 is an offer of Yes at 0.52. Ctrl-C ends it. Heartbeats cancel
its orders if this program dies. Run `python market_maker.py 20` for 20 rounds.
"""

import asyncio
import contextlib
import sys

import sandbox
from foretell.sdk.client import Foretell, OrderDraft, Side

SIZE, SPREAD_CENTS, PAUSE_S = "20", 4, 0.5


def quote(token: str, cents: int) -> OrderDraft:
    """Return a bid that only rests."""
    price = f"0.{cents:02d}"
    return OrderDraft(token_id=token, side=Side.BUY, price=price, size=SIZE, is_post_only=True)


async def main(rounds: int) -> None:
    """Quote, wait, and quote again."""
    async with Foretell.connect(sandbox.urls(), sandbox.signer("trader", 3)) as maker:
        trader = maker.trader
        market = await maker.apis.discovery.market(sandbox.seeded_market())
        yes, no = market.token_ids
        heartbeat = await trader.heartbeat()
        try:
            for number in range(rounds):
                fair_cents = 50 + number % 3 - 1  # put your own model here
                await trader.cancel_market(market.condition_id)
                bid_cents = fair_cents - SPREAD_CENTS // 2
                ask_cents = fair_cents + SPREAD_CENTS // 2
                drafts = [quote(yes, bid_cents), quote(no, 100 - ask_cents)]
                statuses = ", ".join(placed.status for placed in await trader.place_all(drafts))
                print(f"round {number + 1}: {bid_cents} / {ask_cents}: {statuses}", flush=True)
                heartbeat = await trader.heartbeat(heartbeat)
                await asyncio.sleep(PAUSE_S)
        finally:
            left = await trader.cancel_all()
            print(f"canceled {len(left.canceled)} orders")


with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
