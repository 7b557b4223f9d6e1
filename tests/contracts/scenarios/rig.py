"""The rig of random scenarios: a market, an event, traders and hostile wallets."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from coincurve import PrivateKey
from eth_abi.abi import encode
from tests.contracts.evm import Actor, Contract
from tests.contracts.fast_evm import FastEvm
from tests.contracts.market import ALLOWANCE_MAX, APPROVED, World, deploy_world
from tests.contracts.neg_risk.rig import NegRisk, deploy_neg_risk
from tests.contracts.resolution import deploy_resolution
from tests.contracts.safes import a_safe
from tests.contracts.scenarios.expected import QUESTIONS, V2_FEE_RATE_BPS
from tests.contracts.signing import PROFILES, V1_FIELDS, V2_FIELDS, ZERO_WORD, Order
from tests.contracts.wallets import (
    BURN,
    REVERT,
    SIGNATURE_YES,
    answer,
    answer_receipts,
    answer_receipts_on_even_seconds,
    call_of,
    obeying,
    wallet,
)

from foretell.domain.values.hexadecimal import keccak256

STARTING_UNITS: Final = 100_000
SETS: Final = 10_000
TRADERS: Final = 4
SAFES: Final = 2
CONVERSION_FEE_BIPS: Final = 150
TYPE_HASH: Final = {
    version: keccak256(f"Order({','.join(f'{kind} {name}' for name, kind in fields)})".encode())
    for version, fields in ((1, V1_FIELDS), (2, V2_FIELDS))
}


class TradedPair(NamedTuple):
    """A pair of tokens, with its exchange, its splitter and the contract that locks its collateral."""

    exchange: Contract
    splitter: Contract
    pair: tuple[int, int]
    condition: bytes
    lock: str


class ScenarioRig(NamedTuple):
    """The contracts and accounts of all scenarios; each scenario is reverted at its end."""

    neg_risk: NegRisk
    traders: tuple[Actor, ...]
    safes: Mapping[str, Actor]
    hostile: tuple[str, ...]
    market: TradedPair
    questions: tuple[TradedPair, ...]
    event_market: bytes
    fee_receivers: tuple[str, ...]

    @property
    def world(self) -> World:
        return self.neg_risk.world

    @property
    def refusing(self) -> tuple[str, str]:
        """The wallets that take no tokens: one reverts, the other burns all gas."""
        return self.hostile[0], self.hostile[1]

    @property
    def fickle(self) -> str:
        """The wallet that takes tokens when the block's time is even."""
        return self.hostile[2]

    @property
    def keys(self) -> Mapping[str, bytes]:
        """The keys that sign for wallets; hostile wallets accept everything."""
        own = {actor.address: actor.key for actor in self.traders}
        return own | {safe: owner.key for safe, owner in self.safes.items()}

    @property
    def evm(self) -> FastEvm:
        evm = self.world.evm
        assert isinstance(evm, FastEvm)
        return evm


@cache
def scenario_rig() -> ScenarioRig:
    """Deploy a market, an event of three questions, two exchanges, traders and hostile wallets."""
    evm = FastEvm()
    neg_risk = deploy_neg_risk(deploy_resolution(deploy_world(evm)))
    world, market = neg_risk.world, neg_risk.open_sealed_event(QUESTIONS, CONVERSION_FEE_BIPS)
    traders = tuple(world.evm.actor(f"trader {number}") for number in range(TRADERS))
    pairs = [neg_risk.tokens(index, market) for index in range(QUESTIONS)]
    questions = tuple(
        TradedPair(
            neg_risk.exchange,
            neg_risk.adapter,
            (pair.yes, pair.no),
            neg_risk.condition(index, market),
            neg_risk.wrapped.address,
        )
        for index, pair in enumerate(pairs)
    )
    for traded in questions:
        neg_risk.exchange.send(
            "registerToken", *traded.pair, traded.condition, sender=world.registrar
        )
    for exchange in (world.exchange, neg_risk.exchange):
        world.allow_fees(V2_FEE_RATE_BPS, exchange)
    condition = bytes.fromhex(world.condition[2:])
    plain = TradedPair(
        world.exchange, world.ctf, (world.yes, world.no), condition, world.ctf.address
    )
    controller = world.evm.actor("controller").address
    safes = {a_safe(world, owner).address.lower(): owner for owner in traders[:SAFES]}
    evm.owner_by_safe |= {safe: owner.address for safe, owner in safes.items()}
    hostile = tuple(
        deploy_code(evm, code, controller) for code in hostile_codes(neg_risk, controller)
    )
    for trader in (*(actor.address for actor in traders), *safes, *hostile):
        world.collateral.send("mint", trader, STARTING_UNITS, sender=world.minter)
        approve_all(neg_risk, trader)
    for trader in (*(actor.address for actor in traders), *safes, *hostile[2:]):
        plain_sets = (world.collateral.address, ZERO_WORD, condition, [1, 2], SETS)
        world.ctf.send("splitPosition", *plain_sets, sender=trader)
        for index in range(QUESTIONS):
            neg_risk.split(trader, index, SETS, market)
    receivers = (world.fee_receiver, world.evm.actor("another fee receiver").address)
    for receiver in (*receivers, neg_risk.vault):
        approve_all(neg_risk, receiver)
    return ScenarioRig(neg_risk, traders, safes, hostile, plain, questions, market, receivers)


