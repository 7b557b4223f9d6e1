"""The inputs of a deployment: accounts, terms, and contracts that exist already."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from foretell.domain.contracts.deployment import ContractName, CreationTerms
from foretell.domain.exchange.profiles import OWN_PROFILES, SigningProfile
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address

CREATION_TERMS: Final = CreationTerms(
    fee_units=5_000_000, neg_risk_fee_units=2_000_000, community_share_bps=8_000
)
SAFE_FACTORY_NAME: Final = "Foretell Safe Factory"


@dataclass(frozen=True, slots=True)
class CreatorWhitelist:
    """A creator, and the proposers of the whitelist that is deployed for it."""

    creator_key: bytes = field(repr=False)
    proposers: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class DeployPlan:
    """The inputs of a deployment.

    `existing` are contracts that are on the chain already: on a production chain, the collateral at
    least. `placed` are addresses that contracts must have, which only a sandbox allows. The faucet
    is the sandbox's too: it mints the collateral of `grants_units`. The `arbiter` decides what was
    disputed twice; by default it is the admin. `start_block` is for a chain that was deployed to
    before and whose file is lost.
    """

    chain_id: int
    npm_folder: Path
    admin_key: bytes = field(repr=False)
    operators: tuple[Address, ...]
    registrars: tuple[Address, ...]
    fee_receiver: Address
    community_pool: Address
    creation: CreationTerms = CREATION_TERMS
    profiles: tuple[SigningProfile, ...] = OWN_PROFILES
    neg_risk_profiles: tuple[SigningProfile, ...] = OWN_PROFILES
    arbiter: Address | None = None
    safe_factory_name: str = SAFE_FACTORY_NAME
    existing: Mapping[ContractName, Address] = field(default_factory=dict)
    placed: Mapping[ContractName, Address] = field(default_factory=dict)
    whitelists: tuple[CreatorWhitelist, ...] = ()
    faucet_key: bytes | None = field(default=None, repr=False)
    grants_units: Mapping[Address, int] = field(default_factory=dict)
    start_block: int | None = None

    @property
    def is_sandbox(self) -> bool:
        """Whether the chain is a sandbox, where keys and money are worthless."""
        return self.faucet_key is not None

    @property
    def admin(self) -> Address:
        """The account that deploys, and grants roles."""
        return address_of_key(self.admin_key)
