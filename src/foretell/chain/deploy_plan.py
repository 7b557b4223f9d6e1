"""What a deployment consists of, worked out before anything is sent.

Every contract of ours is created by the well-known CREATE2 factory, so its address follows from its
code and its constructor's arguments alone. Code at that address can only be that contract: deploying
again finds it, whoever deployed it and whatever became of the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from foretell.chain import artifacts
from foretell.chain.artifacts import npm_artifact, own_artifact
from foretell.domain.contracts.deployment import ContractName, CreationTerms
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    UNITS_BY_ROLE,
    AccountRole,
    sandbox_account,
    sandbox_accounts,
)
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.errors.chain import DeploymentUnfit
from foretell.domain.evm.raw_transaction import create2_address
from foretell.domain.exchange.profiles import (
    OWN_PROFILE,
    SANDBOX_NEG_RISK_PROFILES,
    SANDBOX_PROFILES,
    SigningProfile,
    check_profiles,
)
from foretell.domain.values.eip712 import address_of_key, address_word
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32, keccak256, word_of

CREATE2_FACTORY: Final = Address("0x4e59b44847b379578588920ca78fbf26c0b4956c")
SALT: Final = bytes(32)

CREATION_TERMS: Final = CreationTerms(
    fee_units=5_000_000, neg_risk_fee_units=2_000_000, community_share_bps=8_000
)

# What a proposal of the optimistic stack puts at stake, and how long it can be disputed.
PROPOSAL_BOND_UNITS: Final = 500_000_000
LIVENESS_S: Final = 7_200

# What the ecosystem's clients carry with them, and derive their users' Safes from. The MultiSend and
# the fallback handler that they name are where the CREATE2 factory puts them anyway.
ECOSYSTEM_SAFE_SINGLETON: Final = Address("0xe51abdf814f8854941b9fe8e3a4f65cab4e7a4a8")
ECOSYSTEM_SAFE_FACTORY: Final = Address("0xaacfeea03eb1561c4e67d661e40682bd20e3541b")
ECOSYSTEM_SAFE_FACTORY_NAME: Final = "Polymarket Contract Proxy Factory"

OWN_SAFE_FACTORY_NAME: Final = "Foretell Safe Factory"

SANDBOX_COLLATERAL_NAME: Final = "Foretell Sandbox Dollar"
SANDBOX_COLLATERAL_SYMBOL: Final = "FSD"


@dataclass(frozen=True, slots=True)
class CreatorWhitelist:
    """A creator whose whitelist is made with the deployment, and who is on it."""

    creator_key: bytes = field(repr=False)
    proposers: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class DeployPlan:
    """How a chain is to be furnished.

    `taken` are contracts that are there already: on a chain of value, the collateral at least.
    `placed` are addresses that a contract must have; only a sandbox can give them. The faucet is
    the sandbox's too: it makes the collateral that `grants_units` gives out. The `arbiter` decides
    what was disputed twice; it is the admin unless it is named. `start_block` is for a chain that was
    furnished before and whose file is lost.
    """

    chain_id: int
    npm_folder: Path
    admin_key: bytes = field(repr=False)
    operators: tuple[Address, ...]
    registrars: tuple[Address, ...]
    fee_receiver: Address
    community_pool: Address
    creation: CreationTerms = CREATION_TERMS
    profiles: tuple[SigningProfile, ...] = (OWN_PROFILE,)
    neg_risk_profiles: tuple[SigningProfile, ...] = (OWN_PROFILE,)
    arbiter: Address | None = None
    safe_factory_name: str = OWN_SAFE_FACTORY_NAME
    taken: Mapping[ContractName, Address] = field(default_factory=dict)
    placed: Mapping[ContractName, Address] = field(default_factory=dict)
    whitelists: tuple[CreatorWhitelist, ...] = ()
    faucet_key: bytes | None = field(default=None, repr=False)
    grants_units: Mapping[Address, int] = field(default_factory=dict)
    start_block: int | None = None

    @property
    def is_sandbox(self) -> bool:
        """Whether the chain is a sandbox, where keys and money mean nothing."""
        return self.faucet_key is not None

    @property
    def admin(self) -> Address:
        """Who deploys, and names those who may operate."""
        return address_of_key(self.admin_key)


def sandbox_plan(npm_folder: Path) -> DeployPlan:
    """Return how the sandbox is furnished, so that the ecosystem's clients find their way."""
    chain_id = SANDBOX_CHAIN_ID
    creator = sandbox_account(AccountRole.CREATOR, chain_id)
    proposer = sandbox_account(AccountRole.PROPOSER, chain_id)
    return DeployPlan(
        chain_id=chain_id,
        npm_folder=npm_folder,
        admin_key=sandbox_account(AccountRole.ADMIN, chain_id).private_key,
        operators=(sandbox_account(AccountRole.OPERATOR, chain_id).address,),
        registrars=(sandbox_account(AccountRole.REGISTRAR, chain_id).address,),
        fee_receiver=sandbox_account(AccountRole.TREASURY, chain_id).address,
        community_pool=sandbox_account(AccountRole.COMMUNITY, chain_id).address,
        profiles=SANDBOX_PROFILES,
        neg_risk_profiles=SANDBOX_NEG_RISK_PROFILES,
        safe_factory_name=ECOSYSTEM_SAFE_FACTORY_NAME,
        placed={
            ContractName.SAFE_SINGLETON: ECOSYSTEM_SAFE_SINGLETON,
            ContractName.SAFE_FACTORY: ECOSYSTEM_SAFE_FACTORY,
        },
        whitelists=(CreatorWhitelist(creator.private_key, (proposer.address,)),),
        faucet_key=sandbox_account(AccountRole.FAUCET, chain_id).private_key,
        grants_units={
            account.address: units
            for role, units in UNITS_BY_ROLE.items()
            for account in sandbox_accounts(role, chain_id)
        },
    )


