"""Comparison of a deployment with the code that a chain holds."""

import enum
from collections.abc import Mapping, Sequence

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import bytes_of, quantity_of
from foretell.domain.contracts.deployment import ContractName, DeployedContract, Deployment
from foretell.domain.errors.chain import WrongChain
from foretell.domain.values.hexadecimal import Address, keccak256, word_of


class CodeMatch(enum.StrEnum):
    """The code at a contract's address, compared with the deployment's."""

    SAME = "as written"
    OTHER = "other code"
    NOTHING = "nothing"


async def compare_code(rpc: Rpc, deployment: Deployment) -> Mapping[ContractName, CodeMatch]:
    """Return how the code of each contract compares; refuses another chain."""
    seen = quantity_of(await rpc.call("eth_chainId"), "eth_chainId")
    if seen != deployment.chain_id:
        raise WrongChain(seen, deployment.chain_id)
    named = deployment.contracts
    codes = await fetch_codes(rpc, [contract.address for contract in named.values()])
    return {
        name: _match(code, contract)
        for (name, contract), code in zip(named.items(), codes, strict=True)
    }


def _match(code: bytes, contract: DeployedContract) -> CodeMatch:
    if not code:
        return CodeMatch.NOTHING
    is_same = word_of(keccak256(code)) == contract.code_hash
    return CodeMatch.SAME if is_same else CodeMatch.OTHER


async def is_intact(rpc: Rpc, deployment: Deployment) -> bool:
    """Return whether the chain holds exactly the code of the deployment."""
    matches = await compare_code(rpc, deployment)
    return all(match is CodeMatch.SAME for match in matches.values())


async def fetch_codes(rpc: Rpc, addresses: Sequence[Address]) -> list[bytes]:
    """Return the code at each address, empty where there is none."""
    answers = await rpc.batch([("eth_getCode", [address, "latest"]) for address in addresses])
    return [bytes_of(answer, "eth_getCode") for answer in answers]
