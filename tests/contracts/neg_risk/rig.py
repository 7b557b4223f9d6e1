"""The neg-risk contracts on the test chain: adapter, operator, resolution and exchange."""

from dataclasses import dataclass
from typing import Final

from tests.contracts.evm import Contract, Receipt, own_artifact
from tests.contracts.market import ALLOWANCE_MAX, APPROVED, World, deploy_exchange
from tests.contracts.resolution import (
    COMMUNITY_SHARE_BPS,
    YES_OR_NO_QUERY,
    Resolution,
    with_initializer,
)
from tests.contracts.signing import UNIT, ZERO

from foretell.domain.contracts.neg_risk import market_id, question_id
from foretell.domain.values.hexadecimal import keccak256, parse_address, parse_bytes32
from foretell.domain.values.tokens import TokenPair, condition_id, token_pair

QUESTION_FEE: Final = 2 * UNIT
EVENT: Final = b"who wins?"
BURN: Final = "0xa5ef39c3d3e10d0b270233af41cac69796b12966"


@dataclass(frozen=True)
class NegRisk:
    """The contracts and accounts of neg-risk events."""

    resolution: Resolution
    adapter: Contract
    wrapped: Contract
    operator: Contract
    requests: Contract
    exchange: Contract
    vault: str

    @property
    def world(self) -> World:
        return self.resolution.world

    @property
    def creator(self) -> str:
        return self.resolution.creator

    def market(self, fee_bips: int = 0, data: bytes = EVENT) -> bytes:
        """Return the id of the creator's market by the package's own computation."""
        operator, creator = parse_address(self.operator.address), parse_address(self.creator)
        return bytes.fromhex(market_id(operator, fee_bips, data, creator)[2:])

    def question(self, index: int, market: bytes | None = None) -> bytes:
        market = self.market() if market is None else market
        return bytes.fromhex(question_id(parse_bytes32("0x" + market.hex()), index)[2:])

    def condition(self, index: int, market: bytes | None = None) -> bytes:
        question = parse_bytes32("0x" + self.question(index, market).hex())
        return bytes.fromhex(condition_id(parse_address(self.adapter.address), question)[2:])

    def tokens(self, index: int, market: bytes | None = None) -> TokenPair:
        wrapped = parse_address(self.wrapped.address)
        return token_pair(wrapped, parse_bytes32("0x" + self.condition(index, market).hex()))

    def request(self, index: int) -> bytes:
        return keccak256(with_initializer(text_of(index), self.creator))

    def open_market(self, fee_bips: int = 0, data: bytes = EVENT) -> Receipt:
        return self.operator.send("prepareMarket", fee_bips, data, sender=self.creator)

    def ask(self, index: int) -> Receipt:
        return self.requests.send("initialize", text_of(index), ZERO, 0, 0, 0, sender=self.creator)

    def add_question(self, index: int, market: bytes | None = None) -> Receipt:
        """Ask the oracle, and add the question to the market."""
        self.ask(index)
        market = self.market() if market is None else market
        request = self.request(index)
        return self.operator.send(
            "prepareQuestion", market, b"option", request, sender=self.creator
        )

    def open_event(self, questions: int, fee_bips: int = 0) -> bytes:
        """Prepare a market with this many questions, to which more can be added; return its id."""
        self.open_market(fee_bips)
        market = self.market(fee_bips)
        for index in range(questions):
            self.add_question(index, market)
        return market

    def seal(self, market: bytes | None = None) -> Receipt:
        """Say that a market has all its questions."""
        market = self.market() if market is None else market
        return self.operator.send("sealMarket", market, sender=self.creator)

    def open_sealed_event(self, questions: int, fee_bips: int = 0) -> bytes:
        """Prepare a market with exactly this many questions, and return its id."""
        market = self.open_event(questions, fee_bips)
        self.seal(market)
        return market

    def answer(self, index: int, price: int, market: bytes | None = None) -> Receipt:
        """Answer a question finally, as the creator's proposer."""
        request = self.request(index)
        return self.resolution.oracle.send(
            "proposeAndResolveNegRisk",
            self.requests.address,
            self.operator.address,
            request,
            self.question(index, market),
            YES_OR_NO_QUERY,
            self.requests.call("questionState", request)[0],
            with_initializer(text_of(index), self.creator),
            price,
            sender=self.resolution.proposer,
        )

    def holder(self, name: str, units: int) -> str:
        """Return an account with collateral, and approvals for the adapter."""
        world = self.world
        account = world.evm.actor(name).address
        world.collateral.send("mint", account, units, sender=world.minter)
        for spender in (self.adapter.address, self.exchange.address):
            world.collateral.send("approve", spender, ALLOWANCE_MAX, sender=account)
            world.ctf.send("setApprovalForAll", spender, APPROVED, sender=account)
        return account

    def split(self, account: str, index: int, units: int, market: bytes | None = None) -> Receipt:
        return self.adapter.send(
            "splitPosition(bytes32,uint256)", self.condition(index, market), units, sender=account
        )

    def held(self, account: str, index: int, market: bytes | None = None) -> tuple[int, int]:
        """Return an account's balances of a question's Yes and No."""
        yes, no = self.tokens(index, market)
        ctf = self.world.ctf
        return ctf.call("balanceOf", account, yes), ctf.call("balanceOf", account, no)

    def collateral_of(self, account: str) -> int:
        units: int = self.world.collateral.call("balanceOf", account)
        return units

    @property
    def locked(self) -> int:
        """The collateral behind all positions."""
        return self.collateral_of(self.wrapped.address)


def text_of(index: int) -> bytes:
    """Return the text that the oracle is asked for the question with this index."""
    return b"q: title: does option %d win?" % index


def deploy_neg_risk(resolution: Resolution) -> NegRisk:
    """Deploy the neg-risk contracts with a resolution stack."""
    world, evm, admin = resolution.world, resolution.world.evm, resolution.admin
    vault = evm.actor("vault").address
    code = own_artifact("WrappedCollateral").bytecode
    adapter = evm.deploy(
        own_artifact("NegRiskAdapter"), world.collateral.address, world.ctf.address, vault, code
    )
    wrapped = evm.at(adapter.call("wcol"), own_artifact("WrappedCollateral").abi)
    operator = evm.deploy(
        own_artifact("NegRiskOperator"),
        "dro_moov2",
        adapter.address,
        resolution.markets.address,
        admin,
    )
    requests = evm.deploy(
        own_artifact("DirectResolutionAdapter"),
        *(operator.address, resolution.oracle.address, ZERO, world.collateral.address, admin),
        *(QUESTION_FEE, COMMUNITY_SHARE_BPS, resolution.community_pool, resolution.operator),
    )
    operator.send("setOracle", requests.address, sender=admin)
    resolution.oracle.send("addAdapter", requests.address, sender=admin)
    resolution.markets.send("addAdapter", operator.address, sender=admin)
    world.collateral.send("mint", resolution.creator, 300 * QUESTION_FEE, sender=world.minter)
    world.collateral.send("approve", requests.address, ALLOWANCE_MAX, sender=resolution.creator)
    exchange = deploy_exchange(world, splitter=adapter.address, tokenCollateral=wrapped.address)
    exchange.send("addOperator", world.operator, sender=world.admin)
    exchange.send("addRegistrar", world.registrar, sender=world.admin)
    return NegRisk(resolution, adapter, wrapped, operator, requests, exchange, vault)
