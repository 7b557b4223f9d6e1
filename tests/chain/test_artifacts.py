from pathlib import Path

import pytest
from tests.conftest import NPM_FOLDER

from foretell.chain import artifacts
from foretell.chain.artifacts import (
    OWN_CONTRACTS,
    error_names,
    npm_artifact,
    own_artifact,
    reason_of,
)
from foretell.domain.contracts import calldata
from foretell.domain.errors.chain import ExecutionReverted, ProgramMissing
from foretell.domain.evm.abi import ContractFunction, contract_function
from foretell.domain.values.hexadecimal import keccak256


def types_of(parts: list[dict[str, object]]) -> str:
    """Return the types of ABI parameters, tuples in parentheses."""
    return ",".join(
        f"({types_of(part['components'])}){str(part['type'])[5:]}"  # type: ignore[arg-type]  # JSON
        if str(part["type"]).startswith("tuple")
        else str(part["type"])
        for part in parts
    )


def functions_of(*abis: object) -> set[str]:
    return {
        f"{part['name']}({types_of(part['inputs'])})"
        for abi in abis
        for part in abi  # type: ignore[attr-defined]  # JSON
        if part["type"] == "function"
    }


CALLS = [value for value in vars(calldata).values() if isinstance(value, ContractFunction)]


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.name)
def test_every_function_that_we_call_is_in_the_abi_of_a_contract(
    function: ContractFunction,
) -> None:
    own = [own_artifact(name).abi for name in OWN_CONTRACTS]
    others = [
        npm_artifact(NPM_FOLDER, name).abi
        for name in (
            artifacts.CONDITIONAL_TOKENS,
            artifacts.SAFE_SINGLETON,
            artifacts.MULTI_SEND,
        )
    ]
    assert function.signature in functions_of(*own, *others)


@pytest.mark.parametrize("name", OWN_CONTRACTS)
def test_the_package_contains_every_own_contract(name: str) -> None:
    artifact = own_artifact(name)
    assert artifact.bytecode
    assert artifact.abi


def test_constructor_arguments_follow_the_creation_code() -> None:
    artifact = own_artifact("MarketRegistry")
    admin = "0x" + "ad" * 20
    assert artifact.init_code(admin) == artifact.bytecode + bytes(12) + b"\xad" * 20
    plain = own_artifact("ProposerWhitelistRegistry")
    assert plain.init_code() == plain.bytecode


def test_a_contract_that_npm_did_not_install_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing, match="ConditionalTokens"):
        npm_artifact(tmp_path, artifacts.CONDITIONAL_TOKENS)


def test_every_own_error_is_found_by_its_selector() -> None:
    names = error_names()
    assert names[keccak256(b"NotOperator()")[:4]] == "NotOperator"
    assert names[keccak256(b"InsufficientBalance()")[:4]] == "InsufficientBalance"


@pytest.mark.parametrize(
    ("revert", "reason"),
    [
        ("0x" + keccak256(b"NotOperator()")[:4].hex(), "NotOperator"),
        ("0x01020304", "execution reverted"),
        ("Reverted 0x", "execution reverted"),
        ("", "execution reverted"),
    ],
)
def test_a_revert_is_reported_by_the_contracts_error_name(revert: str, reason: str) -> None:
    reverted = ExecutionReverted("eth_call", 3, "execution reverted", revert)
    assert reason_of(reverted) == reason


def test_a_revert_reason_is_one_printable_line() -> None:
    text = contract_function("Error(string)").encode("at https://node.example/key\0\nno")
    reverted = ExecutionReverted("eth_call", 3, "execution reverted", "0x" + text.hex())
    assert reason_of(reverted) == "at (address)  no"
