"""What a creator must know before it asks: chains, contracts, fees, and the limits of images."""

from typing import Any

from foretell.creation.context import STACKS, CreationContext
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, checksum_address


async def market_config(context: CreationContext) -> dict[str, Any]:
    """Return the configuration, its fees and terms as the chain has them now.

    What a deployment of an earlier version lacks has the address zero.
    """
    deployment, reader = context.deployment, context.reader
    fee_units = await reader.creation_fee_units(
        deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    )
    question_fee_units = deployment.creation.neg_risk_fee_units
    if ContractName.NEG_RISK_DIRECT_ADAPTER in deployment.contracts:
        adapter = deployment.address(ContractName.NEG_RISK_DIRECT_ADAPTER)
        question_fee_units = await reader.creation_fee_units(adapter)
    contracts = _contracts(context)
    stacks = {
        stack: await _stack(context, stack)
        for stack, names in STACKS.items()
        if names.adapter in deployment.contracts
    }
    return {
        "defaultChainId": deployment.chain_id,
        "defaultResolutionType": context.rules.default_resolution_type,
        "supportedChainIds": [deployment.chain_id],
        "requiredCreatorFundingUsdc": decimal_text(fee_units),
        "directNormalMarketFeeUsdc": decimal_text(fee_units),
        "directNegRiskQuestionFeeUsdc": decimal_text(question_fee_units),
        "imagePolicy": context.images.policy.document(),
        "chains": [
            {
                "chainId": deployment.chain_id,
                **contracts,
                "conditionalTokens": checksum_address(deployment.conditional_tokens),
                "marketRegistry": _address(context, ContractName.MARKET_REGISTRY),
                "proposerWhitelistRegistry": _address(
                    context, ContractName.PROPOSER_WHITELIST_REGISTRY
                ),
                "resolutionStacks": stacks,
            }
        ],
        **contracts,
        "executionMode": "eoa",
    }


def _contracts(context: CreationContext) -> dict[str, str]:
    names = STACKS[context.rules.default_resolution_type]
    return {
        "usdcToken": checksum_address(context.deployment.collateral),
        "umaAdapter": _address(context, names.adapter),
        "ctfExchange": checksum_address(context.deployment.exchange),
        "negRiskOperator": _address(context, names.operator),
        "negRiskCtfExchange": _address(context, ContractName.NEG_RISK_EXCHANGE),
        "negRiskUmaAdapter": _address(context, names.event_adapter),
    }


async def _stack(context: CreationContext, stack: ResolutionType) -> dict[str, Any]:
    """Return the contracts of a stack, and what it asks of a proposal."""
    names, is_optimistic = STACKS[stack], stack is ResolutionType.OPTIMISTIC
    adapter = context.deployment.address(names.adapter)
    bond_units, liveness_s = (
        await context.reader.proposal_terms(adapter) if is_optimistic else (0, 0)
    )
    return {
        "oracle": _address(context, names.oracle),
        "adapter": checksum_address(adapter),
        "negRiskAdapter": _address(context, names.event_adapter),
        "negRiskOperator": _address(context, names.operator),
        "livenessSeconds": liveness_s,
        "proposalBondUsdc": decimal_text(bond_units),
        "rewardUsdc": decimal_text(context.options.reward_units if is_optimistic else 0),
    }


def _address(context: CreationContext, name: ContractName) -> str:
    known = context.deployment.contracts
    return checksum_address(known[name].address if name in known else ZERO_ADDRESS)
