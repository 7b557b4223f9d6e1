"""Batches of matches on the test chain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.contracts.evm import Contract, Receipt, own_artifact
from tests.contracts.market import Fill, World, match_args
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.signing import Order

MATCH_GAS: Final = 800_000
MATCH_FAILED: Final = "MatchFailed(address,uint256,bytes)"


@dataclass(frozen=True, slots=True)
class Match:
    """A taker order, maker orders and their amounts."""

    taker: Order
    makers: Sequence[Order]
    fill: Fill


@dataclass(frozen=True)
class Batches:
    """The batch settler, an operator of both exchanges."""

    settler: Contract
    world: World

    def calldata(self, match: Match) -> bytes:
        """Return the calldata of a match."""
        args = match_args(match.taker, list(match.makers), match.fill)
        return self.world.exchange.calldata("matchOrders", *args)

    def arguments(self, matches: Sequence[Match], gas: int = MATCH_GAS) -> tuple[Any, ...]:
        """Return the arguments of a batch."""
        calls = [self.calldata(match) for match in matches]
        return self.world.exchange.address, calls, [gas] * len(calls)

    def settle(self, matches: Sequence[Match], gas: int = MATCH_GAS) -> Receipt:
        """Settle matches in one transaction of the operator."""
        operator = self.world.operator
        return self.settler.send("settle", *self.arguments(matches, gas), sender=operator)

    def failed(self, receipt: Receipt) -> dict[int, bytes]:
        """Return the reason of each match that failed, by its place."""
        logs = self.settler.logs(receipt, MATCH_FAILED)
        assert {log["exchange"] for log in logs} <= {self.world.exchange.address.lower()}
        return {log["index"]: log["reason"] for log in logs}


def deploy_batches(neg_risk: NegRisk) -> Batches:
    """Deploy the batch settler, and make it an operator of both exchanges."""
    world = neg_risk.world
    exchanges = (world.exchange, neg_risk.exchange)
    settler = world.evm.deploy(
        own_artifact("BatchSettler"), *(exchange.address for exchange in exchanges)
    )
    for exchange in exchanges:
        exchange.send("addOperator", settler.address, sender=world.admin)
    return Batches(settler, world)
