"""Random scenarios of questions in the optimistic stack: proposals, disputes, decisions and holds.

After every step the oracle's balance equals its debts and the open requests, to the unit. At the end
every question is answered and all money is withdrawn.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

from tests.contracts.evm import Reverted
from tests.contracts.fast_evm import FastEvm
from tests.contracts.market import deploy_world
from tests.contracts.optimistic import (
    ARBITRATION_S,
    BOND,
    DISPUTED,
    HOLD_S,
    IGNORE,
    LIVENESS_S,
    PROPOSED,
    REQUESTED,
    REWARD,
    SAFETY_S,
    Optimistic,
    deploy_optimistic,
)
from tests.contracts.resolution import PRICE_NO, PRICE_UNKNOWN, PRICE_YES, deploy_resolution

STEP_BYTES: Final = 3
QUESTIONS: Final = 2
STARTING_UNITS: Final = 1_000 * BOND
PRICES: Final = (PRICE_YES, PRICE_NO, PRICE_UNKNOWN, IGNORE)
WAITS_S: Final = (60, SAFETY_S, SAFETY_S, SAFETY_S, LIVENESS_S, ARBITRATION_S)
# Reward, bond and liveness: of the deployment, or more.
TERMS: Final = (
    (0, 0, 0),
    (REWARD, 0, 0),
    (REWARD, BOND + 1, 2 * LIVENESS_S),
    (2 * REWARD, 3 * BOND, LIVENESS_S),
)
PAYOUTS: Final = ([1, 0], [0, 1], [1, 1], [1])
ROUNDS_MAX: Final = 2
NEXT_ACTS: Final = 7


class Request(NamedTuple):
    """A request as the oracle stores it."""

    proposer: str
    disputer: str
    creator: str
    reward: int
    bond: int
    liveness: int
    proposed_price: int
    price: int
    requested_at: int
    expires_at: int
    disputed_at: int
    available_at: int
    allows_unknown: bool
    successor: bytes
    is_fallback: bool

    @property
    def locked(self) -> int:
        """The amount in the request that is not yet owed to an account."""
        if self.available_at:
            is_to_be_replaced = self.price == IGNORE and not any(self.successor)
            return self.reward if is_to_be_replaced else 0
        return self.reward + self.bond * (bool(self.expires_at) + bool(self.disputed_at))


@cache
def questions() -> tuple[Optimistic, ...]:
    """Deploy the optimistic stack once; return its questions, not asked yet."""
    optimistic = deploy_optimistic(deploy_resolution(deploy_world(FastEvm())))
    world = optimistic.world
    for account in (optimistic.proposer, optimistic.disputer):
        world.collateral.send("mint", account, STARTING_UNITS, sender=world.minter)
    return tuple(replace(optimistic, text=b"question %d" % number) for number in range(QUESTIONS))


class DisputeScenario:
    """One random scenario of all questions."""

    def __init__(self) -> None:
        self.questions = questions()
        self.asked_at: dict[tuple[int, int], None] = {}
        self.payouts: dict[int, tuple[int, int, int]] = {}
        self.seen: dict[tuple[int, int], Request] = {}
        self.due: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    @property
    def first(self) -> Optimistic:
        return self.questions[0]

    def attempt(self, action: Callable[..., object], *arguments: Any) -> bool:
        """Make a call, and return whether it succeeded."""
        try:
            action(*arguments)
        except Reverted:
            return False
        return True

    def take(self, action: int, which: int, choice: int) -> None:
        """Make one call about a question, and compare."""
        number = which % QUESTIONS
        question, price = self.questions[number], PRICES[choice % len(PRICES)]
        choices = actions(question, price, choice)
        name, perform = choices[action % len(choices)]
        if name == "settle":
            for asked_at in self.history(number)[choice % 2 : 1 + choice % 2]:
                self.done[name] += self.attempt(question.settle, asked_at)
        elif name == "withdraw":
            self.withdraw(self.accounts[choice % len(self.accounts)])
        else:
            self.done[name] += self.attempt(perform)
        self.compare()

    def withdraw(self, account: str) -> None:
        """Withdraw what an account is due, which succeeds if that is anything."""
        is_paid = self.attempt(withdraw, self.first, account)
        assert is_paid == (self.due[account] > 0)
        self.done["withdraw"] += is_paid
        self.due[account] = 0

    def history(self, number: int) -> list[int]:
        """Return the times of a question's requests, the last one first."""
        return [asked_at for asked, asked_at in self.asked_at if asked == number][::-1]

    def requests(self) -> Iterator[Request]:
        for number, asked_at in self.asked_at:
            yield self.request(number, asked_at)

    def request(self, number: int, asked_at: int) -> Request:
        question = self.questions[number]
        return Request(*question.oracle.call("getRequest", *question.request(asked_at))[:15])

    def compare(self) -> None:
        """Compare the oracle's balance with its debts, and check that no answer changes."""
        for number, question in enumerate(self.questions):
            if not question.asked_at:
                continue
            self.asked_at[number, question.asked_at] = None
            if question.payouts[2]:
                assert self.payouts.setdefault(number, question.payouts) == question.payouts
        self.pay()
        assert self.first.owed(*self.accounts) == tuple(self.due[each] for each in self.accounts)
        locked = sum(request.locked for request in self.requests())
        assert self.first.held == locked + sum(self.first.owed(*self.accounts))

    def pay(self) -> None:
        """Add what the changes of requests since the last comparison are worth to each account."""
        for key in self.asked_at:
            now = self.request(*key)
            before = self.seen.get(key)
            self.seen[key] = now
            if before is None:
                continue
            if now.available_at and not before.available_at:
                self.due.update(credit_of(before, now, self.first.treasury))
            # A request that is asked no more gives its reward back; one asked again passes it on.
            if before.reward and not now.reward and not any(now.successor):
                self.due[now.creator] += before.reward

    @property
    def accounts(self) -> tuple[str, ...]:
        first = self.first
        return first.proposer, first.disputer, first.creator, first.treasury

    def finish(self) -> None:
        """Answer, settle and withdraw everything, and check that nothing is left."""
        for number, question in enumerate(self.questions):
            self.attempt(question.ask)
            self.compare()
            for _ in range(ROUNDS_MAX):
                self.conclude(question)
                self.compare()
            assert question.payouts[2] > 0
            for asked_at in self.history(number):
                assert self.attempt(question.settle, asked_at)
            self.compare()
        for account in self.accounts:
            self.withdraw(account)
        assert self.first.held == 0

    def conclude(self, question: Optimistic) -> None:
        """Propose an answer if there is none, wait for every deadline, and resolve."""
        if question.state() == REQUESTED:
            self.attempt(question.propose, PRICE_YES)
        question.wait(ARBITRATION_S + HOLD_S)
        self.attempt(question.resolve)


