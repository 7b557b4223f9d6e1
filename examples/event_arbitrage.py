"""Arbitrage over an event of which exactly one market is true: Yes of all together pays one.

If the best offers of all Yes tokens cost less than one, buying each of them gains for certain. Run
`python event_arbitrage.py SLUG`.
"""

import asyncio
import sys
from decimal import Decimal

import sandbox
from foretell.sdk.client import Foretell, OrderDraft, OrderType, Side
from foretell.sdk.portfolio import listed_market


async def main(slug: str) -> None:
    """Buy every Yes if that is cheaper than one."""
    async with Foretell.connect(sandbox.urls(), sandbox.signer("trader", 4)) as foretell:
        event = await foretell.apis.discovery.event(slug)
        tokens = [listed_market(row).token_ids[0] for row in event["markets"]]
        books = [await foretell.apis.markets.book(token) for token in tokens]
        if not all(book.asks for book in books):
            print("an outcome has no offer")
            return
        offers = [book.asks[-1] for book in books]  # the best one is the last
        cost = sum(Decimal(offer.price) for offer in offers)
        size = min(Decimal(offer.size) for offer in offers)
        print(f"all outcomes cost {cost} for a payout of 1")
        if cost >= 1:
            return
        for token, offer in zip(tokens, offers, strict=True):
            budget = str((Decimal(offer.price) * size).quantize(Decimal("0.000001")))
            placed = await foretell.trader.place(
                OrderDraft(
                    token_id=token,
                    side=Side.BUY,
                    price=offer.price,
                    budget=budget,
                    order_type=OrderType.FOK,
                )
            )
            print(f"bought {placed.taking_amount} at {offer.price}: {placed.status}")
        print(f"certain gain: {(1 - cost) * size}")


if len(sys.argv) != 2:  # noqa: PLR2004 - the program and its argument
    sys.exit("usage: python event_arbitrage.py SLUG, the slug of an event")
asyncio.run(main(sys.argv[1]))