def hostile_codes(neg_risk: NegRisk, controller: str) -> Iterator[bytes]:
    """Yield wallets that sign everything.

    Two refuse tokens, and one changes its mind; the others make calls when they receive some.
    """
    yield wallet(answer(SIGNATURE_YES), obeying(controller, REVERT))
    yield wallet(answer(SIGNATURE_YES), obeying(controller, BURN))
    yield wallet(answer(SIGNATURE_YES), obeying(controller, answer_receipts_on_even_seconds()))
    exchange, adapter = neg_risk.world.exchange, neg_risk.adapter
    short, convert = "mergePositions(bytes32,uint256)", "convertPositions(bytes32,uint256,uint256)"
    redeem, market = "redeemPositions(bytes32,uint256[])", neg_risk.market(CONVERSION_FEE_BIPS)
    for contract, calldata in (
        (exchange.address, exchange.calldata("incrementNonce")),
        (exchange.address, exchange.calldata("setOwnerSigning", False)),  # noqa: FBT003
        (exchange.address, exchange.calldata("claimTokens", neg_risk.world.yes, controller)),
        (adapter.address, adapter.calldata(convert, market, 1, 0)),
        (adapter.address, adapter.calldata(redeem, neg_risk.condition(0, market), [0, 0])),
        (adapter.address, adapter.calldata(short, neg_risk.condition(0), 0)),
        (adapter.address, adapter.calldata("sweep", neg_risk.wrapped.address)),
    ):
        taking = call_of(contract, calldata) + answer_receipts()
        yield wallet(answer(SIGNATURE_YES), obeying(controller, taking), calldata)


def deploy_code(evm: FastEvm, code: bytes, controller: str) -> str:
    address = "0x" + keccak256(code)[-20:].hex()
    evm.rpc("anvil_setCode", address, "0x" + code.hex())
    evm.controller_by_wallet[address] = controller
    return address


def approve_all(neg_risk: NegRisk, who: str) -> None:
    world = neg_risk.world
    spenders = (world.ctf, world.exchange, neg_risk.adapter, neg_risk.exchange)
    for spender in (each.address for each in spenders):
        world.collateral.send("approve", spender, ALLOWANCE_MAX, sender=who)
        world.ctf.send("setApprovalForAll", spender, APPROVED, sender=who)


def signed_order(order: Order, exchange: Contract, key: bytes | None) -> Order:
    """Return the order signed by key, or with any bytes for a wallet that accepts everything."""
    if key is None:
        return replace(order, signature=b"anything")
    digest = order_digest(order, exchange)
    signature = PrivateKey(key).sign_recoverable(digest, hasher=None)
    return replace(order, signature=signature[:64] + bytes((signature[64] + 27,)))


@cache
def separator(address: str, exchange: Contract, profile: int) -> bytes:
    """Return a domain separator of the exchange, read only once."""
    assert exchange.address == address
    domain: bytes = exchange.call("domainSeparator(uint256)", profile)
    return domain


def order_digest(order: Order, exchange: Contract) -> bytes:
    """Return an order's hash, encoded by hand; `test_signatures` compares it with eth-account."""
    version = PROFILES[order.profile].struct_version
    fields = {1: V1_FIELDS, 2: V2_FIELDS}[version]
    message = order.message
    words = encode(
        ["bytes32", *(kind for _, kind in fields)],
        [TYPE_HASH[version], *(message[name] for name, _ in fields)],
    )
    domain = separator(exchange.address, exchange, order.profile)
    return keccak256(b"\x19\x01" + domain + keccak256(words))
