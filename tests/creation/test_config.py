from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.creation.rig import CreationRig, CreatorClient, address_of, error_of
from tests.rigs.sandbox import Sandbox

from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.hexadecimal import checksum_address

pytestmark = pytest.mark.anyio

ZERO = "0x" + "00" * 20
SET_FEE = contract_function("setCreationFee(uint256,uint256)")


async def config(rig: CreationRig) -> dict[str, Any]:
    answer = await rig.http.get("/market-config")
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.spec(35, 67)
async def test_the_configuration_has_its_eight_keys_with_their_types(rig: CreationRig) -> None:
    body = await config(rig)

    assert body["defaultChainId"] == 80002
    assert body["defaultResolutionType"] == "dro_moov2"
    assert body["supportedChainIds"] == [80002]
    assert body["requiredCreatorFundingUsdc"] == "5"
    assert body["directNormalMarketFeeUsdc"] == "5"
    assert body["directNegRiskQuestionFeeUsdc"] == "2"
    assert body["imagePolicy"] == {
        "maxUploadBytes": 2_097_152,
        "targetPx": 256,
        "targetMaxBytes": 102_400,
    }
    assert len(body["chains"]) == 1


@pytest.mark.spec(37)
async def test_addresses_are_those_of_the_deployment_and_have_code(
    rig: CreationRig, fresh_sandbox: Sandbox
) -> None:
    (chain,) = (await config(rig))["chains"]
    deployment = fresh_sandbox.deployment

    def at(name: ContractName) -> str:
        return checksum_address(deployment.address(name))

    assert chain["chainId"] == 80002
    assert chain["usdcToken"] == at(ContractName.COLLATERAL)
    assert chain["umaAdapter"] == at(ContractName.DIRECT_RESOLUTION_ADAPTER)
    assert chain["ctfExchange"] == at(ContractName.EXCHANGE)
    assert chain["conditionalTokens"] == at(ContractName.CONDITIONAL_TOKENS)
    assert chain["marketRegistry"] == at(ContractName.MARKET_REGISTRY)
    assert chain["proposerWhitelistRegistry"] == at(ContractName.PROPOSER_WHITELIST_REGISTRY)
    assert chain["positionAdapter"] == at(ContractName.NEG_RISK_ADAPTER)
    assert chain["safeFactory"] == at(ContractName.SAFE_FACTORY)
    assert chain["safeFactoryName"] == deployment.safe_factory_name
    factories = [
        at(ContractName.DEPOSIT_WALLET_FACTORY),
        at(ContractName.SECOND_DEPOSIT_WALLET_FACTORY),
    ]
    assert chain["depositWalletFactories"] == list(dict.fromkeys(factories))
    assert chain["multiSend"] == at(ContractName.MULTI_SEND)
    stacks = chain["resolutionStacks"]
    assert stacks.keys() == {"dro_moov2", "alt_moov2"}
    assert stacks["dro_moov2"] == {
        "oracle": at(ContractName.DIRECT_RESOLUTION_ORACLE),
        "adapter": at(ContractName.DIRECT_RESOLUTION_ADAPTER),
        "negRiskAdapter": at(ContractName.NEG_RISK_DIRECT_ADAPTER),
        "negRiskOperator": at(ContractName.NEG_RISK_OPERATOR),
        "livenessSeconds": 0,
        "proposalBondUsdc": "0",
        "rewardUsdc": "0",
    }
    assert stacks["alt_moov2"] == {
        "oracle": at(ContractName.OPTIMISTIC_ORACLE),
        "adapter": at(ContractName.OPTIMISTIC_RESOLUTION_ADAPTER),
        "negRiskAdapter": at(ContractName.NEG_RISK_OPTIMISTIC_ADAPTER),
        "negRiskOperator": at(ContractName.NEG_RISK_OPTIMISTIC_OPERATOR),
        "livenessSeconds": 7200,
        "proposalBondUsdc": "500",
        "rewardUsdc": "5",
    }
    assert chain["negRiskCtfExchange"] == at(ContractName.NEG_RISK_EXCHANGE)
    named = {
        value
        for value in (*chain.values(), *stacks["dro_moov2"].values(), *stacks["alt_moov2"].values())
        if isinstance(value, str) and len(value) == 42
    }
    assert len(named) == 19
    assert all([await fresh_sandbox.reader.code(address_of(value)) for value in named])


@pytest.mark.spec(37)
async def test_older_clients_find_the_default_chain_at_the_top(rig: CreationRig) -> None:
    body = await config(rig)
    (chain,) = body["chains"]

    mirrored = {
        "usdcToken",
        "umaAdapter",
        "ctfExchange",
        "negRiskOperator",
        "negRiskCtfExchange",
        "negRiskUmaAdapter",
    }
    assert {name: body[name] for name in mirrored} == {name: chain[name] for name in mirrored}


@pytest.mark.spec(36)
async def test_the_fee_is_the_one_that_the_plan_approves_also_after_a_change(
    creator: CreatorClient,
) -> None:
    sandbox = creator.rig.sandbox
    adapter = sandbox.deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    await sandbox.call(
        sandbox.account(AccountRole.ADMIN), adapter, SET_FEE.encode(7_250_000, 8_000)
    )

    body = await config(creator.rig)
    record = await creator.record(await creator.prepared())

    approval = record["prepared"]["txPlan"][0]
    approved = int(approval["data"][-64:], 16)
    assert body["directNormalMarketFeeUsdc"] == "7.25"
    assert approved == Decimal(body["directNormalMarketFeeUsdc"]) * UNITS_PER_TOKEN
    assert approved == Decimal(body["requiredCreatorFundingUsdc"]) * UNITS_PER_TOKEN


@pytest.mark.spec(75)
async def test_a_wallet_with_exactly_the_hinted_funding_succeeds(rig: CreationRig) -> None:
    hint = Decimal((await config(rig))["requiredCreatorFundingUsdc"])
    account = await rig.newcomer("funded exactly", int(hint * UNITS_PER_TOKEN))
    await rig.whitelist(account)
    newcomer = rig.creator(account)

    await newcomer.finalized()

    assert await rig.sandbox.reader.collateral_units(account.address) == 0


async def test_a_chain_that_does_not_answer_is_reported(rig: CreationRig) -> None:
    async with Rpc("http://127.0.0.1:1", timeout_s=0.2) as dead:
        rig.change(reader=Reader(dead, rig.sandbox.deployment))

        answer = await rig.http.get("/market-config")

    assert error_of(answer) == (502, "chain_unavailable")
    assert "127.0.0.1" not in answer.text


async def test_contracts_that_an_earlier_deployment_lacks_have_the_zero_address(
    rig: CreationRig,
) -> None:
    deployment = rig.sandbox.deployment
    later = ("negRisk", "optimistic", "wrapped")
    contracts = {
        name: contract
        for name, contract in deployment.contracts.items()
        if not name.startswith(later)
    }
    rig.change(deployment=replace(deployment, contracts=contracts))

    body = await config(rig)

    (chain,) = body["chains"]
    assert (chain["negRiskOperator"], chain["negRiskCtfExchange"]) == (ZERO, ZERO)
    assert chain["resolutionStacks"].keys() == {"dro_moov2"}
    assert body["directNegRiskQuestionFeeUsdc"] == "2"