class PlannedContract(NamedTuple):
    """A contract, where it will be, and the code that creates it unless it is there already."""

    address: Address
    init_code: bytes | None
    is_placed: bool = False


class Blueprint(NamedTuple):
    """Every contract of a deployment, in an order in which they can be created."""

    contracts: Mapping[ContractName, PlannedContract]
    safe_init_code_hash: Bytes32


def draw(plan: DeployPlan) -> Blueprint:
    """Return what a plan comes to, or refuse one that would be unsafe on its chain."""
    for profiles in (plan.profiles, plan.neg_risk_profiles):
        check_profiles(profiles, is_sandbox=plan.is_sandbox)
    if not plan.is_sandbox and ContractName.COLLATERAL not in plan.taken:
        raise DeploymentUnfit("a chain of value has its collateral; name it")
    if not plan.is_sandbox and plan.placed:
        raise DeploymentUnfit("only a sandbox can put a contract at a chosen address")
    drawing = _Drawing(plan)
    _draw_ground(drawing, plan)
    creation_code = own_artifact("SafeProxyCreationCode").bytecode
    proxy_code = creation_code + address_word(drawing.address(ContractName.SAFE_SINGLETON))
    safe_init_code_hash = word_of(keccak256(proxy_code))
    drawing.add(
        ContractName.SAFE_FACTORY,
        own_artifact("SafeFactory").init_code(
            drawing.address(ContractName.SAFE_SINGLETON),
            drawing.address(ContractName.SAFE_FALLBACK_HANDLER),
            plan.safe_factory_name,
            creation_code,
        ),
    )
    _draw_resolution(drawing, plan)
    _draw_neg_risk(drawing, plan)
    _draw_optimistic(drawing, plan)
    _draw_exchanges(drawing, plan, safe_init_code_hash)
    return Blueprint(drawing.contracts, safe_init_code_hash)


def created(init_code: bytes) -> PlannedContract:
    """Return a contract that the CREATE2 factory makes."""
    address = create2_address(CREATE2_FACTORY, SALT, keccak256(init_code))
    return PlannedContract(address, init_code)


