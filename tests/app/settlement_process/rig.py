"""Settlement by a real child process, beside an engine, an index and a chain.

The process uses the system's clock: nothing that it does here waits for more than some seconds.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from typing import Final

from tests.rigs.killing import is_running
from tests.settlement.rig import SettlementRig

from foretell.app.settlement_process.client import MODULE, SettlementLimits, SettlementProcess
from foretell.app.settlement_process.messages import BeginSettlement
from foretell.domain.contracts.deployment import encode_deployment
from foretell.runtime.child_processes import RestartBackoff

SOON_S: Final = 180.0
LOOK_S: Final = 0.05
QUICK: Final = SettlementLimits(
    check_every_s=0.05, restarts=RestartBackoff(first_s=0.01, most_s=0.05)
)


def begin_of(rig: SettlementRig) -> BeginSettlement:
    """Return what the process of a rig is given."""
    accounts = (rig.context.operator, *rig.context.further_operators)
    assert len(accounts) == 1, "one account"
    return BeginSettlement(
        rig.database.url,
        rig.rpc_url or rig.sandbox.rpc_url,
        encode_deployment(rig.sandbox.deployment),
        (rig.operator_key,),
        rig.confirmations,
        rig.bars.gas_per_day_max,
    )


@contextlib.asynccontextmanager
async def settling(
    rig: SettlementRig, limits: SettlementLimits = QUICK
) -> AsyncIterator[SettlementProcess]:
    """Have a child process settle the trades of a rig."""
    process = SettlementProcess(rig.database, begin_of(rig), limits)
    running = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        running.cancel()
        await asyncio.wait([running])


async def until(is_so: Callable[[], bool]) -> None:
    """Return when a condition holds, which is soon."""
    async with asyncio.timeout(SOON_S):
        while not is_so():  # noqa: ASYNC110 - nothing publishes it
            await asyncio.sleep(LOOK_S)


async def follow(rig: SettlementRig, pause_s: float = LOOK_S) -> None:
    """Mine a block after each pause and have the engine read it, until no trade waits for the chain.

    The chain traces transactions of its last blocks only, so a pause that is short leaves no time to ask for a trace.
    """
    async with asyncio.timeout(SOON_S):
        while rig.engine.state.unsettled_trades:
            await rig.sandbox.mine()
            await rig.see()
            await asyncio.sleep(pause_s)


def kill(process: SettlementProcess) -> None:
    """Kill the process, unless it is just being started again."""
    if process.process_id is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.process_id, signal.SIGKILL)


def is_settling(pid: int) -> bool:
    """Return whether the settlement process of this id runs."""
    return is_running(pid, MODULE)
