"""What a creator must know before it asks: chains, contracts, fees, and the limits of images."""

from typing import Any

from foretell.creation.context import STACKS, CreationServices
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, checksum_address


async def market_config(services: CreationServices) -> dict[str, Any]:
    """Return the configuration, its fees and terms as the chain has them now.

    What a deployment of an earlier version lacks has the address zero.
    """
    deployment, reader = services.deployment, services.reader
    fee_units = await reader.creation_fee_units(
        deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    )
    question_fee_units = deployment.creation.neg_risk_fee_units
    if ContractName.NEG_RISK_DIRECT_ADAPTER in deployment.contracts:
        adapter = deployment.address(ContractName.NEG_RISK_DIRECT_ADAPTER)
        question_fee_units = await reader.creation_fee_units(adapter)
    contracts = _contracts(services)
    stacks = {
        stack: await _stack(services, stack)
        for stack, names in STACKS.items()
        if names.adapter in deployment.contracts
    }
    return {
        "defaultChainId": deployment.chain_id,
        "defaultResolutionType": services.rules.default_resolution_type,
        "supportedChainIds": [deployment.chain_id],
        "requiredCreatorFundingUsdc": decimal_text(fee_units),
        "directNormalMarketFeeUsdc": decimal_text(fee_units),
        "directNegRiskQuestionFeeUsdc": decimal_text(question_fee_units),
        "imagePolicy": services.images.policy.document(),
        "chains": [
            {
                "chainId": deployment.chain_id,
                **contracts,
                "conditionalTokens": checksum_address(deployment.conditional_tokens),
                "marketRegistry": _address(services, ContractName.MARKET_REGISTRY),
                "proposerWhitelistRegistry": _address(
                    services, ContractName.PROPOSER_WHITELIST_REGISTRY
                ),
                "resolutionStacks": stacks,
            }
        ],
        **contracts,
        "executionMode": "eoa",
    }


def _contracts(services: CreationServices) -> dict[str, str]:
    names = STACKS[services.rules.default_resolution_type]
    return {
        "usdcToken": checksum_address(services.deployment.collateral),
        "umaAdapter": _address(services, names.adapter),
        "ctfExchange": checksum_address(services.deployment.exchange),
        "negRiskOperator": _address(services, names.operator),
        "negRiskCtfExchange": _address(services, ContractName.NEG_RISK_EXCHANGE),
        "negRiskUmaAdapter": _address(services, names.event_adapter),
    }


async def _stack(services: CreationServices, stack: ResolutionType) -> dict[str, Any]:
    """Return the contracts of a stack, and what it asks of a proposal."""
    names, is_optimistic = STACKS[stack], stack is ResolutionType.OPTIMISTIC
    adapter = services.deployment.address(names.adapter)
    bond_units, liveness_s = (
        await services.reader.proposal_terms(adapter) if is_optimistic else (0, 0)
    )
    return {
        "oracle": _address(services, names.oracle),
        "adapter": checksum_address(adapter),
        "negRiskAdapter": _address(services, names.event_adapter),
        "negRiskOperator": _address(services, names.operator),
        "livenessSeconds": liveness_s,
        "proposalBondUsdc": decimal_text(bond_units),
        "rewardUsdc": decimal_text(services.options.reward_units if is_optimistic else 0),
    }


def _address(services: CreationServices, name: ContractName) -> str:
    known = services.deployment.contracts
    return checksum_address(known[name].address if name in known else ZERO_ADDRESS)