def credit_of(before: Request, now: Request, treasury: str) -> Counter[str]:
    """Return what each account gets when a request is settled."""
    due: Counter[str] = Counter()
    if not now.expires_at:
        return due
    if not now.disputed_at:
        due[now.proposer] += now.bond + before.reward
    elif now.is_fallback:
        due.update({now.proposer: now.bond})
        due.update({now.disputer: now.bond})
        due.update({now.creator: before.reward})
    elif now.price == IGNORE:
        due.update({now.proposer: now.bond})
        due.update({now.disputer: now.bond})
    else:
        winner = now.proposer if now.price == now.proposed_price else now.disputer
        due[winner] += now.bond + now.bond // 2 + before.reward
        due[treasury] += now.bond - now.bond // 2
    return due


def actions(
    question: Optimistic, price: int, choice: int
) -> tuple[tuple[str, Callable[[], object]], ...]:
    """Return the possible calls about a question."""

    def as_admin(name: str, *more: object) -> Callable[[], object]:
        return lambda: question.adapter.send(name, question.question, *more, sender=question.admin)

    accounts = (question.proposer, question.disputer, question.creator, question.treasury)
    next_acts = {
        0: ("ask", lambda: question.ask(*TERMS[choice % len(TERMS)])),
        REQUESTED: ("propose", lambda: question.propose(price)),
        PROPOSED: ("dispute", question.dispute),
        DISPUTED: ("decide", lambda: question.decide(price)),
    }
    waiting = ("wait", lambda: question.wait(WAITS_S[choice % len(WAITS_S)]))
    names = ("flag", "flag", "unflag", "pause", "unpause")
    return (
        *(next_acts.get(question.state(), waiting),) * NEXT_ACTS,
        *(waiting,) * 2,
        ("resolve", question.resolve),
        ("settle", question.settle),
        *(("manual", as_admin("resolveManually", PAYOUTS[choice % len(PAYOUTS)])),) * 2,
        ("withdraw", lambda: withdraw(question, accounts[choice % len(accounts)])),
        *((name, as_admin(name)) for name in names),
    )


def withdraw(question: Optimistic, account: str) -> None:
    question.oracle.send("withdraw", sender=account)


def run_disputes(script: bytes) -> Counter[str]:
    """Run a script, conclude every question, and count the calls."""
    scenario = DisputeScenario()
    with scenario.first.world.evm.rolled_back():
        for start in range(0, len(script) - STEP_BYTES + 1, STEP_BYTES):
            scenario.take(*script[start : start + STEP_BYTES])
        scenario.finish()
    return scenario.done