def whitelist_code(whitelist: CreatorWhitelist) -> bytes:
    """Return the creation code of a creator's whitelist."""
    creator = address_of_key(whitelist.creator_key)
    return own_artifact("ProposerWhitelist").init_code(creator, whitelist.proposers)


class _Drawing:
    """A blueprint while it is drawn."""

    def __init__(self, plan: DeployPlan) -> None:
        self._plan = plan
        self.contracts: dict[ContractName, PlannedContract] = {}

    def add(self, name: ContractName, init_code: bytes) -> None:
        if name in self._plan.taken:
            self.contracts[name] = PlannedContract(self._plan.taken[name], None)
        elif name in self._plan.placed:
            address = self._plan.placed[name]
            self.contracts[name] = PlannedContract(address, init_code, is_placed=True)
        else:
            self.contracts[name] = created(init_code)

    def add_made(self, name: ContractName, address: Address) -> None:
        """Add a contract that another one makes when it is made itself."""
        self.contracts[name] = PlannedContract(self._plan.taken.get(name, address), None)

    def address(self, name: ContractName) -> Address:
        return self.contracts[name].address


def _draw_ground(drawing: _Drawing, plan: DeployPlan) -> None:
    """Draw what everything else stands on: collateral, Conditional Tokens and Safe."""
    minter = ZERO_ADDRESS if plan.faucet_key is None else address_of_key(plan.faucet_key)
    drawing.add(
        ContractName.COLLATERAL,
        own_artifact("CollateralToken").init_code(
            SANDBOX_COLLATERAL_NAME, SANDBOX_COLLATERAL_SYMBOL, minter
        ),
    )
    for name, artifact in (
        (ContractName.CONDITIONAL_TOKENS, artifacts.CONDITIONAL_TOKENS),
        (ContractName.SAFE_SINGLETON, artifacts.SAFE_SINGLETON),
        (ContractName.SAFE_FALLBACK_HANDLER, artifacts.SAFE_FALLBACK_HANDLER),
        (ContractName.MULTI_SEND, artifacts.MULTI_SEND),
    ):
        drawing.add(name, npm_artifact(plan.npm_folder, artifact).init_code())


def _draw_resolution(drawing: _Drawing, plan: DeployPlan) -> None:
    drawing.add(
        ContractName.PROPOSER_WHITELIST_REGISTRY,
        own_artifact("ProposerWhitelistRegistry").init_code(),
    )
    drawing.add(ContractName.MARKET_REGISTRY, own_artifact("MarketRegistry").init_code(plan.admin))
    drawing.add(
        ContractName.DIRECT_RESOLUTION_ORACLE,
        own_artifact("DirectResolutionOracle").init_code(
            drawing.address(ContractName.PROPOSER_WHITELIST_REGISTRY), plan.admin
        ),
    )
    _draw_direct_adapter(
        drawing,
        plan,
        ContractName.DIRECT_RESOLUTION_ADAPTER,
        ctf=drawing.address(ContractName.CONDITIONAL_TOKENS),
        markets=drawing.address(ContractName.MARKET_REGISTRY),
        fee_units=plan.creation.fee_units,
    )


def _draw_direct_adapter(
    drawing: _Drawing,
    plan: DeployPlan,
    name: ContractName,
    *,
    ctf: Address,
    markets: Address,
    fee_units: int,
) -> None:
    drawing.add(
        name,
        own_artifact("DirectResolutionAdapter").init_code(
            ctf,
            drawing.address(ContractName.DIRECT_RESOLUTION_ORACLE),
            markets,
            drawing.address(ContractName.COLLATERAL),
            plan.admin,
            fee_units,
            plan.creation.community_share_bps,
            plan.community_pool,
            plan.fee_receiver,
        ),
    )


