"""Reverts of a chain to a snapshot, without pending transactions that it would mine again.

A node with automining shows a receipt a moment before it removes the transaction from its pool. If
it is reverted within that moment, it mines the same transaction again.
"""

import asyncio
from typing import Final

from foretell.chain.rpc import Rpc

POOL_CHECKS_MAX: Final = 30
POOL_CHECK_S: Final = 0.001
MINING_CHECKS_MAX: Final = 3_000
EMPTY_POOL: Final = {"pending": "0x0", "queued": "0x0"}


async def take_back(rpc: Rpc, snapshot: object) -> None:
    """Revert to a snapshot, and drop pending transactions of the test."""
    for _ in range(POOL_CHECKS_MAX):
        if await rpc.send("txpool_status") == EMPTY_POOL:
            break
        await asyncio.sleep(POOL_CHECK_S)
    else:
        await rpc.send("anvil_dropAllTransactions")
    assert await rpc.send("evm_revert", snapshot)


async def wait_until_mined(rpc: Rpc) -> None:
    """Wait until a node with automining has mined its pool, which may be after its answer.

    A node that mines on demand is not waited for.
    """
    if not await rpc.send("anvil_getAutomine"):
        return
    for _ in range(MINING_CHECKS_MAX):
        if (await rpc.send("txpool_status"))["pending"] == EMPTY_POOL["pending"]:
            return
        await asyncio.sleep(POOL_CHECK_S)
    raise AssertionError("transactions are pending")
