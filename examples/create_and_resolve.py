"""A market of one's own: created, traded by nobody, and resolved. Killed at any point, it continues.

The folder of the notes has the payload, the request's id and every signed transaction.
"""

import asyncio
import sys
from pathlib import Path

import sandbox
from foretell.sdk.client import Foretell
from foretell.sdk.market_creation import Image
from foretell.sdk.payloads import NewMarket, binary_payload, picture


async def main(notes: Path) -> None:
    """Create a Yes/No market, and answer it as the proposer of its creator's whitelist."""
    async with Foretell.connect(sandbox.urls(), sandbox.signer("creator")) as creator:
        draft = NewMarket(
            creator=creator.chain.address,
            title="Will the example end well?",
            slug="will-the-example-end-well",
            question="Will the example end well?",
            ends_at="2035-06-01T12:00:00Z",
        )
        creation = creator.creation(notes, report=print)
        creation.begin(
            binary_payload(draft), [Image("eventImage", "cover.png", picture(), "image/png")]
        )
        (market,) = await creation.run()
        print(f"condition {market.condition_id}")

    async with Foretell.connect(sandbox.urls(), sandbox.signer("proposer")) as proposer:
        listed = await proposer.apis.discovery.market(market.condition_id)
        receipt = await proposer.resolver().resolve(listed.row, "first")
        print(f"{listed.outcomes[0]} it is: {receipt.tx_hash}")


asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "example-notes")))
