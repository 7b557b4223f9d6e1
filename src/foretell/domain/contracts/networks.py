"""Chains with a name: their ids, and the contracts that exist there already.

Any other EVM chain is deployed to by the chain id and the collateral in the settings.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.contracts.deployment import ContractName
from foretell.domain.values.hexadecimal import Address


class NetworkName(enum.StrEnum):
    """The names that `foretell deploy --network` accepts."""

    POLYGON = "polygon"
    AMOY = "amoy"


class Network(NamedTuple):
    """A chain, and the contracts on it that a deployment uses instead of its own."""

    chain_id: int
    existing: Mapping[ContractName, Address]


# Safe's contracts are found without being named: CREATE2 puts them at the same addresses.
NETWORKS: Final[Mapping[NetworkName, Network]] = MappingProxyType(
    {
        NetworkName.POLYGON: Network(
            137,
            {
                ContractName.COLLATERAL: Address("0x3c499c542cef5e3811e1192ce70d8cc03d5c3359"),
                ContractName.CONDITIONAL_TOKENS: Address(
                    "0x4d97dcd97ec945f40cf65f87097ace5ea0476045"
                ),
            },
        ),
        NetworkName.AMOY: Network(
            80002,
            {
                ContractName.COLLATERAL: Address("0x41e94eb019c0762f9bfcf9fb1e58725bfb0e7582"),
                ContractName.CONDITIONAL_TOKENS: Address(
                    "0x69308fb512518e39f9b16112fa8d994f4e2bf8bb"
                ),
            },
        ),
    }
)
