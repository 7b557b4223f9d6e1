"""Chains that belong to one test module."""

import contextlib
import gzip
from collections.abc import AsyncIterator
from pathlib import Path
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
        ContractName.BATCH_SETTLER,
    }
)
"""The contracts that deployments of the first version lack, and get."""


@contextlib.asynccontextmanager
async def started(options: DevChainOptions) -> AsyncIterator[Rpc]:
    chain = DevChain(options)
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            yield rpc
    finally:
        await chain.stop()


def is_paid_in(dump: Path, payee: str) -> bool:
    """Return whether a dump that a chain stored has a payment: the first one may be made before it."""
    try:
        return payee.encode() in gzip.decompress(dump.read_bytes()).lower()
    except FileNotFoundError:
        return False


def url_of(options: DevChainOptions) -> str:
    return DevChain(options).rpc_url


async def head(rpc: Rpc) -> int:
    return int(await rpc.call("eth_blockNumber"), 16)
