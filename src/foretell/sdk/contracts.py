"""The contracts of an installation, as its market-creation worker names them."""

from dataclasses import dataclass
from typing import Self

import msgspec

from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, parse_address
from foretell.sdk.http import HttpClient


class StackTerms(msgspec.Struct, frozen=True, rename="camel"):
    """The contracts of a resolution stack."""

    oracle: str
    adapter: str
    neg_risk_adapter: str
    neg_risk_operator: str
    liveness_seconds: int = 0
    proposal_bond_usdc: str = "0"
    """What a proposer and a disputer put at stake, in whole collateral."""


class ChainTerms(msgspec.Struct, frozen=True, rename="camel"):
    """A chain and its contracts, in the configuration for creators."""

    chain_id: int
    usdc_token: str
    ctf_exchange: str
    neg_risk_ctf_exchange: str
    conditional_tokens: str
    proposer_whitelist_registry: str
    position_adapter: str
    safe_factory: str
    safe_factory_name: str
    multi_send: str
    resolution_stacks: dict[str, StackTerms]
    deposit_wallet_factories: list[str] = []
    """Empty from a server that names none."""
    proxy_wallet_factory: str = ZERO_ADDRESS
    relay_hub: str = ZERO_ADDRESS
    """Zero where the exchange takes no proxy wallets."""


@dataclass(frozen=True, slots=True)
class Contracts:
    """The addresses that a client's calls go to."""

    chain_id: int
    collateral: Address
    conditional_tokens: Address
    exchange: Address
    neg_risk_exchange: Address
    neg_risk_adapter: Address
    """Splits, merges, redeems and converts positions of events."""
    safe_factory: Address
    safe_factory_name: str
    multi_send: Address
    whitelist_registry: Address
    stacks: dict[str, StackTerms]
    deposit_wallet_factories: tuple[Address, ...] = ()
    proxy_wallet_factory: Address = ZERO_ADDRESS
    relay_hub: Address = ZERO_ADDRESS
    """Makes the calls of proxy wallets; zero, as the factory, where the exchange takes none."""

    @classmethod
    async def fetch(cls, worker: HttpClient) -> Self:
        """Return the contracts that `GET /market-config` names."""
        config = await worker.get("/market-config")
        chain = msgspec.convert(config["chains"][0], ChainTerms)
        return cls(
            chain_id=chain.chain_id,
            collateral=parse_address(chain.usdc_token),
            conditional_tokens=parse_address(chain.conditional_tokens),
            exchange=parse_address(chain.ctf_exchange),
            neg_risk_exchange=parse_address(chain.neg_risk_ctf_exchange),
            neg_risk_adapter=parse_address(chain.position_adapter),
            safe_factory=parse_address(chain.safe_factory),
            safe_factory_name=chain.safe_factory_name,
            multi_send=parse_address(chain.multi_send),
            whitelist_registry=parse_address(chain.proposer_whitelist_registry),
            stacks=chain.resolution_stacks,
            deposit_wallet_factories=tuple(map(parse_address, chain.deposit_wallet_factories)),
            proxy_wallet_factory=parse_address(chain.proxy_wallet_factory),
            relay_hub=parse_address(chain.relay_hub),
        )

    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        """Return the contracts of a deployment's file; it has no addresses for resolution."""
        return cls(
            chain_id=deployment.chain_id,
            collateral=deployment.collateral,
            conditional_tokens=deployment.conditional_tokens,
            exchange=deployment.exchange,
            neg_risk_exchange=deployment.neg_risk_exchange,
            neg_risk_adapter=deployment.address(ContractName.NEG_RISK_ADAPTER),
            safe_factory=deployment.safe_factory,
            safe_factory_name=deployment.safe_factory_name,
            multi_send=deployment.multi_send,
            whitelist_registry=deployment.address(ContractName.PROPOSER_WHITELIST_REGISTRY),
            stacks={},
            deposit_wallet_factories=deployment.deposit_wallet_factories,
            proxy_wallet_factory=deployment.proxy_wallet_factory or ZERO_ADDRESS,
            relay_hub=(
                ZERO_ADDRESS
                if deployment.proxy_wallet_factory is None
                else deployment.address(ContractName.RELAY_HUB)
            ),
        )
