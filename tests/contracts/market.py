"""A market on the test chain: collateral, Conditional Tokens, exchange, and wallets with assets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

from tests.contracts.evm import (
    Actor,
    Contract,
    Evm,
    Receipt,
    conditional_tokens_artifact,
    own_artifact,
    own_artifact_fields,
    safe_artifact,
)
from tests.contracts.signing import (
    BUY,
    CHAIN_ID,
    PROFILES,
    SELL,
    UNIT,
    ZERO_WORD,
    Order,
    order_hash,
    signed,
)

from foretell.domain.values.hexadecimal import keccak256, parse_address, parse_bytes32
from foretell.domain.values.tokens import condition_id, token_pair

APPROVED: Final = True
ALLOWANCE_MAX: Final = 2**256 - 1
MAKERS: Final = 20
ENDOWMENT: Final = 1_000_000 * UNIT
NOTHING: Final = (0, 0, 0)
FEE_RISE_DELAY_S: Final = 3 * 24 * 3600
FACTORY_NAME: Final = "Contract Proxy Factory"
QUESTION: Final = keccak256(b"will it rain?")
OTHER_QUESTION: Final = keccak256(b"will it snow?")

Change = tuple[int, int, int]


@dataclass(frozen=True)
class World:
    """The contracts and accounts that all tests of the exchange share."""

    evm: Evm
    collateral: Contract
    ctf: Contract
    safe_factory: Contract
    relay_hub: Contract
    proxy_factory: Contract
    exchange: Contract
    minter: str
    admin: str
    operator: str
    registrar: str
    oracle: str
    fee_receiver: str
    taker: Actor
    makers: tuple[Actor, ...]

    question: ClassVar = QUESTION

    @cached_property
    def condition(self) -> str:
        return self.condition_of(QUESTION)

    @cached_property
    def yes(self) -> int:
        return self.tokens_of(QUESTION)[0]

    @cached_property
    def no(self) -> int:
        return self.tokens_of(QUESTION)[1]

    def condition_of(self, question: bytes) -> str:
        oracle = parse_address(self.oracle)
        return condition_id(oracle, parse_bytes32("0x" + question.hex()))

    def tokens_of(self, question: bytes) -> tuple[int, int]:
        condition = parse_bytes32(self.condition_of(question))
        pair = token_pair(parse_address(self.collateral.address), condition)
        return pair.yes, pair.no

    def open_market(self, question: bytes) -> None:
        """Prepare a condition and register its tokens."""
        condition = bytes.fromhex(self.condition_of(question)[2:])
        self.ctf.send("prepareCondition", self.oracle, question, 2, sender=self.oracle)
        yes, no = self.tokens_of(question)
        self.exchange.send("registerToken", yes, no, condition, sender=self.registrar)

    def trader(self, name: str, *, collateral: int = 0, sets: int = 0) -> Actor:
        """Return an account with these assets, approved for the exchange."""
        actor = self.evm.actor(name)
        self.endow(actor.address, collateral=collateral, sets=sets)
        return actor

    def endow(self, wallet: str, *, collateral: int = 0, sets: int = 0) -> None:
        """Give a wallet collateral, complete sets and approvals."""
        self.evm.fund(wallet)
        if collateral + sets:
            self.collateral.send("mint", wallet, collateral + sets, sender=self.minter)
        if sets:
            self.collateral.send("approve", self.ctf.address, sets, sender=wallet)
            self.split(wallet, sets)
        self.collateral.send("approve", self.exchange.address, ALLOWANCE_MAX, sender=wallet)
        self.ctf.send("setApprovalForAll", self.exchange.address, APPROVED, sender=wallet)

    def split(self, wallet: str, amount: int) -> None:
        condition = bytes.fromhex(self.condition[2:])
        self.ctf.send(
            "splitPosition",
            self.collateral.address,
            ZERO_WORD,
            condition,
            [1, 2],
            amount,
            sender=wallet,
        )

    def holdings(self, wallet: str) -> tuple[int, int, int]:
        """Return a wallet's balances of collateral, Yes and No."""
        return (
            self.collateral.call("balanceOf", wallet),
            self.ctf.call("balanceOf", wallet, self.yes),
            self.ctf.call("balanceOf", wallet, self.no),
        )

    def sign(self, order: Order, actor: Actor) -> Order:
        return signed(order, actor, self.exchange.address)

    def changes(
        self, wallets: list[str], taker: Order, makers: list[Order], fill: "Fill"
    ) -> list[Change]:
        """Return the changes by a match of each wallet's balances of collateral, Yes and No."""
        before = [self.holdings(wallet) for wallet in wallets]
        self.match(taker, makers, fill)
        after = [self.holdings(wallet) for wallet in wallets]
        return [
            (now[0] - was[0], now[1] - was[1], now[2] - was[2])
            for was, now in zip(before, after, strict=True)
        ]

    def hash(self, order: Order) -> bytes:
        return order_hash(order, self.exchange.address)

    def order(
        self, actor: Actor, side: int, token: int, amounts: tuple[int, int], **fields: Any
    ) -> Order:
        """Return a signed order of the actor's own wallet, with maker amount and taker amount."""
        order = Order(
            maker=actor.address,
            signer=actor.address,
            token_id=token,
            maker_amount=amounts[0],
            taker_amount=amounts[1],
            side=side,
        )
        return self.sign(replace(order, **fields), actor)

    def buy(self, actor: Actor, token: int, size: int, cents: int, **fields: Any) -> Order:
        """Return a signed order to buy this many tokens at this many cents."""
        return self.order(actor, BUY, token, (size * cents // 100, size), **fields)

    def sell(self, actor: Actor, token: int, size: int, cents: int, **fields: Any) -> Order:
        """Return a signed order to sell this many tokens at this many cents."""
        return self.order(actor, SELL, token, (size, size * cents // 100), **fields)

    def allow_fees(self, rate_bps: int, exchange: Contract | None = None) -> None:
        """Raise the limit of fees on v2 orders, and wait until it is in force."""
        (exchange or self.exchange).send("setMaxFeeRateBps", rate_bps, sender=self.admin)
        self.evm.rpc("evm_increaseTime", FEE_RISE_DELAY_S)

    def match(self, taker: Order, makers: list[Order], fill: "Fill") -> Receipt:
        """Match as the operator."""
        return self.exchange.send(
            "matchOrders", *match_args(taker, makers, fill), sender=self.operator
        )


@dataclass(frozen=True, slots=True)
class Fill:
    """The filled amounts of the taker and of each maker, and their fees."""

    taker: int
    makers: tuple[int, ...]
    taker_fee: int = 0
    maker_fees: tuple[int, ...] | None = None


def match_args(taker: Order, makers: list[Order], fill: Fill) -> tuple[Any, ...]:
    """Return the arguments of `matchOrders`."""
    fees = (0,) * len(fill.makers) if fill.maker_fees is None else fill.maker_fees
    return (
        taker.fields,
        [maker.fields for maker in makers],
        fill.taker,
        list(fill.makers),
        fill.taker_fee,
        list(fees),
    )


def deploy_safe_factory(evm: Evm) -> Contract:
    """Deploy a Safe factory with the original singleton and proxy."""
    singleton = evm.deploy(safe_artifact("GnosisSafe.sol/GnosisSafe"))
    handler = evm.deploy(
        safe_artifact("handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler")
    )
    code = bytes.fromhex(own_artifact_fields("SafeProxyCreationCode")["bytecode"][2:])
    return evm.deploy(
        own_artifact("SafeFactory"),
        singleton.address,
        handler.address,
        FACTORY_NAME,
        code,
    )


def deploy_proxy_factory(evm: Evm) -> tuple[Contract, Contract]:
    """Deploy a relay hub, and the factory of proxy wallets that believes it.

    Their deployer deploys nothing else: the gas of positions depends on the other contracts' addresses.
    """
    sender = evm.actor("deployer of proxy wallets").address
    hub = evm.deploy(own_artifact("RelayHub"), CHAIN_ID, sender=sender)
    wallet = evm.deploy(own_artifact("ProxyWallet"), sender=sender)
    artifact = own_artifact("ProxyWalletFactory")
    return hub, evm.deploy(artifact, wallet.address, hub.address, sender=sender)


def exchange_arguments(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the exchange's constructor by name, in order."""
    factory: Contract = parts["safe_factory"]
    proxies: Contract = parts["proxy_factory"]
    collateral, ctf = parts["collateral"].address, parts["ctf"].address
    return {
        "collateral": collateral,
        "conditionalTokens": ctf,
        "splitter": ctf,
        "tokenCollateral": collateral,
        "safeFactory": factory.address,
        "safeInitCodeHash": factory.call("initCodeHash"),
        "proxyFactory": proxies.address,
        "admin": parts["admin"],
        "feeReceiver": parts["fee_receiver"],
        "profileNames": [profile.name for profile in PROFILES],
        "profileVersions": [profile.version for profile in PROFILES],
        "profileContracts": [profile.verifying_contract for profile in PROFILES],
        "profileStructs": [profile.struct_version for profile in PROFILES],
    }


def deploy_exchange(world: World, **changed: Any) -> Contract:
    """Deploy another exchange with some arguments changed."""
    arguments = exchange_arguments(vars(world)) | changed
    return world.evm.deploy(own_artifact("Exchange"), *arguments.values())


def deploy_world(evm: Evm) -> World:
    """Deploy a market that is open for trading."""
    roles = ("minter", "admin", "operator", "registrar", "oracle", "fee_receiver")
    parts: dict[str, Any] = {role: evm.actor(role).address for role in roles}
    parts["collateral"] = evm.deploy(
        own_artifact("CollateralToken"), "Sandbox Dollar", "USDS", parts["minter"]
    )
    parts["ctf"] = evm.deploy(conditional_tokens_artifact())
    parts["safe_factory"] = deploy_safe_factory(evm)
    parts["relay_hub"], parts["proxy_factory"] = deploy_proxy_factory(evm)
    parts["exchange"] = evm.deploy(own_artifact("Exchange"), *exchange_arguments(parts).values())
    parts["taker"] = evm.actor("taker")
    parts["makers"] = tuple(evm.actor(f"maker {index}") for index in range(MAKERS))
    world = World(evm=evm, **parts)
    world.exchange.send("addOperator", world.operator, sender=world.admin)
    world.exchange.send("addRegistrar", world.registrar, sender=world.admin)
    world.open_market(QUESTION)
    for actor in (world.taker, *world.makers):
        world.endow(actor.address, collateral=ENDOWMENT, sets=ENDOWMENT)
    return world
