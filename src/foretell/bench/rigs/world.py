"""The subject of order benchmarks: contracts without a chain, users with keys and money, markets.

Balances reach the engine by the command with which the chain feed submits observations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foretell.domain.contracts.deployment import (
    ContractName,
    CreationTerms,
    DeployedContract,
    Deployment,
)
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, ObserveChain, OpenMarket
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import MarketRules
from foretell.domain.exchange.profiles import OWN_PROFILE
from foretell.domain.values.credentials import Credentials, KeyIndex, derive_credentials
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import (
    ZERO_BYTES32,
    Address,
    Bytes32,
    address_of,
    keccak256,
    word_of,
)
from foretell.domain.values.tokens import TokenPair, token_pair

CHAIN_ID: Final = 80002
USERS: Final = 200
MARKETS: Final = 50
FUNDS_UNITS: Final = 10**15
SIZE_UNITS_MIN: Final = 5_000_000
TICKS_PER_ONE: Final = 100


@dataclass(frozen=True, slots=True)
class User:
    """A user with the credentials to place orders."""

    private_key: bytes
    address: Address
    index: KeyIndex
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class World:
    """Deployment, users and markets made from one master key: the same for an exchange and its load."""

    master_key: bytes
    deployment: Deployment
    users: Sequence[User]
    conditions: Sequence[Bytes32]
    tokens: Sequence[TokenPair]


def deployment_without_chain() -> Deployment:
    """Return contracts with made-up addresses, for what asks no chain about them."""
    contracts = {name: DeployedContract(_address(name), ZERO_BYTES32) for name in ContractName}
    return Deployment(
        chain_id=CHAIN_ID,
        is_sandbox=True,
        is_complete=True,
        start_block=0,
        contracts=contracts,
        profiles=(OWN_PROFILE,),
        safe_factory_name="bench",
        safe_init_code_hash=ZERO_BYTES32,
        creation=CreationTerms(0, 0, 0),
    )


def make_world(master_key: bytes) -> World:
    """Return the world of a master key."""
    deployment = deployment_without_chain()
    conditions = [word_of(keccak256(f"condition {number}".encode())) for number in range(MARKETS)]
    return World(
        master_key=master_key,
        deployment=deployment,
        users=[_user(master_key, number) for number in range(USERS)],
        conditions=conditions,
        tokens=[token_pair(deployment.collateral, condition) for condition in conditions],
    )


def market_commands(world: World, at_ms: int) -> list[OpenMarket]:
    """Return what opens the markets."""
    rules = MarketRules(TICKS_PER_ONE, SIZE_UNITS_MIN, 0)
    return [
        OpenMarket(
            at_ms=at_ms,
            condition_id=condition,
            token_yes=AssetId(str(pair.yes)),
            token_no=AssetId(str(pair.no)),
            exchange=world.deployment.exchange,
            rules=rules,
        )
        for condition, pair in zip(world.conditions, world.tokens, strict=True)
    ]


def funding_command(world: World, at_ms: int) -> ObserveChain:
    """Return the command that gives every user collateral and tokens of every market, approved."""
    exchange = world.deployment.exchange
    assets = [COLLATERAL] + [AssetId(str(token)) for pair in world.tokens for token in pair]
    return ObserveChain(
        at_ms=at_ms,
        block_number=1,
        block_hash=word_of(keccak256(b"block")),
        balances=tuple(
            BalanceSeen(user.address, asset, FUNDS_UNITS)
            for user in world.users
            for asset in assets
        ),
        allowances=tuple(
            AllowanceSeen(user.address, exchange, is_collateral, FUNDS_UNITS)
            for user in world.users
            for is_collateral in (True, False)
        ),
        trades=(),
    )


def _user(master_key: bytes, number: int) -> User:
    private_key = keccak256(b"bench user %d" % number + master_key)
    address = address_of_key(private_key)
    index = KeyIndex(CHAIN_ID, address, 0)
    return User(private_key, address, index, derive_credentials(master_key, index))


def _address(name: str) -> Address:
    return address_of(keccak256(f"bench {name}".encode())[12:])
