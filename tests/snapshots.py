"""Taking a chain back, with nothing left over that it could mine once more.

A node that mines at once shows a receipt a moment before it takes the transaction out of its pool.
Taken back within that moment, it would mine the same transaction again.
"""

import asyncio
from typing import Final

from foretell.chain.rpc import Rpc

POOL_LOOKS_MAX: Final = 30
POOL_LOOK_S: Final = 0.001
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
