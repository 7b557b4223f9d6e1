"""A book watcher: prints the best prices after each change, exact over lost connections.

Stop the sandbox and start it again while this runs: the book is forgotten, and rebuilt from a new
snapshot. Run `python book_watcher.py 10` for 10 changes.
"""

import asyncio
import sys
from contextlib import aclosing

import sandbox
from foretell.sdk.client import PublicApis


async def main(changes: int) -> None:
    """Watch the first market's Yes."""
    async with PublicApis.connect(sandbox.urls()) as apis:
        market = await apis.discovery.market(sandbox.seeded_market())
        async with aclosing(apis.watch_books(market.token("Yes"))) as watched:
            async for change in watched:
                bid, ask = change.book.best_bid, change.book.best_ask
                print(
                    f"bid {bid.price if bid else '-':>6} x {bid.size if bid else '-':<10}"
                    f"ask {ask.price if ask else '-':>6} x {ask.size if ask else '-':<10}",
                    flush=True,
                )
                changes -= 1
                if not changes:
                    return


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
