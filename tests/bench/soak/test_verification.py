"""The comparison of all tables with the chain at the end of a soak."""

import asyncio
import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.bench.soak.test_soak import CLEAN
from tests.cli.test_solvency import index
from tests.rigs.sandbox import Sandbox

from foretell.bench.rigs.ports import free_port
from foretell.bench.rigs.soak.messages import SoakOutcome
from foretell.bench.rigs.soak.verification import with_verification
from foretell.chain.deploy import store_deployment
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.tables import positions

pytestmark = pytest.mark.anyio


async def verified(data: Path) -> SoakOutcome:
    """Return the outcome of a soak after its verification, which runs an event loop of its own."""
    return await asyncio.to_thread(with_verification, CLEAN, data)


def write_ready(data: Path, rpc_url: str) -> None:
    names = ("clob", "data", "discovery", "ws")
    market = dict.fromkeys(("conditionId", "tokenYes", "tokenNo", "slug"), "")
    ready = {**dict.fromkeys(names, ""), "rpc": rpc_url, "chainId": SANDBOX_CHAIN_ID}
    (data / "ready.json").write_text(json.dumps({**ready, "market": market}))


async def test_a_row_that_differs_is_a_fault_and_so_is_a_chain_that_does_not_answer(
    fresh_sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox, settings = fresh_sandbox, Settings(data=tmp_path)
    store_deployment(settings.deployment_file, sandbox.deployment)
    write_ready(tmp_path, sandbox.rpc_url)
    await sandbox.split(sandbox.trader(), await sandbox.ask(), 3_000_000)
    await index(sandbox, settings)
    outcome = await verified(tmp_path)
    assert outcome.is_clean
    assert outcome.rows_compared > 0
    async with Database(settings.database) as database, database.writing() as tx:
        await tx.execute(sa.update(positions).values(cost_units=positions.c.cost_units + 1))
    outcome = await verified(tmp_path)
    assert outcome.faults == len(outcome.examples) == 2
    assert all(each.startswith("positions ('0x") for each in outcome.examples)
    write_ready(tmp_path, f"http://127.0.0.1:{free_port()}")
    outcome = await verified(tmp_path)
    [words] = outcome.examples
    assert (outcome.faults, outcome.rows_compared) == (1, 0)
    assert words.startswith("the tables were not compared with the chain: ")
