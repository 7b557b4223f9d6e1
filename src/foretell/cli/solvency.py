"""`foretell solvency`: what the contracts hold against what is claimed."""

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.builders import build_solvency
from foretell.app.clock_and_ids import now_ms
from foretell.chain.reader import Reader
from foretell.cli.failure import fail
from foretell.cli.sources import open_sources
from foretell.domain.portfolio.solvency import SolvencyTotal
from foretell.domain.values.amounts import decimal_text
from foretell.settings import Settings


def run_solvency(settings: Settings, console: Console) -> None:
    """Print the report as of the last indexed block, and fail when anything is missing."""
    total = uvloop.run(_report(settings))
    table = Table("pool", "held", "owed", "deficit", title=f"block {total.block_number}")
    for pool in total.pools:
        units = pool.held_units, pool.owed_units, pool.deficit_units
        table.add_row(pool.name, *map(decimal_text, units))
    console.print(table)
    console.print(f"block hash {total.block_hash}", soft_wrap=True)
    console.print(f"{total.conditions} conditions, {total.short_conditions} with a deficit")
    for each in total.deficits:
        console.print(f"deficit of {each.name}: {decimal_text(each.units)}", soft_wrap=True)
    if not total.is_solvent:
        fail(f"{decimal_text(total.deficit_units)} collateral is missing")


async def _report(settings: Settings) -> SolvencyTotal:
    async with open_sources(settings) as (deployment, rpc, database):
        return await build_solvency(database, Reader(rpc, deployment), deployment, now_ms).total()
