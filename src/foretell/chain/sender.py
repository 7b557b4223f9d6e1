"""One account's queue of transactions: simulate, reserve, sign, store, broadcast, watch.

What is sent has an id, and an id is one transaction, whatever happens in between: the nonce and the
signed bytes are stored before anyone sees them, so a crash at any point leaves either nothing or a
row that the watcher takes up again. Broadcasting the same bytes twice does nothing; a second
transaction is never signed because the fate of the first is unknown.

Only one process may send for an account. The store refuses a nonce that is taken, so a second one
by mistake does no harm.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

from foretell.chain.broadcaster import FEE_CAP_WEI, Broadcaster, SenderOptions
from foretell.chain.outbox import Outbox
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.chain.views import ViewCall, ask_all
from foretell.chain.watcher import Watcher
from foretell.domain.errors.chain import ExecutionReverted
from foretell.domain.errors.families import Upstream
from foretell.domain.evm.transaction import OutgoingTx, SentTx
from foretell.runtime.worker import Pace, run_worker

GAS_MARGIN_PERCENT: Final = 20
"""What others do between the estimate and the block may make a call dearer."""

SIMULATED_AT: Final = "pending"
PACE: Final = Pace(busy_s=0.25, idle_s=15.0)

__all__ = ["FEE_CAP_WEI", "Outbox", "Sender", "SenderOptions"]


class Sender:
    """One account that sends."""

    def __init__(
        self,
        rpc: Rpc,
        private_key: bytes,
        outbox: Outbox,
        options: SenderOptions,
        now_ms: Callable[[], int],
    ) -> None:
        self._rpc = rpc
        self._outbox = outbox
        self._broadcaster = Broadcaster(rpc, private_key, outbox, options, now_ms)
        self._watcher = Watcher(self._broadcaster)
        self._woken = asyncio.Event()
        self.address = self._broadcaster.address

    async def send(self, tx: OutgoingTx) -> SentTx:
        """Send a transaction, or return what has become of it when it was sent before.

        Raises ExecutionReverted, with nothing stored or sent, when the call would revert now. One
        that comes back PENDING is not known to be with a node; the watcher sees to that.
        """
        if (known := await self._known(tx)) is not None:
            return known
        await self._broadcaster.check_chain()
        gas = await self._simulate(tx)
        async with self._broadcaster.lock:
            if (known := await self._known(tx)) is not None:
                return known
            reserved = await self._broadcaster.reserve(tx, gas)
            self._woken.set()
            return await self._broadcaster.push(reserved)

    async def ask_all(self, calls: list[ViewCall]) -> list[Any]:
        """Return what views answer in the state in which calls are simulated, in their order."""
        return await ask_all(self._rpc, calls, SIMULATED_AT)

    async def revert_of(self, tx: OutgoingTx, at: str = SIMULATED_AT) -> ExecutionReverted | None:
        """Return how a transaction would revert if it were sent, or None when it would pass."""
        try:
            await self._call(tx, at)
        except ExecutionReverted as reverted:
            return reverted
        return None

    async def run(self) -> None:
        """Watch what was sent, by this process or one before it, until cancelled."""
        name = f"transactions of {self.address}"
        await run_worker(name, self._watch, PACE, self._pause, expected=(Upstream,))

    async def _watch(self) -> bool:
        await self._broadcaster.check_chain()
        return await self.run_once() > 0

    async def run_once(self) -> int:
        """Look once at what is unfinished, and return how much still is."""
        return await self._watcher.run_once()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    async def _known(self, tx: OutgoingTx) -> SentTx | None:
        known = await self._outbox.load(tx.tx_id)
        if known is not None:
            known.check_same(tx)
        return known

    async def _simulate(self, tx: OutgoingTx) -> int:
        """Return the gas to sign for; a call that would revert is refused here."""
        call = await self._call(tx, SIMULATED_AT)
        if tx.gas is not None:
            return tx.gas
        answer = await self._rpc.call("eth_estimateGas", call, SIMULATED_AT)
        gas = quantity_of(answer, "eth_estimateGas")
        return gas + gas * GAS_MARGIN_PERCENT // 100

    async def _call(self, tx: OutgoingTx, at: str) -> dict[str, str]:
        """Have the node run a call, and return it as the node was asked."""
        call = {"from": self.address, "to": tx.target, "data": "0x" + tx.calldata.hex()}
        if tx.gas is not None:
            call["gas"] = hex(tx.gas)
        await self._rpc.call("eth_call", call, at)
        return call
