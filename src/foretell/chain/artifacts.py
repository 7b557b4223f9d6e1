"""Compiled contracts: our own, which the package contains, and those that npm installs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from foretell.domain.errors.chain import ExecutionReverted, ProgramMissing
from foretell.domain.errors.node_messages import redacted
from foretell.domain.evm.abi import revert_reason
from foretell.domain.evm.abi_values import encode_values
from foretell.domain.values.hexadecimal import keccak256

_CONDITIONAL_TOKENS: Final = "@gnosis.pm/conditional-tokens-contracts/build/contracts"
_SAFE: Final = "@gnosis.pm/safe-contracts/build/artifacts/contracts"

CONDITIONAL_TOKENS: Final = f"{_CONDITIONAL_TOKENS}/ConditionalTokens.json"
SAFE_SINGLETON: Final = f"{_SAFE}/GnosisSafe.sol/GnosisSafe.json"
SAFE_FALLBACK_HANDLER: Final = (
    f"{_SAFE}/handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler.json"
)
MULTI_SEND: Final = f"{_SAFE}/libraries/MultiSend.sol/MultiSend.json"

OWN_CONTRACTS: Final = (
    "BatchSettler",
    "CollateralToken",
    "DirectResolutionAdapter",
    "DirectResolutionOracle",
    "Exchange",
    "MarketRegistry",
    "NegRiskAdapter",
    "NegRiskOperator",
    "OptimisticOracle",
    "OptimisticResolutionAdapter",
    "ProposerWhitelist",
    "ProposerWhitelistRegistry",
    "SafeFactory",
    "WrappedCollateral",
)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A compiled contract: its creation code and its ABI."""

    bytecode: bytes
    abi: Sequence[Mapping[str, Any]] = ()

    def init_code(self, *arguments: object) -> bytes:
        """Return the creation code, followed by the constructor's arguments."""
        constructor = next((part for part in self.abi if part["type"] == "constructor"), None)
        inputs = () if constructor is None else constructor["inputs"]
        return self.bytecode + encode_values(tuple(part["type"] for part in inputs), arguments)


@cache
def own_artifact(name: str) -> Artifact:
    """Return one of our own contracts."""
    file = resources.files("foretell.chain") / "artifacts" / f"{name}.json"
    return _artifact_of(json.loads(file.read_text()))


@cache
def npm_artifact(npm_folder: Path, name: str) -> Artifact:
    """Return a contract that npm installed; refuses a missing one."""
    try:
        return _artifact_of(json.loads((npm_folder / name).read_text()))
    except FileNotFoundError as error:
        raise ProgramMissing(Path(name).stem, npm_folder) from error


def _artifact_of(document: Mapping[str, Any]) -> Artifact:
    return Artifact(bytes.fromhex(document["bytecode"].removeprefix("0x")), document.get("abi", ()))


@cache
def error_names() -> Mapping[bytes, str]:
    """Return the names of our contracts' errors, by selector."""
    return {
        keccak256(f"{part['name']}()".encode())[:4]: part["name"]
        for name in OWN_CONTRACTS
        for part in own_artifact(name).abi
        if part["type"] == "error"
    }


def reason_of(reverted: ExecutionReverted) -> str:
    """Return the reason of a revert, fit for clients: the contract's own, or else the node's words."""
    try:
        revert = bytes.fromhex(reverted.data.removeprefix("0x"))
    except ValueError:
        revert = b""
    return redacted(revert_reason(revert, error_names()) or reverted.rpc_message)
