"""The contracts of a plan with their addresses, computed before anything is sent.

Each of our contracts is created by the well-known CREATE2 factory, so its address follows from its
code and its constructor's arguments alone. Code at that address can only be that contract: deploying
again finds it, whichever run created it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from foretell.chain import artifacts
from foretell.chain.artifacts import npm_artifact, own_artifact
from foretell.chain.deploy_plan import CreatorWhitelist, DeployPlan
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.evm.raw_transaction import create2_address
from foretell.domain.exchange.profiles import check_profiles
from foretell.domain.values.eip712 import address_of_key, address_word
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32, keccak256, word_of

CREATE2_FACTORY: Final = Address("0x4e59b44847b379578588920ca78fbf26c0b4956c")
SALT: Final = bytes(32)

# The bond of a proposal of the optimistic stack, and how long the proposal can be disputed.
PROPOSAL_BOND_UNITS: Final = 500_000_000
LIVENESS_S: Final = 7_200

SANDBOX_COLLATERAL_NAME: Final = "Foretell Sandbox Dollar"
SANDBOX_COLLATERAL_SYMBOL: Final = "FSD"


class PlannedContract(NamedTuple):
    """A contract's address, and its creation code unless it exists already."""

    address: Address
    init_code: bytes | None
    is_placed: bool = False


class PlannedContracts(NamedTuple):
    """Every contract of a deployment, in an order in which they can be created."""

    contracts: Mapping[ContractName, PlannedContract]
    safe_init_code_hash: Bytes32


def plan_contracts(plan: DeployPlan) -> PlannedContracts:
    """Return the contracts of a plan; refuses a plan that is unsafe on its chain."""
    for profiles in (plan.profiles, plan.neg_risk_profiles):
        check_profiles(profiles, is_sandbox=plan.is_sandbox)
    if not plan.is_sandbox and ContractName.COLLATERAL not in plan.existing:
        raise InvalidDeployment(
            "set FORETELL_COLLATERAL: only the sandbox deploys a collateral token"
        )
    if not plan.is_sandbox and plan.placed:
        raise InvalidDeployment("only a sandbox can put a contract at a chosen address")
    builder = _Builder(plan)
    _add_base(builder, plan)
    creation_code = own_artifact("SafeProxyCreationCode").bytecode
    proxy_code = creation_code + address_word(builder.address(ContractName.SAFE_SINGLETON))
    safe_init_code_hash = word_of(keccak256(proxy_code))
    builder.add(
        ContractName.SAFE_FACTORY,
        own_artifact("SafeFactory").init_code(
            builder.address(ContractName.SAFE_SINGLETON),
            builder.address(ContractName.SAFE_FALLBACK_HANDLER),
            plan.safe_factory_name,
            creation_code,
        ),
    )
    _add_resolution(builder, plan)
    _add_neg_risk(builder, plan)
    _add_optimistic(builder, plan)
    _add_proxy_wallets(builder, plan)
    _add_exchanges(builder, plan, safe_init_code_hash)
    _add_deposit_wallets(builder, plan)
    return PlannedContracts(builder.contracts, safe_init_code_hash)


def create2_contract(init_code: bytes) -> PlannedContract:
    """Return a contract that the CREATE2 factory creates."""
    address = create2_address(CREATE2_FACTORY, SALT, keccak256(init_code))
    return PlannedContract(address, init_code)


def whitelist_code(whitelist: CreatorWhitelist) -> bytes:
    """Return the creation code of a creator's whitelist."""
    creator = address_of_key(whitelist.creator_key)
    return own_artifact("ProposerWhitelist").init_code(creator, whitelist.proposers)


class _Builder:
    """The contracts planned so far; a later one may need the address of an earlier one."""

    def __init__(self, plan: DeployPlan) -> None:
        self._plan = plan
        self.contracts: dict[ContractName, PlannedContract] = {}

    def add(self, name: ContractName, init_code: bytes) -> None:
        if name in self._plan.existing:
            self.contracts[name] = PlannedContract(self._plan.existing[name], None)
        elif name in self._plan.placed:
            address = self._plan.placed[name]
            self.contracts[name] = PlannedContract(address, init_code, is_placed=True)
        else:
            self.contracts[name] = create2_contract(init_code)

    def add_created_by_another(self, name: ContractName, address: Address) -> None:
        """Add a contract that the constructor of another one creates."""
        self.contracts[name] = PlannedContract(self._plan.existing.get(name, address), None)

    def address(self, name: ContractName) -> Address:
        return self.contracts[name].address


