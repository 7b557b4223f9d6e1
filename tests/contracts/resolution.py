"""The direct resolution stack on the test chain: oracle, adapter, registries and one creator."""

from dataclasses import dataclass
from typing import Final

from tests.contracts.evm import Contract, Receipt, own_artifact
from tests.contracts.market import World
from tests.contracts.signing import UNIT, ZERO

from foretell.domain.values.hexadecimal import keccak256

YES_OR_NO_QUERY: Final = b"YES_OR_NO_QUERY".ljust(32, b"\0")
PRICE_YES: Final = 10**18
PRICE_NO: Final = 0
PRICE_UNKNOWN: Final = 5 * 10**17
CREATION_FEE: Final = 5 * UNIT
COMMUNITY_SHARE_BPS: Final = 8_000
TEXT: Final = b"q: title: will it rain?, description: rain counts. res_data: p1: 0, p2: 1, p3: 0.5"

INITIALIZED: Final = "QuestionInitialized(bytes32,uint256,address,bytes,address,uint256,uint256)"
RESOLVED: Final = "QuestionResolved(bytes32,int256,uint256[])"


def with_initializer(text: bytes, initializer: str) -> bytes:
    """Return the stored text of a question."""
    return text + b",initializer:" + initializer[2:].encode()


@dataclass(frozen=True)
class Resolution:
    """The contracts and accounts of the direct resolution stack."""

    world: World
    registry: Contract
    markets: Contract
    oracle: Contract
    adapter: Contract
    whitelist: Contract
    admin: str
    creator: str
    proposer: str
    community_pool: str
    operator: str

    def question_id(self, text: bytes = TEXT) -> bytes:
        return keccak256(with_initializer(text, self.creator))

    def condition_id(self, text: bytes = TEXT) -> bytes:
        oracle = bytes.fromhex(self.adapter.address[2:])
        return keccak256(oracle + self.question_id(text) + (2).to_bytes(32, "big"))

    def ask(self, text: bytes = TEXT) -> Receipt:
        return self.adapter.send("initialize", text, ZERO, 0, 0, 0, sender=self.creator)

    def ask_until(self, end_s: int, text: bytes = TEXT) -> Receipt:
        """Ask a question whose answer should be known this many seconds later."""
        return self.adapter.send("initialize", text, ZERO, 0, 0, end_s, sender=self.creator)

    def asked_at(self, text: bytes = TEXT) -> int:
        when: int = self.adapter.call("questionState", self.question_id(text))[0]
        return when

    def answer(self, price: int, text: bytes = TEXT) -> Receipt:
        return self.oracle.send(
            "proposeAndResolve",
            self.adapter.address,
            self.question_id(text),
            YES_OR_NO_QUERY,
            self.asked_at(text),
            with_initializer(text, self.creator),
            price,
            sender=self.proposer,
        )

    def payouts(self, text: bytes = TEXT) -> tuple[int, int, int]:
        """Return the payout of the condition: both numerators and the denominator."""
        ctf, condition = self.world.ctf, self.condition_id(text)
        return (
            ctf.call("payoutNumerators", condition, 0),
            ctf.call("payoutNumerators", condition, 1),
            ctf.call("payoutDenominator", condition),
        )


def adapter_args(
    world: World, oracle: Contract, markets: Contract, admin: str
) -> tuple[object, ...]:
    """Return the arguments of the adapter's constructor."""
    return (
        world.ctf.address,
        oracle.address,
        markets.address,
        world.collateral.address,
        admin,
        CREATION_FEE,
        COMMUNITY_SHARE_BPS,
        world.evm.actor("community pool").address,
        world.evm.actor("fee operator").address,
    )


def deploy_resolution(world: World) -> Resolution:
    """Deploy the direct stack, and a creator with whitelist, collateral and approvals."""
    evm = world.evm
    admin, creator, proposer = (evm.actor(n).address for n in ("head", "creator", "proposer"))
    registry = evm.deploy(own_artifact("ProposerWhitelistRegistry"))
    markets = evm.deploy(own_artifact("MarketRegistry"), admin)
    oracle = evm.deploy(own_artifact("DirectResolutionOracle"), registry.address, admin)
    adapter = evm.deploy(
        own_artifact("DirectResolutionAdapter"), *adapter_args(world, oracle, markets, admin)
    )
    oracle.send("addAdapter", adapter.address, sender=admin)
    markets.send("addAdapter", adapter.address, sender=admin)
    whitelist = evm.deploy(own_artifact("ProposerWhitelist"), creator, [proposer])
    registry.send("registerWhitelist", whitelist.address, sender=creator)
    world.collateral.send("mint", creator, 20 * CREATION_FEE, sender=world.minter)
    world.collateral.send("approve", adapter.address, 20 * CREATION_FEE, sender=creator)
    return Resolution(
        world=world,
        registry=registry,
        markets=markets,
        oracle=oracle,
        adapter=adapter,
        whitelist=whitelist,
        admin=admin,
        creator=creator,
        proposer=proposer,
        community_pool=adapter.call("communityPool"),
        operator=adapter.call("feeOperator"),
    )
