"""Chains of a test module's own."""

import contextlib
from collections.abc import AsyncIterator

from foretell.chain.devchain import DevChain, DevChainOptions
from foretell.chain.rpc import Rpc


@contextlib.asynccontextmanager
async def started(options: DevChainOptions) -> AsyncIterator[Rpc]:
    chain = DevChain(options)
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            yield rpc
    finally:
        await chain.stop()


async def head(rpc: Rpc) -> int:
    return int(await rpc.call("eth_blockNumber"), 16)
