"""The contracts of one chain and their addresses: the content of `deployment.json`.

The file is also the journal of a deployment. It is written after every step, so that an interrupted
deployment can continue. Only a complete one can be used.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import msgspec

from foretell.domain.contracts.deposit_wallet import deposit_wallet_address
from foretell.domain.contracts.logs import ContractKind
from foretell.domain.contracts.proxy_wallet import proxy_wallet_address
from foretell.domain.contracts.safe import safe_address
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.errors.families import MalformedHex
from foretell.domain.exchange.profiles import Separators, SigningProfile, separators
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    checksum_address,
    parse_address,
    parse_bytes32,
)

FORMAT: Final = 1


class ContractName(enum.StrEnum):
    """A contract's name in files and on the wire."""

    COLLATERAL = "collateral"
    CONDITIONAL_TOKENS = "conditionalTokens"
    EXCHANGE = "exchange"
    SAFE_SINGLETON = "safeSingleton"
    SAFE_FALLBACK_HANDLER = "safeFallbackHandler"
    SAFE_FACTORY = "safeFactory"
    MULTI_SEND = "multiSend"
    PROPOSER_WHITELIST_REGISTRY = "proposerWhitelistRegistry"
    MARKET_REGISTRY = "marketRegistry"
    DIRECT_RESOLUTION_ORACLE = "directResolutionOracle"
    DIRECT_RESOLUTION_ADAPTER = "directResolutionAdapter"
    OPTIMISTIC_ORACLE = "optimisticOracle"
    OPTIMISTIC_RESOLUTION_ADAPTER = "optimisticResolutionAdapter"
    NEG_RISK_ADAPTER = "negRiskAdapter"
    WRAPPED_COLLATERAL = "wrappedCollateral"
    NEG_RISK_EXCHANGE = "negRiskExchange"
    NEG_RISK_OPERATOR = "negRiskOperator"
    NEG_RISK_DIRECT_ADAPTER = "negRiskDirectResolutionAdapter"
    NEG_RISK_OPTIMISTIC_OPERATOR = "negRiskOptimisticOperator"
    NEG_RISK_OPTIMISTIC_ADAPTER = "negRiskOptimisticResolutionAdapter"
    BATCH_SETTLER = "batchSettler"
    DEPOSIT_WALLET = "depositWallet"
    DEPOSIT_WALLET_BEACON = "depositWalletBeacon"
    DEPOSIT_WALLET_FACTORY = "depositWalletFactory"
    SECOND_DEPOSIT_WALLET_FACTORY = "secondDepositWalletFactory"
    RELAY_HUB = "relayHub"
    PROXY_WALLET = "proxyWallet"
    PROXY_WALLET_FACTORY = "proxyWalletFactory"


PROXY_CONTRACTS: Final = frozenset(
    {ContractName.RELAY_HUB, ContractName.PROXY_WALLET, ContractName.PROXY_WALLET_FACTORY}
)
"""The contracts that an exchange must be deployed with: an earlier one never takes proxy wallets."""


INDEXED: Final[Mapping[ContractName, ContractKind]] = MappingProxyType(
    {
        ContractName.COLLATERAL: ContractKind.COLLATERAL,
        ContractName.CONDITIONAL_TOKENS: ContractKind.CONDITIONAL_TOKENS,
        ContractName.EXCHANGE: ContractKind.EXCHANGE,
        ContractName.NEG_RISK_EXCHANGE: ContractKind.EXCHANGE,
        ContractName.NEG_RISK_ADAPTER: ContractKind.NEG_RISK_ADAPTER,
        ContractName.OPTIMISTIC_ORACLE: ContractKind.OPTIMISTIC_ORACLE,
        ContractName.DIRECT_RESOLUTION_ADAPTER: ContractKind.RESOLUTION_ADAPTER,
        ContractName.MARKET_REGISTRY: ContractKind.MARKET_REGISTRY,
        ContractName.SAFE_FACTORY: ContractKind.SAFE_FACTORY,
    }
)
"""The contracts with logs that are read."""


@dataclass(frozen=True, slots=True)
class DeployedContract:
    """A contract's address, and the hash of its code."""

    address: Address
    code_hash: Bytes32


