import asyncio
import io
import re

import pytest
import sqlalchemy as sa
from rich.console import Console
from tests.cli.test_solvency import index
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_word

from foretell.chain.deploy import store_deployment
from foretell.cli.verification import run_verify_data
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.chain import InvalidDeployment
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.tables import failed_volumes, positions, quote_points

pytestmark = pytest.mark.anyio

UNITS = 3_000_000
CURE = "failed_volumes, quote_points: foretell journal rebuild has the next start compute these again; stop the exchange first"


async def printed(settings: Settings, console: Console) -> str:
    """Return what the command has printed; it runs an event loop of its own."""
    await asyncio.to_thread(run_verify_data, settings, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_the_command_compares_every_table_and_fails_when_a_row_differs(
    fresh_sandbox: Sandbox, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox = fresh_sandbox
    settings = Settings(
        data=settings.data,
        chain_id=SANDBOX_CHAIN_ID,
        chain_port=int(sandbox.rpc_url.split(":")[-1]),
    )
    settings.data.mkdir(exist_ok=True)
    console = Console(file=io.StringIO(), width=200)
    with pytest.raises(InvalidDeployment, match=r"deployment.json does not exist"):
        await printed(settings, console)
    store_deployment(settings.deployment_file, sandbox.deployment)
    await sandbox.split(sandbox.trader(), await sandbox.ask(), UNITS)
    await index(sandbox, settings)
    report = await printed(settings, console)
    assert re.search(r"│ positions +│ +2 ", report)
    assert (
        "every row that was compared is as computed from the chain, the trades, the books and"
        in report
    )
    async with Database(settings.database) as database, database.writing() as tx:
        await tx.execute(sa.update(positions).values(cost_units=positions.c.cost_units + 1))
    with pytest.raises(SystemExit, match="1"):
        await printed(settings, console)
    assert "2 rows differ from what they should be" in capsys.readouterr().err
    assert isinstance(console.file, io.StringIO)
    assert f"positions ('{sandbox.trader().address}'" in console.file.getvalue()
    assert "foretell journal rebuild" not in console.file.getvalue()
    async with Database(settings.database) as database, database.writing() as tx:
        await tx.insert_rows(failed_volumes, [(a_word("market"), 1, 7, UNITS)])
        await tx.insert_rows(quote_points, [(a_word("market"), 7, 100, None, None, None, UNITS)])
    with pytest.raises(SystemExit, match="1"):
        await printed(settings, console)
    assert CURE in console.file.getvalue()
