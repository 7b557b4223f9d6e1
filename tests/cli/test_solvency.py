import asyncio
import io

import pytest
from rich.console import Console
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up

from foretell.chain.deploy import store_deployment
from foretell.cli.solvency import run_solvency
from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.chain import InvalidDeployment
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade

pytestmark = pytest.mark.anyio

UNITS = 3_000_000


async def printed(settings: Settings) -> str:
    """Return what the command prints; it runs an event loop of its own."""
    console = Console(file=io.StringIO(), width=200)
    try:
        await asyncio.to_thread(run_solvency, settings, console)
    finally:
        assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def index(sandbox: Sandbox, settings: Settings) -> None:
    async with Database(settings.database) as database:
        await upgrade(database)
        await catch_up(an_indexer(sandbox, database))


async def test_the_command_prints_the_report_and_fails_when_collateral_is_missing(
    fresh_sandbox: Sandbox, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox, tokens = fresh_sandbox, fresh_sandbox.deployment.conditional_tokens
    settings = Settings(
        data=settings.data,
        chain_id=SANDBOX_CHAIN_ID,
        chain_port=int(sandbox.rpc_url.split(":")[-1]),
    )
    settings.data.mkdir(exist_ok=True)
    with pytest.raises(InvalidDeployment, match=r"deployment.json does not exist"):
        await printed(settings)
    store_deployment(settings.deployment_file, sandbox.deployment)
    await sandbox.split(sandbox.trader(), await sandbox.ask(), UNITS)
    await index(sandbox, settings)
    report = await printed(settings)
    assert "conditional_tokens │ 3    │ 3    │ 0" in report
    assert "1 conditions, 0 with a deficit" in report

    await sandbox.rpc.send("anvil_setBalance", tokens, hex(10**18))
    await sandbox.rpc.send("anvil_impersonateAccount", tokens)
    calldata = "0x" + Transfer(sandbox.trader(5).address, 1).encode().hex()
    call = {"from": tokens, "to": sandbox.deployment.collateral, "data": calldata}
    await sandbox.rpc.send("eth_sendTransaction", call)
    await sandbox.mine()
    await index(sandbox, settings)
    with pytest.raises(SystemExit) as ended:
        await printed(settings)
    assert ended.value.code == 1
    assert "0.000001 collateral is missing" in capsys.readouterr().err