@dataclass(frozen=True, slots=True)
class CreationTerms:
    """The fee for a question, and the community's part of it."""

    fee_units: int
    neg_risk_fee_units: int
    community_share_bps: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """The contracts of a chain, and the terms that they were deployed with."""

    chain_id: int
    is_sandbox: bool
    is_complete: bool
    start_block: int
    contracts: Mapping[ContractName, DeployedContract]
    profiles: tuple[SigningProfile, ...]
    safe_factory_name: str
    safe_init_code_hash: Bytes32
    creation: CreationTerms
    neg_risk_profiles: tuple[SigningProfile, ...] = ()

    @property
    def has_collateral_history(self) -> bool:
        """Whether wallets may have held the collateral before the first block; a sandbox makes its own."""
        return not self.is_sandbox

    def address(self, name: ContractName) -> Address:
        """Return the address of a contract."""
        try:
            return self.contracts[name].address
        except KeyError:
            raise InvalidDeployment(f"it has no {name}; run foretell deploy to add it") from None

    @property
    def missing(self) -> tuple[ContractName, ...]:
        """The contracts that an interrupted deployment or an earlier version lacks."""
        return tuple(
            name
            for name in ContractName
            if name not in self.contracts
            and not (name in PROXY_CONTRACTS and ContractName.EXCHANGE in self.contracts)
        )

    @property
    def collateral(self) -> Address:
        """The collateral token."""
        return self.address(ContractName.COLLATERAL)

    @property
    def conditional_tokens(self) -> Address:
        """The contract that holds all outcome tokens."""
        return self.address(ContractName.CONDITIONAL_TOKENS)

    @property
    def exchange(self) -> Address:
        """The exchange for tokens of conditions outside of neg-risk events."""
        return self.address(ContractName.EXCHANGE)

    @property
    def neg_risk_exchange(self) -> Address:
        """The exchange for tokens of neg-risk events."""
        return self.address(ContractName.NEG_RISK_EXCHANGE)

    @property
    def exchanges(self) -> tuple[Address, ...]:
        """The deployed exchanges, the standard one first."""
        names = (ContractName.EXCHANGE, ContractName.NEG_RISK_EXCHANGE)
        return tuple(self.address(name) for name in names if name in self.contracts)

    @property
    def batch_settler(self) -> Address | None:
        """The contract that settles many matches in one transaction; none before an upgrade."""
        settler = self.contracts.get(ContractName.BATCH_SETTLER)
        return None if settler is None else settler.address

    @property
    def safe_factory(self) -> Address:
        """The factory of the users' Safes."""
        return self.address(ContractName.SAFE_FACTORY)

    @property
    def multi_send(self) -> Address:
        """The contract that bundles the calls of a Safe."""
        return self.address(ContractName.MULTI_SEND)

    def safe_of(self, owner: Address) -> Address:
        """Return the address of the owner's Safe, deployed or not."""
        return safe_address(owner, self.safe_factory, self.safe_init_code_hash)

    @property
    def deposit_wallet_factories(self) -> tuple[Address, ...]:
        """The factories of the users' deposit wallets, all different; none before an upgrade."""
        names = (ContractName.DEPOSIT_WALLET_FACTORY, ContractName.SECOND_DEPOSIT_WALLET_FACTORY)
        found = [self.address(name) for name in names if name in self.contracts]
        return tuple(dict.fromkeys(found))

    def deposit_wallets_of(self, owner: Address) -> tuple[Address, ...]:
        """Return the addresses of the owner's deposit wallets, deployed or not."""
        return tuple(
            deposit_wallet_address(owner, factory, self.address(ContractName.DEPOSIT_WALLET_BEACON))
            for factory in self.deposit_wallet_factories
        )

    @property
    def proxy_wallet_factory(self) -> Address | None:
        """The factory of the users' proxy wallets; none where the exchange does not take them."""
        factory = self.contracts.get(ContractName.PROXY_WALLET_FACTORY)
        return None if factory is None else factory.address

    def proxy_wallet_of(self, owner: Address) -> Address:
        """Return the address of the owner's proxy wallet, deployed or not."""
        return proxy_wallet_address(
            owner,
            self.address(ContractName.PROXY_WALLET_FACTORY),
            self.address(ContractName.PROXY_WALLET),
        )

    def profiles_of(self, exchange: Address) -> tuple[SigningProfile, ...]:
        """Return the profiles that an exchange accepts."""
        is_standard = exchange == self.exchange
        return self.profiles if is_standard else self.neg_risk_profiles

    def separators(self) -> Separators:
        """Return the domain separators of orders for the standard exchange."""
        return separators(self.profiles, self.chain_id, self.exchange)

    def neg_risk_separators(self) -> Separators:
        """Return the domain separators of orders for the neg-risk exchange."""
        return separators(self.neg_risk_profiles, self.chain_id, self.neg_risk_exchange)

    def kind_by_contract(self) -> Mapping[Address, ContractKind]:
        """Return the kind of each contract with logs that are read."""
        return {
            self.contracts[name].address: kind
            for name, kind in INDEXED.items()
            if name in self.contracts
        }


