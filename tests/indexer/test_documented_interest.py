"""Open interest and solvency of the data API's page: a market's life on the real chain."""

import re
from pathlib import Path

import pytest
from tests.indexer.rig import IndexerRig
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.read_apis import BLOBS, Reader, no_node
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


def documented() -> dict[str, float]:
    text = PAGE.read_text().partition("Other figures are")[2].partition("And of a fee")[0]
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
    example = documented()
    assert example.pop("total of live-volume")
    assert example == {
        "value of oi": open_value,
        "held of solvency": held,
        "owed of solvency": owed,
        "value of oi after the redemption": redeemed_value,
        "owed of solvency after the redemption": redeemed_owed,
        "deficit of solvency": deficit,
    }
