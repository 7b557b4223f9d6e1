"""Chains of a test module's own."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from foretell.chain.devchain import DevChain, DevChainOptions
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import ContractName

LATER: Final = frozenset(
    {
        ContractName.OPTIMISTIC_ORACLE,
        ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
        ContractName.NEG_RISK_ADAPTER,
        ContractName.WRAPPED_COLLATERAL,
        ContractName.NEG_RISK_EXCHANGE,
        ContractName.NEG_RISK_OPERATOR,
        ContractName.NEG_RISK_DIRECT_ADAPTER,
        ContractName.NEG_RISK_OPTIMISTIC_OPERATOR,
        ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
    }
)
"""What the first version's deployments have not."""


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
