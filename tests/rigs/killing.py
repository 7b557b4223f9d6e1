"""Kill a process at any of its calls of the node, before the node receives it or after."""

import asyncio
import contextlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, Protocol

from tests.rigs.fault_proxy import Answer, FaultProxy, Forward, Request

METHODS: Final = (
    "eth_blockNumber",
    "eth_call",
    "eth_chainId",
    "eth_feeHistory",
    "eth_getCode",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_maxPriorityFeePerGas",
    "eth_sendRawTransaction",
)


class Restartable(Protocol):
    """The state of one process, created again by the next one."""

    async def restart(self) -> None: ...


class Killer:
    """Waits for the n-th call, and blocks all calls after it."""

    def __init__(self, proxy: FaultProxy, call: int, *, is_received: bool) -> None:
        self._proxy = proxy
        self._calls_left = call
        self._is_received = is_received
        self._struck = asyncio.Event()
        self._released = asyncio.Event()

    async def kill(self, process: Restartable, work: Coroutine[Any, Any, object]) -> bool:
        """Run work up to the call, then restart the process; return whether the call was made."""
        for method in METHODS:
            self._proxy.fail_always(method, self._strike)
        task = asyncio.create_task(work)
        struck = asyncio.create_task(self._struck.wait())
        await asyncio.wait({task, struck}, return_when=asyncio.FIRST_COMPLETED)
        for each in (task, struck):
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await each
        self._released.set()
        self._proxy.heal()
        await process.restart()
        return self._struck.is_set()

    async def _strike(self, request: Request, forward: Forward) -> Answer | None:
        del request
        self._calls_left -= 1
        if self._calls_left > 0:
            return await forward()
        if self._calls_left == 0 and self._is_received:
            await forward()
        self._struck.set()
        await self._released.wait()
        return None


def is_running(pid: int, module: str) -> bool:
    """Return whether the process of this id runs this module; a dead one may wait to be reaped."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return status != "Z" and module in Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return False
