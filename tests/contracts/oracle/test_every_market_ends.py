"""M-03: every market ends, whichever of its helpers is gone, by calls that any account may make.

The helpers are gone in the worst way: the proposers' list is empty, the oracle has lost the adapter, the
admin holds the question up and withdraws the flags of others whenever it may, the arbiter gets a dispute
and is silent.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import pytest
from tests.contracts.evm import Contract, Reverted
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.optimistic import (
    ARBITRATION_S,
    HOLD_S,
    LIVENESS_S,
    Optimistic,
    deploy_optimistic_event,
)
from tests.contracts.resolution import PRICE_YES
from typing_extensions import override

END_S: Final = 2 * 365 * 24 * 3_600
FALLBACK_S: Final = 30 * 24 * 3_600
DAY_S: Final = 24 * 3_600
FLAGS_MAX: Final = 100
HELPERS: Final = ("proposers", "arbiter", "adapter", "admin")
GONE: Final = [(), *((helper,) for helper in HELPERS), HELPERS]


class Market:
    """A market of one stack; `nobody` is an account without any role, who ends it."""

    def __init__(self, neg_risk: NegRisk, optimistic: Optimistic) -> None:
        self.neg_risk, self.optimistic = neg_risk, optimistic
        self.resolution = neg_risk.resolution
        self.nobody = neg_risk.world.evm.actor("nobody").address
        self.admin = self.resolution.admin

    def open(self) -> None:
        raise NotImplementedError

    def lose(self, helper: str) -> None:
        """Take a helper away; nothing happens where the stack has no such helper."""
        getattr(self, f"lose_{helper}", lambda: None)()

    def end(self) -> None:
        raise NotImplementedError

    @property
    def condition(self) -> bytes:
        raise NotImplementedError

    def wait(self, seconds: int) -> None:
        self.neg_risk.world.evm.rpc("evm_increaseTime", seconds)


class DirectMarket(Market):
    """A market of one question, answered by its creator's proposers."""

    withdraws_flags = False

    @override
    def open(self) -> None:
        self.resolution.ask()

    @property
    def adapter(self) -> Contract:
        return self.resolution.adapter

    @property
    def question(self) -> bytes:
        return self.resolution.question_id()

    @property
    @override
    def condition(self) -> bytes:
        return self.resolution.condition_id()

    def lose_proposers(self) -> None:
        resolution = self.resolution
        resolution.whitelist.send(
            "removeProposers", [resolution.proposer], sender=resolution.creator
        )

    def lose_adapter(self) -> None:
        self.resolution.oracle.send("removeAdapter", self.adapter.address, sender=self.admin)

    def lose_admin(self) -> None:
        self.withdraws_flags = True

    @override
    def end(self) -> None:
        self.wait(END_S)
        self.adapter.send("flag", self.question, sender=self.nobody)
        if self.withdraws_flags:
            self._withdraw_flags()
        self.wait(FALLBACK_S)
        self.adapter.send("resolveByFallback", self.question, sender=self.nobody)

    def _withdraw_flags(self) -> None:
        for _ in range(FLAGS_MAX):
            if not self._is_withdrawn():
                return
            self.adapter.send("flag", self.question, sender=self.nobody)
        raise AssertionError("the admin withdraws every flag, for ever")

    def _is_withdrawn(self) -> bool:
        """Let the admin withdraw the flag a day before the fall-back; return whether it still may."""
        self.wait(FALLBACK_S - DAY_S)
        try:
            self.adapter.send("unflag", self.question, sender=self.admin)
        except Reverted as refusal:
            return refusal.name != "UnflagPeriodOver"
        return True


class DirectEvent(DirectMarket):
    """A question of an event, answered by its creator's proposers."""

    @override
    def open(self) -> None:
        self.neg_risk.open_event(2)

    @property
    @override
    def adapter(self) -> Contract:
        return self.neg_risk.requests

    @property
    @override
    def question(self) -> bytes:
        return self.neg_risk.request(0)

    @property
    @override
    def condition(self) -> bytes:
        return self.neg_risk.condition(0)

    @override
    def lose_admin(self) -> None:
        super().lose_admin()
        self.neg_risk.operator.send("flagQuestion", self.neg_risk.question(0), sender=self.admin)

    @override
    def end(self) -> None:
        super().end()
        self.wait(HOLD_S)
        question = self.neg_risk.question(0)
        self.neg_risk.operator.send("resolveQuestion", question, sender=self.nobody)


