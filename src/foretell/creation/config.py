"""What a creator must know before it asks: chains, contracts, fees, and the limits of images."""

from typing import Any

from foretell.creation.services import CreationServices
from foretell.domain.amounts import decimal_text
from foretell.domain.deployment import ContractName
from foretell.domain.hexadecimal import ZERO_ADDRESS, Address, checksum_address
from foretell.domain.payload import ResolutionType

ZERO: str = checksum_address(ZERO_ADDRESS)


async def market_config(services: CreationServices) -> dict[str, Any]:
    """Return the configuration, its fees as the chain has them now.

    What belongs to markets of mutually exclusive answers is not deployed: its addresses are zero.
    """
    deployment = services.deployment
    fee_units = await services.reader.creation_fee_units()
    contracts = _contracts(services)
    return {
        "defaultChainId": deployment.chain_id,
        "defaultResolutionType": ResolutionType.DIRECT,
        "supportedChainIds": [deployment.chain_id],
        "requiredCreatorFundingUsdc": decimal_text(fee_units),
        "directNormalMarketFeeUsdc": decimal_text(fee_units),
        "directNegRiskQuestionFeeUsdc": decimal_text(deployment.creation.neg_risk_fee_units),
        "imagePolicy": services.images.policy.document(),
        "chains": [{"chainId": deployment.chain_id, **contracts, **_stacks(services)}],
        **contracts,
        "executionMode": "eoa",
    }


def _contracts(services: CreationServices) -> dict[str, str]:
    deployment = services.deployment
    return {
        "usdcToken": checksum_address(deployment.collateral),
        "umaAdapter": _address(services, ContractName.DIRECT_RESOLUTION_ADAPTER),
        "ctfExchange": checksum_address(deployment.exchange),
        "negRiskOperator": ZERO,
        "negRiskCtfExchange": ZERO,
        "negRiskUmaAdapter": ZERO,
    }


def _stacks(services: CreationServices) -> dict[str, Any]:
    """Return the contracts beyond those that older clients know, and the one resolution stack."""
    return {
        "conditionalTokens": checksum_address(services.deployment.conditional_tokens),
        "marketRegistry": _address(services, ContractName.MARKET_REGISTRY),
        "proposerWhitelistRegistry": _address(services, ContractName.PROPOSER_WHITELIST_REGISTRY),
        "resolutionStacks": {
            ResolutionType.DIRECT: {
                "oracle": _address(services, ContractName.DIRECT_RESOLUTION_ORACLE),
                "adapter": _address(services, ContractName.DIRECT_RESOLUTION_ADAPTER),
                "negRiskAdapter": ZERO,
                "negRiskOperator": ZERO,
                "livenessSeconds": 0,
                "proposalBondUsdc": "0",
                "rewardUsdc": "0",
            }
        },
    }


def _address(services: CreationServices, name: ContractName) -> str:
    address: Address = services.deployment.address(name)
    return checksum_address(address)
