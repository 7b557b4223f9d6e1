"""The configuration for creators: chains, contracts, fees, and the limits of images."""

from typing import NamedTuple

from foretell.creation.context import STACKS, CreationContext
from foretell.creation.responses import Chain, Config, ImagePolicyResponse, ResolutionStack
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, checksum_address


class _Contracts(NamedTuple):
    """The contracts that both the configuration and its chain name."""

    usdc_token: str
    uma_adapter: str
    ctf_exchange: str
    neg_risk_operator: str
    neg_risk_ctf_exchange: str
    neg_risk_uma_adapter: str


async def market_config(context: CreationContext) -> Config:
    """Return the configuration, with the fees and terms that the chain has now.

    Contracts that a deployment of an earlier version lacks have the address zero.
    """
    deployment, reader = context.deployment, context.reader
    fee_units = await reader.creation_fee_units(
        deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    )
    question_fee_units = deployment.creation.neg_risk_fee_units
    if ContractName.NEG_RISK_DIRECT_ADAPTER in deployment.contracts:
        adapter = deployment.address(ContractName.NEG_RISK_DIRECT_ADAPTER)
        question_fee_units = await reader.creation_fee_units(adapter)
    policy = context.images.policy
    return Config(
        default_chain_id=deployment.chain_id,
        default_resolution_type=context.rules.default_resolution_type,
        supported_chain_ids=[deployment.chain_id],
        required_creator_funding_usdc=decimal_text(fee_units),
        direct_normal_market_fee_usdc=decimal_text(fee_units),
        direct_neg_risk_question_fee_usdc=decimal_text(question_fee_units),
        image_policy=ImagePolicyResponse(
            max_upload_bytes=policy.upload_bytes_max,
            target_px=policy.side_px,
            target_max_bytes=policy.bytes_max,
        ),
        chains=[await _chain(context)],
        **_contracts(context)._asdict(),
        execution_mode="eoa",
    )


async def _chain(context: CreationContext) -> Chain:
    deployment = context.deployment
    return Chain(
        chain_id=deployment.chain_id,
        **_contracts(context)._asdict(),
        conditional_tokens=checksum_address(deployment.conditional_tokens),
        market_registry=_address(context, ContractName.MARKET_REGISTRY),
        proposer_whitelist_registry=_address(context, ContractName.PROPOSER_WHITELIST_REGISTRY),
        position_adapter=_address(context, ContractName.NEG_RISK_ADAPTER),
        safe_factory=_address(context, ContractName.SAFE_FACTORY),
        safe_factory_name=deployment.safe_factory_name,
        multi_send=_address(context, ContractName.MULTI_SEND),
        deposit_wallet_factories=list(map(checksum_address, deployment.deposit_wallet_factories)),
        proxy_wallet_factory=_address(context, ContractName.PROXY_WALLET_FACTORY),
        relay_hub=_address(context, ContractName.RELAY_HUB),
        resolution_stacks={
            stack: await _stack(context, stack)
            for stack, names in STACKS.items()
            if names.adapter in deployment.contracts
        },
    )


def _contracts(context: CreationContext) -> _Contracts:
    names = STACKS[context.rules.default_resolution_type]
    return _Contracts(
        usdc_token=checksum_address(context.deployment.collateral),
        uma_adapter=_address(context, names.adapter),
        ctf_exchange=checksum_address(context.deployment.exchange),
        neg_risk_operator=_address(context, names.operator),
        neg_risk_ctf_exchange=_address(context, ContractName.NEG_RISK_EXCHANGE),
        neg_risk_uma_adapter=_address(context, names.event_adapter),
    )


async def _stack(context: CreationContext, stack: ResolutionType) -> ResolutionStack:
    """Return the contracts of a stack, and its terms for a proposal."""
    names, is_optimistic = STACKS[stack], stack is ResolutionType.OPTIMISTIC
    adapter = context.deployment.address(names.adapter)
    bond_units, liveness_s = (
        await context.reader.proposal_terms(adapter) if is_optimistic else (0, 0)
    )
    return ResolutionStack(
        oracle=_address(context, names.oracle),
        adapter=checksum_address(adapter),
        neg_risk_adapter=_address(context, names.event_adapter),
        neg_risk_operator=_address(context, names.operator),
        liveness_seconds=liveness_s,
        proposal_bond_usdc=decimal_text(bond_units),
        reward_usdc=decimal_text(context.options.reward_units if is_optimistic else 0),
    )


def _address(context: CreationContext, name: ContractName) -> str:
    known = context.deployment.contracts
    return checksum_address(known[name].address if name in known else ZERO_ADDRESS)
