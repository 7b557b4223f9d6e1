import json
from dataclasses import replace
from typing import Any

import pytest

from foretell.domain.contracts.deployment import (
    ContractName,
    CreationTerms,
    DeployedContract,
    Deployment,
    check_usable,
    encode_deployment,
    parse_deployment,
)
from foretell.domain.contracts.logs import ContractKind
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.exchange.profiles import SANDBOX_NEG_RISK_PROFILES, SANDBOX_PROFILES
from foretell.domain.values.hexadecimal import Address, Bytes32

INIT_CODE_HASH = Bytes32("0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf")
FACTORY = Address("0xaacfeea03eb1561c4e67d661e40682bd20e3541b")
OWNER = Address("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")


def a_deployment(**changed: Any) -> Deployment:
    contracts = {
        name: DeployedContract(Address(f"0x{number:040x}"), Bytes32(f"0x{number:064x}"))
        for number, name in enumerate(ContractName, 1)
    }
    contracts[ContractName.SAFE_FACTORY] = DeployedContract(FACTORY, INIT_CODE_HASH)
    deployment = Deployment(
        chain_id=80002,
        is_sandbox=True,
        is_complete=True,
        start_block=12,
        contracts=contracts,
        profiles=SANDBOX_PROFILES,
        safe_factory_name="Contract Proxy Factory",
        safe_init_code_hash=INIT_CODE_HASH,
        creation=CreationTerms(5_000_000, 2_000_000, 8_000),
    )
    return replace(deployment, neg_risk_profiles=SANDBOX_NEG_RISK_PROFILES, **changed)


@pytest.mark.parametrize(
    "deployment",
    [a_deployment(), a_deployment(is_complete=False, contracts={}, profiles=())],
)
def test_a_deployment_reads_back_from_its_file(deployment: Deployment) -> None:
    assert parse_deployment(encode_deployment(deployment)) == deployment


def test_orders_for_the_two_exchanges_are_signed_for_different_domains() -> None:
    deployment = a_deployment()
    plain = set(deployment.separators().by_profile)
    assert len(plain | set(deployment.neg_risk_separators().by_profile)) == 12


def test_a_file_from_before_there_were_two_exchanges_is_read() -> None:
    document = json.loads(encode_deployment(a_deployment()))
    del document["negRiskProfiles"]
    assert parse_deployment(json.dumps(document).encode()).neg_risk_profiles == ()


def test_the_file_has_the_names_of_the_interfaces() -> None:
    document = json.loads(encode_deployment(a_deployment()))
    assert document["chainId"] == 80002
    assert document["contracts"]["safeFactory"]["address"] == (
        "0xaacFeEa03eb1561C4e67d661e40682Bd20E3541b"
    )
    assert document["profiles"][0]["verifyingContract"] is None
    assert document["creation"]["feeUnits"] == 5_000_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 2),
        ("chainId", "80002"),
        ("unknownField", 1),
        ("contracts", {"exchange": {"address": "0x12", "codeHash": INIT_CODE_HASH}}),
        ("contracts", {"spoon": {"address": FACTORY, "codeHash": INIT_CODE_HASH}}),
        ("safe", {"factoryName": "x", "initCodeHash": "0x"}),
    ],
)
def test_a_malformed_file_is_refused(field: str, value: object) -> None:
    document = json.loads(encode_deployment(a_deployment()))
    with pytest.raises(InvalidDeployment):
        parse_deployment(json.dumps(document | {field: value}).encode())


def test_a_file_that_is_not_json_is_refused() -> None:
    with pytest.raises(InvalidDeployment):
        parse_deployment(b"{")


def test_contracts_are_found_by_their_names() -> None:
    deployment = a_deployment()
    contracts = deployment.contracts
    assert deployment.collateral == contracts[ContractName.COLLATERAL].address
    assert deployment.conditional_tokens == contracts[ContractName.CONDITIONAL_TOKENS].address
    assert deployment.exchange == contracts[ContractName.EXCHANGE].address
    assert deployment.multi_send == contracts[ContractName.MULTI_SEND].address
    assert deployment.safe_factory == FACTORY
    with pytest.raises(InvalidDeployment, match="no exchange"):
        _ = a_deployment(contracts={}).exchange


def test_the_standard_exchange_is_the_first_of_the_deployed_ones() -> None:
    deployment = a_deployment()
    assert deployment.exchanges == (deployment.exchange, deployment.neg_risk_exchange)
    contracts = dict(deployment.contracts)
    del contracts[ContractName.NEG_RISK_EXCHANGE]
    assert replace(deployment, contracts=contracts).exchanges == (deployment.exchange,)


def test_each_exchange_has_its_own_profiles() -> None:
    deployment = a_deployment()
    assert deployment.profiles_of(deployment.exchange) == SANDBOX_PROFILES
    assert deployment.profiles_of(deployment.neg_risk_exchange) == SANDBOX_NEG_RISK_PROFILES


def test_missing_contracts_are_named() -> None:
    deployment = a_deployment()
    assert deployment.missing == ()
    contracts = dict(deployment.contracts)
    del contracts[ContractName.MULTI_SEND]
    assert replace(deployment, contracts=contracts).missing == (ContractName.MULTI_SEND,)


def test_an_owners_safe_follows_from_the_factory() -> None:
    assert a_deployment().safe_of(OWNER) == "0xd93b25cb943d14d0d34fbaf01fc93a0f8b5f6e47"


def test_every_profile_has_its_domain() -> None:
    separators = a_deployment().separators().by_profile
    assert len(set(separators)) == len(SANDBOX_PROFILES)


def test_logs_are_read_from_deployed_contracts() -> None:
    deployment = a_deployment()
    kinds = deployment.kind_by_contract()
    assert kinds[deployment.exchange] is ContractKind.EXCHANGE
    assert kinds[FACTORY] is ContractKind.SAFE_FACTORY
    assert deployment.multi_send not in kinds
    assert a_deployment(contracts={}).kind_by_contract() == {}


def test_only_a_complete_deployment_of_the_same_chain_is_used() -> None:
    check_usable(a_deployment(), 80002)
    with pytest.raises(InvalidDeployment, match="incomplete"):
        check_usable(a_deployment(is_complete=False), 80002)
    with pytest.raises(InvalidDeployment, match="137"):
        check_usable(a_deployment(), 137)
