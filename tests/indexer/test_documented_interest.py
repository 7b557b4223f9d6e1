"""Open interest, solvency, conversions and redemptions of the data API's page: on the real chain."""

import re
from pathlib import Path
from typing import Final

import pytest
from tests.indexer.rig import IndexerRig
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.events import SandboxEvent
from tests.rigs.read_apis import BLOBS, Reader, a_data_context, no_node
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.rigs.values import TOKEN

from foretell.app.builders import build_solvency
from foretell.data.context import DataContext
from foretell.data.owed_reader import OwedReader
from foretell.data.routes import build_app
from foretell.data.solvency_books import KEPT_S
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"
SPLIT: Final = (100, 100, 40)
FIRST_TWO: Final = 0b011
NAME_BY_TYPE: Final = {"CONVERSION": "conversion", "REDEEM": "redemption"}


def documented(begin: str, end: str) -> dict[str, float]:
    text = PAGE.read_text().partition(begin)[2].partition(end)[0]
    rows = re.findall(r"^\| ([\w -]+) \| [^|]+ \| ([\d.]+) \|$", text, re.MULTILINE)
    return {field: float(value) for field, value in rows}


async def test_open_interest_is_as_the_page_computes_it(
    fresh_sandbox: Sandbox, rig: IndexerRig, database: Database
) -> None:
    clock = Clock()
    deployment = fresh_sandbox.deployment
    books = build_solvency(database, fresh_sandbox.reader, deployment, clock.now_ms)
    context = DataContext(database, BLOBS, clock.now_ms, books, OwedReader((), no_node))
    reader = Reader(an_app(build_app, context))

    async def figures() -> tuple[float, float, float, float]:
        await fresh_sandbox.mine()
        await catch_up(an_indexer(fresh_sandbox, database))
        clock.move(int(KEPT_S * 1000))
        [interest] = await reader.get("/oi", market=rig.condition_id)
        [solvency] = (await reader.get("/solvency"))["page"]["conditions"]
        return interest["value"], solvency["held"], solvency["owed"], solvency["deficit"]

    ann, bob, carol = rig.traders
    await rig.split(carol, 12 * TOKEN)
    await rig.mint(ann, bob, 10 * TOKEN)
    await rig.trade(bob, carol, 8 * TOKEN)
    await rig.unmint(ann, bob, 5 * TOKEN)
    await rig.merge(carol, TOKEN)
    open_value, held, owed, _ = await figures()
    await rig.resolve()
    await rig.redeem(ann)
    redeemed_value, _, redeemed_owed, deficit = await figures()
    example = documented("Other figures are", "And of a fee")
    assert example.pop("total of live-volume")
    assert example == {
        "value of oi": open_value,
        "held of solvency": held,
        "owed of solvency": owed,
        "value of oi after the redemption": redeemed_value,
        "owed of solvency after the redemption": redeemed_owed,
        "deficit of solvency": deficit,
    }


async def test_conversions_and_redemptions_have_the_sizes_that_the_page_computes(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    event, trader = await SandboxEvent.ask(fresh_sandbox), fresh_sandbox.trader(0)
    await fresh_sandbox.allow(trader, event.adapter)
    for place, collateral in enumerate(SPLIT):
        await event.split(trader, place, collateral * TOKEN)
    await event.convert(trader, FIRST_TWO, 60 * TOKEN)
    for place in range(len(SPLIT)):
        await event.answer(place, is_yes=place == 2)
    await event.redeem(trader, 2, 100 * TOKEN, 40 * TOKEN)
    await catch_up(an_indexer(fresh_sandbox, database))
    reader = Reader(an_app(build_app, a_data_context(database, BLOBS, Clock().now_ms)))
    acts = await reader.get("/activity", user=trader.address, type="CONVERSION,REDEEM")
    assert documented("And of activities", "And of referrals") == {
        f"{field} of the {NAME_BY_TYPE[act['type']]}": act[field]
        for act in acts
        for field in ("size", "usdcSize")
    }