def _add_base(builder: _Builder, plan: DeployPlan) -> None:
    """Add the contracts that all others need: collateral, Conditional Tokens and Safe."""
    minter = ZERO_ADDRESS if plan.faucet_key is None else address_of_key(plan.faucet_key)
    builder.add(
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
        builder.add(name, npm_artifact(plan.npm_folder, artifact).init_code())


def _add_resolution(builder: _Builder, plan: DeployPlan) -> None:
    builder.add(
        ContractName.PROPOSER_WHITELIST_REGISTRY,
        own_artifact("ProposerWhitelistRegistry").init_code(),
    )
    builder.add(ContractName.MARKET_REGISTRY, own_artifact("MarketRegistry").init_code(plan.admin))
    builder.add(
        ContractName.DIRECT_RESOLUTION_ORACLE,
        own_artifact("DirectResolutionOracle").init_code(
            builder.address(ContractName.PROPOSER_WHITELIST_REGISTRY), plan.admin
        ),
    )
    _add_direct_adapter(
        builder,
        plan,
        ContractName.DIRECT_RESOLUTION_ADAPTER,
        ctf=builder.address(ContractName.CONDITIONAL_TOKENS),
        markets=builder.address(ContractName.MARKET_REGISTRY),
        fee_units=plan.creation.fee_units,
    )


def _add_direct_adapter(
    builder: _Builder,
    plan: DeployPlan,
    name: ContractName,
    *,
    ctf: Address,
    markets: Address,
    fee_units: int,
) -> None:
    builder.add(
        name,
        own_artifact("DirectResolutionAdapter").init_code(
            ctf,
            builder.address(ContractName.DIRECT_RESOLUTION_ORACLE),
            markets,
            builder.address(ContractName.COLLATERAL),
            plan.admin,
            fee_units,
            plan.creation.community_share_bps,
            plan.community_pool,
            plan.fee_receiver,
        ),
    )


def _add_neg_risk(builder: _Builder, plan: DeployPlan) -> None:
    """Add the contracts of neg-risk events, with their direct resolution."""
    collateral = builder.address(ContractName.COLLATERAL)
    wrapped = own_artifact("WrappedCollateral")
    builder.add(
        ContractName.NEG_RISK_ADAPTER,
        own_artifact("NegRiskAdapter").init_code(
            collateral,
            builder.address(ContractName.CONDITIONAL_TOKENS),
            plan.fee_receiver,
            wrapped.bytecode,
        ),
    )
    adapter = builder.address(ContractName.NEG_RISK_ADAPTER)
    builder.add_created_by_another(
        ContractName.WRAPPED_COLLATERAL,
        create2_address(adapter, SALT, keccak256(wrapped.init_code(collateral))),
    )
    _add_operator(builder, plan, ContractName.NEG_RISK_OPERATOR, ResolutionType.DIRECT)
    _add_direct_adapter(
        builder,
        plan,
        ContractName.NEG_RISK_DIRECT_ADAPTER,
        ctf=builder.address(ContractName.NEG_RISK_OPERATOR),
        markets=ZERO_ADDRESS,
        fee_units=plan.creation.neg_risk_fee_units,
    )


def _add_operator(
    builder: _Builder, plan: DeployPlan, name: ContractName, stack: ResolutionType
) -> None:
    builder.add(
        name,
        own_artifact("NegRiskOperator").init_code(
            stack.value,
            builder.address(ContractName.NEG_RISK_ADAPTER),
            builder.address(ContractName.MARKET_REGISTRY),
            plan.admin,
        ),
    )


def _add_optimistic(builder: _Builder, plan: DeployPlan) -> None:
    builder.add(
        ContractName.OPTIMISTIC_ORACLE,
        own_artifact("OptimisticOracle").init_code(
            builder.address(ContractName.COLLATERAL),
            plan.admin,
            plan.arbiter or plan.admin,
            plan.fee_receiver,
        ),
    )
    _add_operator(
        builder, plan, ContractName.NEG_RISK_OPTIMISTIC_OPERATOR, ResolutionType.OPTIMISTIC
    )
    for name, ctf, markets in (
        (
            ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
            builder.address(ContractName.CONDITIONAL_TOKENS),
            builder.address(ContractName.MARKET_REGISTRY),
        ),
        (
            ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
            builder.address(ContractName.NEG_RISK_OPTIMISTIC_OPERATOR),
            ZERO_ADDRESS,
        ),
    ):
        builder.add(
            name,
            own_artifact("OptimisticResolutionAdapter").init_code(
                ctf,
                builder.address(ContractName.OPTIMISTIC_ORACLE),
                markets,
                builder.address(ContractName.COLLATERAL),
                plan.admin,
                PROPOSAL_BOND_UNITS,
                LIVENESS_S,
                markets != ZERO_ADDRESS,
            ),
        )


def _add_exchanges(builder: _Builder, plan: DeployPlan, safe_init_code_hash: Bytes32) -> None:
    """Add the exchanges, and the contract that settles batches of trades at them."""
    proxies = builder.contracts.get(ContractName.PROXY_WALLET_FACTORY)
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
        builder.add(
            name,
            own_artifact("Exchange").init_code(
                builder.address(ContractName.COLLATERAL),
                builder.address(ContractName.CONDITIONAL_TOKENS),
                builder.address(splitter),
                builder.address(token_collateral),
                builder.address(ContractName.SAFE_FACTORY),
                bytes.fromhex(safe_init_code_hash[2:]),
                proxies.address if proxies else ZERO_ADDRESS,
                plan.admin,
                plan.fee_receiver,
                [profile.name for profile in profiles],
                [profile.version for profile in profiles],
                [profile.verifying_contract or ZERO_ADDRESS for profile in profiles],
                [profile.struct_version for profile in profiles],
            ),
        )
    builder.add(
        ContractName.BATCH_SETTLER,
        own_artifact("BatchSettler").init_code(
            builder.address(ContractName.EXCHANGE), builder.address(ContractName.NEG_RISK_EXCHANGE)
        ),
    )


def _add_proxy_wallets(builder: _Builder, plan: DeployPlan) -> None:
    """Add the proxy wallets' hub, code and factory, unless an exchange exists that does not know them."""
    factory = ContractName.PROXY_WALLET_FACTORY
    if ContractName.EXCHANGE in plan.existing and factory not in plan.existing:
        return
    builder.add(ContractName.RELAY_HUB, own_artifact("RelayHub").init_code(plan.chain_id))
    builder.add(ContractName.PROXY_WALLET, own_artifact("ProxyWallet").init_code())
    builder.add(
        factory,
        own_artifact("ProxyWalletFactory").init_code(
            builder.address(ContractName.PROXY_WALLET), builder.address(ContractName.RELAY_HUB)
        ),
    )


def _add_deposit_wallets(builder: _Builder, plan: DeployPlan) -> None:
    """Add the deposit wallets' code and factory; a second factory is for the addresses of a sandbox."""
    builder.add(ContractName.DEPOSIT_WALLET, own_artifact("DepositWallet").init_code())
    builder.add(
        ContractName.DEPOSIT_WALLET_BEACON,
        own_artifact("DepositWalletBeacon").init_code(builder.address(ContractName.DEPOSIT_WALLET)),
    )
    beacon = builder.address(ContractName.DEPOSIT_WALLET_BEACON)
    init_code = own_artifact("DepositWalletFactory").init_code(beacon)
    builder.add(ContractName.DEPOSIT_WALLET_FACTORY, init_code)
    second = ContractName.SECOND_DEPOSIT_WALLET_FACTORY
    if second in plan.placed:
        builder.add(second, init_code)
    else:
        first = builder.address(ContractName.DEPOSIT_WALLET_FACTORY)
        builder.add_created_by_another(second, first)