def _draw_neg_risk(drawing: _Drawing, plan: DeployPlan) -> None:
    """Draw what events of one true outcome need, and their direct resolution."""
    collateral = drawing.address(ContractName.COLLATERAL)
    wrapped = own_artifact("WrappedCollateral")
    drawing.add(
        ContractName.NEG_RISK_ADAPTER,
        own_artifact("NegRiskAdapter").init_code(
            collateral,
            drawing.address(ContractName.CONDITIONAL_TOKENS),
            plan.fee_receiver,
            wrapped.bytecode,
        ),
    )
    adapter = drawing.address(ContractName.NEG_RISK_ADAPTER)
    drawing.add_made(
        ContractName.WRAPPED_COLLATERAL,
        create2_address(adapter, SALT, keccak256(wrapped.init_code(collateral))),
    )
    _draw_operator(drawing, plan, ContractName.NEG_RISK_OPERATOR, ResolutionType.DIRECT)
    _draw_direct_adapter(
        drawing,
        plan,
        ContractName.NEG_RISK_DIRECT_ADAPTER,
        ctf=drawing.address(ContractName.NEG_RISK_OPERATOR),
        markets=ZERO_ADDRESS,
        fee_units=plan.creation.neg_risk_fee_units,
    )


def _draw_operator(
    drawing: _Drawing, plan: DeployPlan, name: ContractName, stack: ResolutionType
) -> None:
    drawing.add(
        name,
        own_artifact("NegRiskOperator").init_code(
            stack.value,
            drawing.address(ContractName.NEG_RISK_ADAPTER),
            drawing.address(ContractName.MARKET_REGISTRY),
            plan.admin,
        ),
    )


def _draw_optimistic(drawing: _Drawing, plan: DeployPlan) -> None:
    drawing.add(
        ContractName.OPTIMISTIC_ORACLE,
        own_artifact("OptimisticOracle").init_code(
            drawing.address(ContractName.COLLATERAL),
            plan.admin,
            plan.arbiter or plan.admin,
            plan.fee_receiver,
        ),
    )
    _draw_operator(
        drawing, plan, ContractName.NEG_RISK_OPTIMISTIC_OPERATOR, ResolutionType.OPTIMISTIC
    )
    for name, ctf, markets in (
        (
            ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
            drawing.address(ContractName.CONDITIONAL_TOKENS),
            drawing.address(ContractName.MARKET_REGISTRY),
        ),
        (
            ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
            drawing.address(ContractName.NEG_RISK_OPTIMISTIC_OPERATOR),
            ZERO_ADDRESS,
        ),
    ):
        drawing.add(
            name,
            own_artifact("OptimisticResolutionAdapter").init_code(
                ctf,
                drawing.address(ContractName.OPTIMISTIC_ORACLE),
                markets,
                drawing.address(ContractName.COLLATERAL),
                plan.admin,
                PROPOSAL_BOND_UNITS,
                LIVENESS_S,
                markets != ZERO_ADDRESS,
            ),
        )


def _draw_exchanges(drawing: _Drawing, plan: DeployPlan, safe_init_code_hash: Bytes32) -> None:
    for name, splitter, token_collateral, profiles in (
        (
            ContractName.EXCHANGE,
            ContractName.CONDITIONAL_TOKENS,
            ContractName.COLLATERAL,
            plan.profiles,
        ),
        (
            ContractName.NEG_RISK_EXCHANGE,
            ContractName.NEG_RISK_ADAPTER,
            ContractName.WRAPPED_COLLATERAL,
            plan.neg_risk_profiles,
        ),
    ):
        drawing.add(
            name,
            own_artifact("Exchange").init_code(
                drawing.address(ContractName.COLLATERAL),
                drawing.address(ContractName.CONDITIONAL_TOKENS),
                drawing.address(splitter),
                drawing.address(token_collateral),
                drawing.address(ContractName.SAFE_FACTORY),
                bytes.fromhex(safe_init_code_hash[2:]),
                plan.admin,
                plan.fee_receiver,
                [profile.name for profile in profiles],
                [profile.version for profile in profiles],
                [profile.verifying_contract or ZERO_ADDRESS for profile in profiles],
                [profile.struct_version for profile in profiles],
            ),
        )
