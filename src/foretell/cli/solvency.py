"""`foretell solvency`: what the contracts hold against what is claimed."""

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.builders import build_solvency
from foretell.app.clock_and_ids import now_ms
from foretell.chain.deploy import load_deployment
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.cli.failure import fail
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.portfolio.solvency import SolvencyTotal
from foretell.domain.values.amounts import decimal_text
from foretell.settings import Settings
from foretell.store.database import Database


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
    deployment = load_deployment(settings.deployment_file)
    if deployment is None:
        raise InvalidDeployment(f"{settings.deployment_file} does not exist; start Foretell first")
    given = settings.rpc_url
    rpc_url = settings.devchain_url if given is None else given.get_secret_value()
    async with (
        Rpc(rpc_url, deployment.chain_id) as rpc,
        Database(settings.database, settings.public_reads) as database,
    ):
        return await build_solvency(database, Reader(rpc, deployment), deployment, now_ms).total()
