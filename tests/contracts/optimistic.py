"""The optimistic stack on the test chain: oracle, adapter, proposer, disputer and arbiter."""

from dataclasses import dataclass, replace
from typing import Any, Final

from tests.contracts.evm import Contract, Receipt, own_artifact
from tests.contracts.market import ALLOWANCE_MAX, World
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.resolution import TEXT, YES_OR_NO_QUERY, Resolution, with_initializer
from tests.contracts.signing import UNIT, ZERO

from foretell.domain.values.hexadecimal import keccak256

BOND: Final = 500 * UNIT
REWARD: Final = 5 * UNIT
LIVENESS_S: Final = 7_200
ARBITRATION_S: Final = 7 * 24 * 3_600
RELEASE_S: Final = 7 * 24 * 3_600
HOLD_S: Final = 7 * 24 * 3_600
SAFETY_S: Final = 3_600
ANSWER_S: Final = 7 * 24 * 3600
IGNORE: Final = -(2**255)
STARTING_UNITS: Final = 10 * BOND

REQUESTED: Final = 1
PROPOSED: Final = 2
EXPIRED: Final = 3
DISPUTED: Final = 4
SETTLED: Final = 6


@dataclass(frozen=True)
class Optimistic:
    """A question of the optimistic stack, with its accounts."""

    resolution: Resolution
    oracle: Contract
    adapter: Contract
    ctf: Contract
    arbiter: str
    treasury: str
    proposer: str
    disputer: str
    text: bytes = TEXT

    @property
    def world(self) -> World:
        return self.resolution.world

    @property
    def creator(self) -> str:
        return self.resolution.creator

    @property
    def admin(self) -> str:
        return self.resolution.admin

    @property
    def signed_text(self) -> bytes:
        return with_initializer(self.text, self.creator)

    @property
    def question(self) -> bytes:
        return keccak256(self.signed_text)

    @property
    def condition(self) -> bytes:
        condition: bytes = self.adapter.call("conditionIdOf", self.question)
        return condition

    @property
    def asked_at(self) -> int:
        """The time of the last request."""
        when: int = self.adapter.call("questionState", self.question)[0]
        return when

    def request(self, asked_at: int | None = None) -> tuple[Any, ...]:
        """Return the key of the question's request, by default of the last one."""
        when = self.asked_at if asked_at is None else asked_at
        return (self.adapter.address, YES_OR_NO_QUERY, when, self.signed_text)

    def state(self, asked_at: int | None = None) -> int:
        state: int = self.oracle.call("getState", *self.request(asked_at))
        return state

    def ask(self, reward: int = REWARD, bond: int = 0, liveness: int = 0) -> Receipt:
        collateral = self.world.collateral.address
        return self.adapter.send(
            "initialize", self.text, collateral, reward, bond, liveness, sender=self.creator
        )

    def propose(self, price: int) -> Receipt:
        return self.oracle.send("proposePrice", *self.request(), price, sender=self.proposer)

    def dispute(self) -> Receipt:
        return self.oracle.send("disputePrice", *self.request(), sender=self.disputer)

    def decide(self, price: int) -> Receipt:
        return self.oracle.send("arbitrate", *self.request(), price, sender=self.arbiter)

    def settle(self, asked_at: int | None = None) -> Receipt:
        return self.oracle.send("settle", *self.request(asked_at), sender=self.creator)

    def resolve(self) -> Receipt:
        return self.adapter.send("resolve", self.question, sender=self.disputer)

    def escalate(self, first: int, second: int) -> int:
        """Ask, and dispute two proposals; return the time of the first request."""
        self.ask()
        asked_at = self.asked_at
        self.propose(first)
        self.dispute()
        self.propose(second)
        self.dispute()
        return asked_at

    def owed(self, *accounts: str) -> tuple[int, ...]:
        return tuple(self.oracle.call("owed", account) for account in accounts)

    @property
    def held(self) -> int:
        """The collateral that the oracle holds."""
        units: int = self.world.collateral.call("balanceOf", self.oracle.address)
        return units

    def wait(self, seconds: int) -> None:
        self.world.evm.rpc("evm_increaseTime", seconds)

    @property
    def payouts(self) -> tuple[int, int, int]:
        ctf, condition = self.world.ctf, self.condition
        return (
            ctf.call("payoutNumerators", condition, 0),
            ctf.call("payoutNumerators", condition, 1),
            ctf.call("payoutDenominator", condition),
        )


def deploy_optimistic(resolution: Resolution) -> Optimistic:
    """Deploy the optimistic stack, and give all accounts their collateral."""
    world, evm, admin = resolution.world, resolution.world.evm, resolution.admin
    roles = ("arbiter", "treasury", "optimist", "disputer")
    arbiter, treasury, proposer, disputer = (evm.actor(role).address for role in roles)
    oracle = evm.deploy(
        own_artifact("OptimisticOracle"), world.collateral.address, admin, arbiter, treasury
    )
    adapter = deploy_adapter(
        resolution, oracle, world.ctf, resolution.markets.address, allows_unknown=True
    )
    for account in (proposer, disputer):
        world.collateral.send("mint", account, STARTING_UNITS, sender=world.minter)
        world.collateral.send("approve", oracle.address, ALLOWANCE_MAX, sender=account)
    return Optimistic(resolution, oracle, adapter, world.ctf, arbiter, treasury, proposer, disputer)


def deploy_adapter(
    resolution: Resolution, oracle: Contract, ctf: Contract, markets: str, *, allows_unknown: bool
) -> Contract:
    """Deploy an adapter, and approve it for the creator's rewards."""
    world, admin = resolution.world, resolution.admin
    adapter = world.evm.deploy(
        own_artifact("OptimisticResolutionAdapter"),
        *(ctf.address, oracle.address, markets, world.collateral.address, admin),
        *(BOND, LIVENESS_S, allows_unknown),
    )
    oracle.send("addAdapter", adapter.address, sender=admin)
    resolution.markets.send("addAdapter", adapter.address, sender=admin)
    world.collateral.send("mint", resolution.creator, 10 * REWARD, sender=world.minter)
    world.collateral.send("approve", adapter.address, ALLOWANCE_MAX, sender=resolution.creator)
    return adapter


def deploy_optimistic_event(
    neg_risk: NegRisk, optimistic: Optimistic
) -> tuple[Optimistic, Contract]:
    """Deploy an operator with an adapter of the optimistic oracle; return both."""
    world, resolution = neg_risk.world, neg_risk.resolution
    markets = resolution.markets
    operator = world.evm.deploy(
        own_artifact("NegRiskOperator"),
        *("alt_moov2", neg_risk.adapter.address, markets.address, resolution.admin),
    )
    markets.send("addAdapter", operator.address, sender=resolution.admin)
    adapter = deploy_adapter(resolution, optimistic.oracle, operator, ZERO, allows_unknown=False)
    operator.send("setOracle", adapter.address, sender=resolution.admin)
    return replace(optimistic, adapter=adapter, ctf=operator), operator
