"""The rig of random scenarios: a market, an event, traders and hostile wallets."""

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from tests.contracts.evm import Actor, Contract
from tests.contracts.fast_evm import FastEvm
from tests.contracts.market import ALLOWANCE_MAX, APPROVED, World, deploy_world
from tests.contracts.neg_risk.rig import NegRisk, deploy_neg_risk
from tests.contracts.resolution import deploy_resolution
from tests.contracts.safes import a_safe
from tests.contracts.scenarios.contract_wallets import (
    Signers,
    deploy_code,
    deploy_hostile,
    deploy_signers,
)
from tests.contracts.scenarios.expected import QUESTIONS, V2_FEE_RATE_BPS
from tests.contracts.scenarios.reentering import (
    Call,
    Exchanged,
    Reentering,
    adapter_calls,
    exchange_calls,
    keep_tokens,
    prepare_other_event,
    reentering_code,
)
from tests.contracts.signing import ZERO_WORD

STARTING_UNITS: Final = 100_000
SETS: Final = 10_000
TRADERS: Final = 4
SAFES: Final = 2
CONVERSION_FEE_BIPS: Final = 150


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
    hostile: tuple[str, str, str]
    signers: Signers
    market: TradedPair
    questions: tuple[TradedPair, ...]
    event_market: bytes
    fee_receivers: tuple[str, ...]
    reentering: tuple[Reentering, ...]

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
    def wallets(self) -> tuple[str, ...]:
        """The contract wallets, whose orders are of type 3."""
        reentering = (each.wallet for each in self.reentering)
        return (*self.hostile, *self.signers.wallets, *reentering)

    @property
    def admins(self) -> tuple[str, str]:
        """The accounts that are, one after the other, the admin of an exchange."""
        return self.world.admin, self.world.evm.actor("another admin of an exchange").address

    @property
    def keys(self) -> Mapping[str, bytes]:
        """The keys that sign for accounts and Safes; most contract wallets accept everything."""
        own = {actor.address: actor.key for actor in self.traders}
        return own | {safe: owner.key for safe, owner in self.safes.items()}

    @property
    def evm(self) -> FastEvm:
        evm = self.world.evm
        assert isinstance(evm, FastEvm)
        return evm


@cache
def scenario_rig() -> ScenarioRig:
    """Deploy a market, an event of three questions, two exchanges, traders and contract wallets."""
    evm = FastEvm()
    neg_risk = deploy_neg_risk(deploy_resolution(deploy_world(evm)))
    world, market = neg_risk.world, neg_risk.open_sealed_event(QUESTIONS, CONVERSION_FEE_BIPS)
    traders = tuple(world.evm.actor(f"trader {number}") for number in range(TRADERS))
    questions = tuple(event_pair(neg_risk, index, market) for index in range(QUESTIONS))
    for exchange in (world.exchange, neg_risk.exchange):
        world.allow_fees(V2_FEE_RATE_BPS, exchange)
    condition = bytes.fromhex(world.condition[2:])
    plain = TradedPair(
        world.exchange, world.ctf, (world.yes, world.no), condition, world.ctf.address
    )
    controller = world.evm.actor("controller").address
    safes = {a_safe(world, owner).address.lower(): owner for owner in traders[:SAFES]}
    evm.owner_by_safe |= {safe: owner.address for safe, owner in safes.items()}
    hostile, signers = deploy_hostile(evm, controller), deploy_signers(evm, controller)
    able = (*(actor.address for actor in traders), *safes, hostile[2], *signers.wallets)
    for who in (*able, *hostile[:2]):
        world.collateral.send("mint", who, STARTING_UNITS, sender=world.minter)
        approve_all(neg_risk, who)
    for who in able:
        take_sets(neg_risk, who, plain, market)
    receivers = (world.fee_receiver, world.evm.actor("another fee receiver").address)
    for receiver in (*receivers, neg_risk.vault):
        approve_all(neg_risk, receiver)
    rig = ScenarioRig(
        *(neg_risk, traders, safes, hostile, signers),
        *(plain, questions, market, receivers, ()),
    )
    return rig._replace(reentering=deploy_reentering(rig, controller))


def event_pair(neg_risk: NegRisk, index: int, market: bytes) -> TradedPair:
    """Register the tokens of an event's question, and return them."""
    tokens, condition = neg_risk.tokens(index, market), neg_risk.condition(index, market)
    pair, lock = (tokens.yes, tokens.no), neg_risk.wrapped.address
    registrar = neg_risk.world.registrar
    neg_risk.exchange.send("registerToken", *pair, condition, sender=registrar)
    return TradedPair(neg_risk.exchange, neg_risk.adapter, pair, condition, lock)


def take_sets(neg_risk: NegRisk, who: str, plain: TradedPair, market: bytes) -> None:
    """Have an account split collateral into sets of the market and of every question."""
    world = neg_risk.world
    sets = (world.collateral.address, ZERO_WORD, plain.condition, [1, 2], SETS)
    world.ctf.send("splitPosition", *sets, sender=who)
    for index in range(QUESTIONS):
        neg_risk.split(who, index, SETS, market)


def deploy_reentering(rig: ScenarioRig, controller: str) -> tuple[Reentering, ...]:
    """Deploy a wallet for each exchange and one for the adapter, with what their calls are about."""
    world, event = rig.world, rig.neg_risk
    seller, buyer, *_ = rig.traders
    wallets = []
    for number, pair in enumerate((rig.market, rig.questions[0])):
        about = Exchanged(world, pair.exchange, pair.pair[0], seller, buyer)
        who = world.evm.actor(f"re-entering wallet {number}").address
        calls = exchange_calls(about, who, controller)
        wallets.append(deploy_caller(rig, who, pair.exchange, calls, controller))
        keep_tokens(about, who)
    who = world.evm.actor("wallet that re-enters the adapter").address
    calls = adapter_calls(event, rig.event_market)
    wallets.append(deploy_caller(rig, who, event.adapter, calls, controller))
    for each in wallets:
        each.open(rig.evm)
        take_sets(event, each.wallet, rig.market, rig.event_market)
    prepare_other_event(event, who)
    for each in wallets:
        each.check_alone(rig.evm)
    return tuple(wallets)


def deploy_caller(
    rig: ScenarioRig, who: str, contract: Contract, calls: tuple[Call, ...], controller: str
) -> Reentering:
    """Deploy a wallet that makes the calls, with collateral and approvals."""
    deploy_code(rig.evm, who, reentering_code(controller, contract.address, calls), controller)
    rig.world.collateral.send("mint", who, STARTING_UNITS, sender=rig.world.minter)
    approve_all(rig.neg_risk, who)
    return Reentering(who, contract, calls)


def approve_all(neg_risk: NegRisk, who: str) -> None:
    world = neg_risk.world
    spenders = (world.ctf, world.exchange, neg_risk.adapter, neg_risk.exchange)
    for spender in (each.address for each in spenders):
        world.collateral.send("approve", spender, ALLOWANCE_MAX, sender=who)
        world.ctf.send("setApprovalForAll", spender, APPROVED, sender=who)
