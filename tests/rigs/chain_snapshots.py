"""Taking a chain back, with nothing left over that it could mine once more.

A node that mines at once shows a receipt a moment before it takes the transaction out of its pool.
Taken back within that moment, it would mine the same transaction again.
"""

import asyncio
from typing import Final

from foretell.chain.rpc import Rpc

POOL_LOOKS_MAX: Final = 30
POOL_LOOK_S: Final = 0.001
MINING_LOOKS_MAX: Final = 3_000
EMPTY_POOL: Final = {"pending": "0x0", "queued": "0x0"}


async def take_back(rpc: Rpc, snapshot: object) -> None:
    """Return to a snapshot; what a test has left waiting in the pool is dropped."""
    for _ in range(POOL_LOOKS_MAX):
        if await rpc.send("txpool_status") == EMPTY_POOL:
            break
        await asyncio.sleep(POOL_LOOK_S)
    else:
        await rpc.send("anvil_dropAllTransactions")
    assert await rpc.send("evm_revert", snapshot)


async def wait_until_mined(rpc: Rpc) -> None:
    """Return when a node that mines at once has done so: it answers before, by a little or a lot.

    A node that mines when it is told to is not waited for.
    """
    if not await rpc.send("anvil_getAutomine"):
        return
    for _ in range(MINING_LOOKS_MAX):
        if (await rpc.send("txpool_status"))["pending"] == EMPTY_POOL["pending"]:
            return
        await asyncio.sleep(POOL_LOOK_S)
    raise AssertionError("transactions wait in the pool")
