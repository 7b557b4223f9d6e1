"""The verification after a soak: every table of the sandbox against its chain, as `foretell verify data` compares them."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.soak.clients import SandboxAddresses
from foretell.bench.rigs.soak.messages import FAULTS_SHOWN_MAX, SoakOutcome
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import parse_deployment
from foretell.domain.errors.families import ForetellError
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.verify import verify_data
from foretell.settings import SQLITE
from foretell.store.database import Database

VERIFY_DEADLINE_S: Final = 1_800.0
DATABASE_FILE: Final = "foretell.db"
"""Not that of the settings here, of which the sandbox has inherited none."""


def with_verification(outcome: SoakOutcome, data: Path) -> SoakOutcome:
    """Return the outcome with the rows that were compared; each that differs is a fault."""
    try:
        report = uvloop.run(_verify(data.absolute()))
    except (ForetellError, TimeoutError) as failure:
        words = (
            f"the tables were not compared with the chain: {str(failure) or type(failure).__name__}"
        )
        return _with_faults(outcome, 1, [words])
    words_of = [f"{each.table} {each.key} differs" for each in report.differences]
    compared = msgspec.structs.replace(outcome, rows_compared=sum(report.rows.values()))
    return _with_faults(compared, report.found, words_of)


async def _verify(data: Path) -> DataReport:
    """Compare the tables of a data folder, whose sandbox runs and has nothing left to settle."""
    addresses = msgspec.json.decode((data / "ready.json").read_bytes(), type=SandboxAddresses)
    deployment = parse_deployment((data / "deployment.json").read_bytes())
    async with (
        asyncio.timeout(VERIFY_DEADLINE_S),
        Rpc(addresses.rpc, addresses.chain_id) as rpc,
        Database(f"{SQLITE}/{data / DATABASE_FILE}") as database,
    ):
        return await verify_data(database, rpc, deployment, now_ms=now_ms)


def _with_faults(outcome: SoakOutcome, count: int, words: list[str]) -> SoakOutcome:
    examples = (*outcome.examples, *words)[:FAULTS_SHOWN_MAX]
    return msgspec.structs.replace(outcome, faults=outcome.faults + count, examples=examples)