class OptimisticMarket(Market):
    """A market of one question, answered by any account that stakes a bond."""

    @override
    def open(self) -> None:
        world = self.neg_risk.world
        world.collateral.send("transfer", self.nobody, self.bond, sender=self.optimistic.disputer)
        world.collateral.send(
            "approve", self.optimistic.oracle.address, self.bond, sender=self.nobody
        )
        self.optimistic.ask()

    @property
    def bond(self) -> int:
        bond: int = self.optimistic.adapter.call("defaultBond")
        return bond

    @property
    @override
    def condition(self) -> bytes:
        return self.optimistic.condition

    def lose_arbiter(self) -> None:
        for _ in range(2):
            self.optimistic.propose(PRICE_YES)
            self.optimistic.dispute()

    def lose_adapter(self) -> None:
        optimistic = self.optimistic
        optimistic.oracle.send("removeAdapter", optimistic.adapter.address, sender=self.admin)

    def lose_admin(self) -> None:
        self.optimistic.adapter.send("flag", self.optimistic.question, sender=self.admin)

    @override
    def end(self) -> None:
        self._propose()
        self.wait(max(LIVENESS_S, ARBITRATION_S) + HOLD_S)
        self.optimistic.adapter.send("resolve", self.optimistic.question, sender=self.nobody)

    def _propose(self) -> None:
        """Propose an answer, unless the arbiter has a dispute to decide."""
        requested = 1
        if self.optimistic.state() == requested:
            self.optimistic.oracle.send(
                "proposePrice", *self.optimistic.request(), PRICE_YES, sender=self.nobody
            )


class OptimisticEvent(OptimisticMarket):
    """A question of an event, answered by any account that stakes a bond."""

    @override
    def __init__(self, neg_risk: NegRisk, optimistic: Optimistic) -> None:
        asked, self.operator = deploy_optimistic_event(neg_risk, optimistic)
        super().__init__(neg_risk, replace(asked, text=b"does the first one win?"))

    @override
    def open(self) -> None:
        super().open()
        creator = self.optimistic.creator
        market = self.operator.call("prepareMarket", 0, b"event", sender=creator)
        self.operator.send("prepareMarket", 0, b"event", sender=creator)
        arguments = market, b"first", self.optimistic.question
        self.operator.send("prepareQuestion", *arguments, sender=creator)

    @property
    def question(self) -> bytes:
        question: bytes = self.operator.call("questionIds", self.optimistic.question)
        return question

    @property
    @override
    def condition(self) -> bytes:
        condition: bytes = self.neg_risk.adapter.call("getConditionId", self.question)
        return condition

    @override
    def lose_admin(self) -> None:
        super().lose_admin()
        self.operator.send("flagQuestion", self.question, sender=self.admin)

    @override
    def end(self) -> None:
        super().end()
        self.wait(HOLD_S)
        self.operator.send("resolveQuestion", self.question, sender=self.nobody)


@pytest.mark.parametrize("gone", GONE, ids=lambda gone: "+".join(gone) or "nobody")
@pytest.mark.parametrize("stack", [DirectMarket, DirectEvent, OptimisticMarket, OptimisticEvent])
def test_m_03_every_market_ends_whichever_helper_is_gone(
    neg_risk: NegRisk, optimistic: Optimistic, stack: type[Market], gone: Collection[str]
) -> None:
    market = stack(neg_risk, optimistic)
    market.open()
    for helper in gone:
        market.lose(helper)
    denominator = "payoutDenominator", market.condition
    assert neg_risk.world.ctf.call(*denominator) == 0
    market.end()
    assert neg_risk.world.ctf.call(*denominator) > 0
