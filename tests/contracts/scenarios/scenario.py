"""One random scenario: its accounts, their orders, and the invariants after every step.

A script has eight bytes for each step: the action, the account, three choices and the amount.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.contracts.evm import Contract, Reverted
from tests.contracts.scenarios.expected import (
    COLLATERAL,
    QUESTIONS,
    ExpectedAdmin,
    ExpectedBalances,
    ExpectedFees,
    ExpectedOrder,
    Key,
)
from tests.contracts.scenarios.expected_reports import ExpectedReports
from tests.contracts.scenarios.rig import TradedPair, scenario_rig
from tests.contracts.signing import Order

STEP_BYTES: Final = 8
# Most steps are in a few markets, so that orders cross.
PAIR_WEIGHTS: Final = (0, 0, 0, 1, 1, 1, 2, 3)
# At one step of so many the pair to trade may have its answer.
ANSWERED_EVERY: Final = 16


class Step(NamedTuple):
    """One step: the action, the account, three choices and an amount."""

    action: int
    actor: int
    first: int
    second: int
    third: int
    amount: int


class Scenario:
    """One random scenario."""

    def __init__(self) -> None:
        self.rig = scenario_rig()
        self.expected = ExpectedBalances()
        self.orders: dict[tuple[str, str], list[tuple[Order, ExpectedOrder]]] = {}
        self.nonces: Counter[Key] = Counter()
        self.ended_before: Counter[Key] = Counter()
        self.silenced: set[tuple[str, str]] = set()
        self.paused: set[str] = set()
        self.without_operator: set[str] = set()
        self.without_registrar: set[str] = set()
        self.admins = {each.address: ExpectedAdmin(self.rig.world.admin) for each in self.exchanges}
        self.fees = {
            each.address: ExpectedFees(self.rig.fee_receivers[0]) for each in self.exchanges
        }
        self.owed: Counter[tuple[str, str, int]] = Counter()
        self.salt = 0
        self.done: Counter[str] = Counter()
        traders = (actor.address for actor in self.rig.traders)
        self.honest = [*traders, *self.rig.safes]
        self.accounts = [*self.honest, *self.rig.wallets]
        self.reports = ExpectedReports()
        self.refusal = ""
        self.attempts = [each.attempts(self.rig.evm) for each in self.rig.reentering]
        tokens = [token for traded in self.pairs for token in traded.pair]
        places = (self.rig.market.lock, self.rig.questions[0].lock)
        for who in (*self.accounts, *self.paid, *places):
            self.expected.units[who, COLLATERAL] = self.on_chain(who, COLLATERAL)
        for who in self.accounts:
            for token in tokens:
                self.expected.units[who, token] = self.on_chain(who, token)
        self.load_owed()
        # The collateral behind the sets of accounts outside the scenario, and of another event.
        self.market_base = self.base_of(self.plain_pairs)
        self.event_base = self.base_of(self.rig.questions)

    def base_of(self, pairs: tuple[TradedPair, ...]) -> int:
        """Return the locked collateral that is not behind the sets of the scenario's accounts."""
        held = sum(self.expected.held(traded.pair[0]) for traded in pairs)
        return self.expected.units[pairs[0].lock, COLLATERAL] - held

    def load_owed(self) -> None:
        """Load the tokens that the exchanges keep for the wallets that re-enter them."""
        for wallet, exchange, _ in self.rig.reentering:
            for traded in self.pairs if exchange in self.exchanges else ():
                token = traded.pair[0]
                if traded.exchange is exchange and (owed := self.owed_to(wallet, traded)):
                    self.owed[exchange.address, wallet, token] = owed
                    self.expected.units[exchange.address, token] = owed

    def owed_to(self, wallet: str, traded: TradedPair) -> int:
        owed: int = traded.exchange.call("owedTokens", wallet, traded.pair[0])
        return owed

    @property
    def answered(self) -> dict[int, bool]:
        """The answers of the sealed event's questions."""
        return self.reports.answered

    def admin_of(self, exchange: Contract) -> str:
        return self.admins[exchange.address].now

    @property
    def pairs(self) -> tuple[TradedPair, ...]:
        return (self.rig.market, *self.rig.questions)

    @property
    def plain_pairs(self) -> tuple[TradedPair, ...]:
        """The pairs outside events, whose collateral lies in the conditional tokens."""
        return (self.rig.market,)

    @property
    def exchanges(self) -> tuple[Contract, Contract]:
        return self.rig.world.exchange, self.rig.neg_risk.exchange

    @property
    def paid(self) -> tuple[str, ...]:
        """The accounts that get fees."""
        return (*self.rig.fee_receivers, self.rig.neg_risk.vault)

    @property
    def refusing(self) -> tuple[str, ...]:
        """The wallets that take no tokens now; one of them changes its mind every second."""
        refusing = self.rig.refusing
        return (*refusing, self.rig.fickle) if self.rig.evm.now() % 2 else refusing

    def account(self, number: int) -> str:
        return self.accounts[number % len(self.accounts)]

    def trader(self, number: int) -> str:
        return self.honest[number % len(self.honest)]

    def traded(self, number: int) -> TradedPair:
        return self.pairs[PAIR_WEIGHTS[number % len(PAIR_WEIGHTS)]]

    def tradable(self, number: int) -> TradedPair:
        """Return a pair to trade, usually one without an answer."""
        traded = self.traded(number)
        if number % ANSWERED_EVERY == 0 or not self.is_answered(traded):
            return traded
        still_open = [each for each in self.pairs if not self.is_answered(each)]
        return still_open[number % len(still_open)] if still_open else traded

    def is_answered(self, traded: TradedPair) -> bool:
        return traded.pair[0] in self.expected.payout_by_token

    def attempt(self, who: str, contract: Contract, name: str, *arguments: object) -> bool:
        """Send a transaction, and return whether it succeeded."""
        try:
            contract.send(name, *arguments, sender=who)
        except Reverted as refused:
            self.refusal = refused.name
            return False
        return True

    def compare(self, keys: set[Key]) -> None:
        """Compare expected balances with the chain."""
        for who, asset in keys:
            assert self.on_chain(who, asset) == self.expected.units[who, asset], (who, asset)

    def on_chain(self, who: str, asset: int) -> int:
        world = self.rig.world
        if asset == COLLATERAL:
            units: int = world.collateral.call("balanceOf", who)
        else:
            units = world.ctf.call("balanceOf", who, asset)
        return units

    def check_covered(self) -> None:
        """Check that the locked collateral covers every possible payout."""
        market, questions = self.rig.market, self.rig.questions
        if not self.is_answered(market):
            assert self.expected.held(market.pair[0]) == self.expected.held(market.pair[1])
        locked = self.expected.units[market.lock, COLLATERAL] - self.market_base
        payouts = [self.payout_of(market)]
        assert locked >= self.expected.owed([market.pair], payouts)
        pairs = [traded.pair for traded in questions]
        held = self.expected.units[questions[0].lock, COLLATERAL] - self.event_base
        for outcomes in self.outcomes():
            assert held >= self.expected.owed(pairs, outcomes)

    def check_locked(self) -> None:
        """Check that no call has succeeded in the middle of another one."""
        for each in self.rig.reentering:
            assert each.successes(self.rig.evm) == []

    def count_attempts(self) -> None:
        """Count the calls in the middle of another one since the scenario began."""
        for each, before in zip(self.rig.reentering, self.attempts, strict=True):
            attempts = each.attempts(self.rig.evm) - before
            is_adapter = each.contract is self.rig.neg_risk.adapter
            self.done["re-entered adapter" if is_adapter else "re-entered exchange"] += attempts

    def payout_of(self, traded: TradedPair) -> tuple[int, int]:
        """Return the payout of a pair; one half each before it is resolved."""
        first, second = (self.expected.payout_by_token.get(token, (1, 2)) for token in traded.pair)
        return first[0], second[0]

    def outcomes(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the possible payouts of the questions: at most one Yes, and the given answers."""
        for winner in (None, *range(QUESTIONS)):
            answers = {index: index == winner for index in range(QUESTIONS)}
            if all(answers[index] == said for index, said in self.answered.items()):
                yield [(1, 0) if answers[index] else (0, 1) for index in range(QUESTIONS)]


def steps_of(script: bytes) -> Iterator[Step]:
    for start in range(0, len(script) - STEP_BYTES + 1, STEP_BYTES):
        action, actor, first, second, third, low, high, _ = script[start : start + STEP_BYTES]
        yield Step(action, actor, first, second, third, low + 256 * high)