class _Contract(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    address: str
    code_hash: str


class _Profile(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    struct_version: int
    name: str
    version: str
    verifying_contract: str | None


class _Safe(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    factory_name: str
    init_code_hash: str


class _Creation(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    fee_units: int
    neg_risk_fee_units: int
    community_share_bps: int


class _File(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    format: int
    chain_id: int
    is_sandbox: bool
    is_complete: bool
    start_block: int
    contracts: dict[ContractName, _Contract]
    profiles: list[_Profile]
    safe: _Safe
    creation: _Creation
    neg_risk_profiles: list[_Profile] = []


def encode_deployment(deployment: Deployment) -> bytes:
    """Return the content of the deployment's file."""
    file = _File(
        FORMAT,
        deployment.chain_id,
        deployment.is_sandbox,
        deployment.is_complete,
        deployment.start_block,
        {
            name: _Contract(checksum_address(contract.address), contract.code_hash)
            for name, contract in deployment.contracts.items()
        },
        _encoded_profiles(deployment.profiles),
        _Safe(deployment.safe_factory_name, deployment.safe_init_code_hash),
        _Creation(
            deployment.creation.fee_units,
            deployment.creation.neg_risk_fee_units,
            deployment.creation.community_share_bps,
        ),
        _encoded_profiles(deployment.neg_risk_profiles),
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"


def _encoded_profiles(profiles: Sequence[SigningProfile]) -> list[_Profile]:
    return [
        _Profile(
            profile.struct_version,
            profile.name,
            profile.version,
            profile.verifying_contract and checksum_address(profile.verifying_contract),
        )
        for profile in profiles
    ]


def parse_deployment(raw: bytes) -> Deployment:
    """Return the deployment in a file, complete or not, or refuse the file."""
    try:
        file = msgspec.json.decode(raw, type=_File)
        if file.format != FORMAT:
            raise InvalidDeployment(
                f"its file has format {file.format}, and this version reads {FORMAT}"
            )
        return _deployment_of(file)
    except (msgspec.MsgspecError, MalformedHex) as error:
        raise InvalidDeployment(str(error)) from error


def _deployment_of(file: _File) -> Deployment:
    return Deployment(
        file.chain_id,
        file.is_sandbox,
        file.is_complete,
        file.start_block,
        MappingProxyType(
            {
                name: DeployedContract(
                    parse_address(contract.address, name),
                    parse_bytes32(contract.code_hash, name),
                )
                for name, contract in file.contracts.items()
            }
        ),
        _parsed_profiles(file.profiles),
        file.safe.factory_name,
        parse_bytes32(file.safe.init_code_hash, "initCodeHash"),
        CreationTerms(
            file.creation.fee_units,
            file.creation.neg_risk_fee_units,
            file.creation.community_share_bps,
        ),
        _parsed_profiles(file.neg_risk_profiles),
    )


def _parsed_profiles(profiles: Sequence[_Profile]) -> tuple[SigningProfile, ...]:
    return tuple(
        SigningProfile(
            profile.struct_version,
            profile.name,
            profile.version,
            None
            if profile.verifying_contract is None
            else parse_address(profile.verifying_contract, profile.name),
        )
        for profile in profiles
    )


def check_usable(deployment: Deployment, chain_id: int) -> None:
    """Refuse a deployment that is incomplete or of another chain."""
    if not deployment.is_complete:
        raise InvalidDeployment("it is incomplete; run foretell deploy again to continue it")
    if deployment.chain_id != chain_id:
        raise InvalidDeployment(
            f"it is for chain {deployment.chain_id}, and chain {chain_id} is required"
        )
