"""A game with a moneyline, a draw, both teams to score, spreads and totals: one payload, eight markets."""

import asyncio
import json
import sys
from pathlib import Path

import sandbox
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sdk.client import Foretell
from foretell.sdk.market_creation import Image
from foretell.sdk.payloads import RULES, picture

GAME = {
    "section": "games",
    "sportSlug": "soccer",
    "leagueSlug": "eliteserien",
    "eventDate": "2035-06-01",
    "startTime": "2035-06-01T10:00:00Z",
    "teams": [
        {"name": "Brann", "abbreviation": "BRA", "host_status": "home"},
        {"name": "Molde", "abbreviation": "MOL", "host_status": "away"},
    ],
    "template": {
        "includeDraw": True,
        "includeBothTeamsToScore": True,
        "includeSpreads": True,
        "includeTotals": True,
        "spreadLines": [-1.5, 1.5],
        "totalLines": [2.5, 3.5],
    },
}


async def main(notes: Path) -> None:
    """Create the game's markets, and list them."""
    async with Foretell.connect(sandbox.urls(), sandbox.signer("creator")) as creator:
        payload = {
            "creator": checksum_address(creator.chain.address),
            "title": "Brann vs. Molde",
            "slug": "brann-molde-2035-06-01",
            "endDateIso": "2035-06-02T10:00:00Z",
            "mainCategorySlug": "sports",
            "categories": ["Sports", "Soccer", "Norway", "Eliteserien", "Games"],
            "marketMode": "multi_multiple",
            "resolutionRules": RULES,
            "sports": GAME,
        }
        fields = ("eventImage", "teamLogo:home", "teamLogo:away")
        images = [Image(field, "logo.png", picture(), "image/png") for field in fields]
        creation = creator.creation(notes, report=print)
        creation.begin(json.dumps(payload), images)
        for market in await creation.run():
            listed = await creator.apis.discovery.market(market.condition_id)
            print(f"{market.market_key:<20} {' / '.join(listed.outcomes)}")


asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "game-notes")))
