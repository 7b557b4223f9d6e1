"""Random scenarios of questions in the optimistic stack: proposals, disputes, decisions and holds.

An act succeeds exactly when the expected question says so. After every step each request, each account's
due amount and the oracle's balance are the expected ones, to the unit. At the end every question is
answered and all money is withdrawn.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Final, NamedTuple

from tests.contracts.evm import Actor, Reverted
from tests.contracts.fast_evm import FastEvm
from tests.contracts.market import ALLOWANCE_MAX, deploy_world
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
from tests.contracts.scenarios.expected_requests import (
    MANUAL_PAYOUTS,
    ExpectedOracle,
    ExpectedQuestion,
    Terms,
)
from tests.contracts.signing import ZERO

STEP_BYTES: Final = 3
QUESTIONS: Final = 2
PEOPLE: Final = 3
STARTING_UNITS: Final = 1_000 * BOND
PRICES: Final = (PRICE_YES, PRICE_NO, PRICE_UNKNOWN, IGNORE)
WAITS_S: Final = (60, SAFETY_S, SAFETY_S, SAFETY_S, LIVENESS_S, ARBITRATION_S)
# Of the deployment, or more.
TERMS: Final = (
    Terms(0, 0, 0),
    Terms(REWARD, 0, 0),
    Terms(REWARD, BOND + 1, 2 * LIVENESS_S),
    Terms(2 * REWARD, 3 * BOND, LIVENESS_S),
)
# An answer of one share is refused.
PAYOUTS: Final = (*MANUAL_PAYOUTS, [1])
ROUNDS_MAX: Final = 2
# Another account than the one with the role makes one call of so many.
STRANGER_EVERY: Final = 8


class DisputeRig(NamedTuple):
    """The questions, not asked yet, and the accounts that may have the roles."""

    questions: tuple[Optimistic, ...]
    people: tuple[str, ...]
    arbiters: tuple[str, str]
    treasuries: tuple[str, str]
    admins: tuple[str, str]

    @property
    def first(self) -> Optimistic:
        return self.questions[0]

    @property
    def evm(self) -> FastEvm:
        evm = self.first.world.evm
        assert isinstance(evm, FastEvm)
        return evm


@cache
def dispute_rig() -> DisputeRig:
    """Deploy the optimistic stack once."""
    optimistic = deploy_optimistic(deploy_resolution(deploy_world(FastEvm())))
    world = optimistic.world

    def another(role: str) -> str:
        actor: Actor = world.evm.actor(f"another {role}")
        return actor.address

    people = (optimistic.proposer, optimistic.disputer, another("proposer"))
    for account in people:
        world.collateral.send("mint", account, STARTING_UNITS, sender=world.minter)
        world.collateral.send("approve", optimistic.oracle.address, ALLOWANCE_MAX, sender=account)
    return DisputeRig(
        tuple(replace(optimistic, text=b"question %d" % number) for number in range(QUESTIONS)),
        people,
        (optimistic.arbiter, another("arbiter")),
        (optimistic.treasury, another("treasury")),
        (optimistic.admin, another("admin")),
    )


class DisputeScenario:
    """One random scenario of all questions."""

    def __init__(self) -> None:
        self.rig = dispute_rig()
        first = self.rig.first
        self.oracle = ExpectedOracle(first.admin, first.arbiter, first.treasury)
        self.expected = [
            ExpectedQuestion(self.oracle, first.adapter.address, each.signed_text, each.creator)
            for each in self.rig.questions
        ]
        self.done: Counter[str] = Counter()

    @property
    def now(self) -> int:
        return self.rig.evm.now()

    @property
    def accounts(self) -> tuple[str, ...]:
        return (*self.rig.people, self.rig.first.creator, *self.rig.treasuries)

    def check(self, name: str, call: Callable[[], object], *, must_succeed: bool) -> None:
        """Make a call, which succeeds exactly when it must."""
        is_done, refusal = True, ""
        try:
            call()
        except Reverted as refused:
            is_done, refusal = False, refused.name
        assert is_done == must_succeed, (name, refusal)
        self.done[name] += is_done

    def compare(self) -> None:
        """Compare every question, request, debt and the balance with the expected ones."""
        for question, expected in zip(self.rig.questions, self.expected, strict=True):
            payout = expected.payout or (0, 0)
            if expected.requests:
                assert question.payouts == (*payout, sum(payout))
                assert question.asked_at == expected.asked.asked_at
            for request in expected.requests:
                on_chain = question.oracle.call("getRequest", *question.request(request.asked_at))
                assert on_chain == request.fields()
        owed = self.rig.first.owed(*self.accounts)
        assert owed == tuple(self.oracle.due[each] for each in self.accounts)
        assert self.rig.first.held == self.oracle.held

    def take(self, action: int, which: int, choice: int) -> None:
        """Make one call about a question, and compare."""
        number, who = which % QUESTIONS, self.rig.people[which // QUESTIONS % PEOPLE]
        next_act = NEXT_ACTS.get(self.expected[number].state(self.now), wait)
        acts = (*(next_act,) * NEXT_ACT_WEIGHT, *ACTS)
        acts[action % len(acts)](self, number, who, choice)
        self.compare()

    def finish(self) -> None:
        """Answer, settle and withdraw everything, and check that nothing is left."""
        if not self.oracle.has_adapter:
            change_adapter(self, 0, "", 0)
        for number, expected in enumerate(self.expected):
            ask(self, number, "", 0)
            for _ in range(ROUNDS_MAX):
                if expected.state(self.now) == REQUESTED:
                    propose(self, number, self.rig.people[0], 0)
                self.rig.first.wait(ARBITRATION_S + HOLD_S)
                resolve(self, number, self.rig.people[0], 0)
                self.compare()
            assert expected.payout
            # The last ones first: they decide the others.
            for place in range(len(expected.requests)):
                settle(self, number, "", place)
                assert expected.requests[-1 - place].available_at
            self.compare()
        for place in range(len(self.accounts)):
            withdraw(self, 0, "", place)
        assert self.rig.first.held == self.oracle.held == 0


def ask(scenario: DisputeScenario, number: int, _: str, choice: int) -> None:
    question, (reward, bond, liveness) = scenario.rig.questions[number], TERMS[choice % len(TERMS)]
    terms = Terms(reward, bond or BOND, liveness or LIVENESS_S)
    must_succeed = scenario.expected[number].ask(terms, scenario.now)
    scenario.check("ask", lambda: question.ask(reward, bond, liveness), must_succeed=must_succeed)


def propose(scenario: DisputeScenario, number: int, who: str, choice: int) -> None:
    question = replace(scenario.rig.questions[number], proposer=who)
    price = PRICES[choice % len(PRICES)]
    must_succeed = scenario.expected[number].propose(who, price, scenario.now)
    scenario.check("propose", lambda: question.propose(price), must_succeed=must_succeed)


def dispute(scenario: DisputeScenario, number: int, who: str, _: int) -> None:
    question = replace(scenario.rig.questions[number], disputer=who)
    must_succeed = scenario.expected[number].dispute(who, scenario.now)
    scenario.check("dispute", question.dispute, must_succeed=must_succeed)


def decide(scenario: DisputeScenario, number: int, who: str, choice: int) -> None:
    """Decide, mostly as the arbiter; another account, or one that was the arbiter, is refused."""
    price = PRICES[choice % len(PRICES)]
    if choice // len(PRICES) % STRANGER_EVERY:
        who = scenario.oracle.arbiter
    question = replace(scenario.rig.questions[number], arbiter=who)
    must_succeed = scenario.expected[number].decide(who, price, scenario.now)
    scenario.check("decide", lambda: question.decide(price), must_succeed=must_succeed)


def settle(scenario: DisputeScenario, number: int, _: str, choice: int) -> None:
    """Settle one of the question's last requests."""
    question, expected = scenario.rig.questions[number], scenario.expected[number]
    if choice >= len(expected.requests):
        choice %= 2
    for request in expected.requests[::-1][choice : choice + 1]:
        call = partial(question.settle, request.asked_at)
        must_succeed = expected.settle(request, scenario.now)
        scenario.check("settle", call, must_succeed=must_succeed)
        scenario.done["fall-back"] += request.is_fallback
        scenario.done["fall-back of a predecessor"] += (
            request.is_fallback and request.successor is not None
        )
        scenario.done["released"] += request.is_released


def resolve(scenario: DisputeScenario, number: int, who: str, _: int) -> None:
    question = replace(scenario.rig.questions[number], disputer=who)
    must_succeed = scenario.expected[number].resolve(scenario.now)
    scenario.check("resolve", question.resolve, must_succeed=must_succeed)


def answer_manually(scenario: DisputeScenario, number: int, _: str, choice: int) -> None:
    question, payout = scenario.rig.questions[number], PAYOUTS[choice % len(PAYOUTS)]
    must_succeed = scenario.expected[number].resolve_manually(payout, scenario.now)
    by_admin = hold_call(question, "resolveManually", payout)
    scenario.check("manual", by_admin, must_succeed=must_succeed)


def hold(scenario: DisputeScenario, number: int, _: str, choice: int) -> None:
    act = HOLDS[choice % len(HOLDS)]
    must_succeed = scenario.expected[number].hold(act, scenario.now)
    by_admin = hold_call(scenario.rig.questions[number], act)
    scenario.check(act, by_admin, must_succeed=must_succeed)


def hold_call(question: Optimistic, name: str, *more: object) -> Callable[[], object]:
    """Return a call of the adapter's admin about a question."""
    return lambda: question.adapter.send(name, question.question, *more, sender=question.admin)


def withdraw(scenario: DisputeScenario, _: int, __: str, choice: int) -> None:
    account = scenario.accounts[choice % len(scenario.accounts)]
    oracle = scenario.rig.first.oracle
    must_succeed = scenario.oracle.withdraw(account)
    scenario.check(
        "withdraw", lambda: oracle.send("withdraw", sender=account), must_succeed=must_succeed
    )


def wait(scenario: DisputeScenario, _: int, __: str, choice: int) -> None:
    scenario.rig.first.wait(WAITS_S[choice % len(WAITS_S)])


def appoint(scenario: DisputeScenario, _: int, who: str, choice: int) -> None:
    """Name another arbiter or treasury, as the oracle's admin; another account is refused."""
    rig, oracle = scenario.rig, scenario.oracle
    account = (*rig.arbiters, *rig.treasuries)[choice % 4]
    name = "setArbiter" if account in rig.arbiters else "setTreasury"
    is_admin = choice // 4 % STRANGER_EVERY > 0
    by_account(scenario, name, account, sender=oracle.admin if is_admin else who)
    if is_admin and name == "setArbiter":
        oracle.arbiter = account
    elif is_admin:
        oracle.treasury = account


def change_adapter(scenario: DisputeScenario, _: int, who: str, choice: int) -> None:
    """Remove the adapter, which then asks no question that is new, or add it again."""
    oracle = scenario.oracle
    is_admin = choice % STRANGER_EVERY != 1
    name = "removeAdapter" if oracle.has_adapter else "addAdapter"
    adapter = scenario.rig.first.adapter.address
    by_account(scenario, name, adapter, sender=oracle.admin if is_admin else who)
    if is_admin:
        oracle.has_adapter = not oracle.has_adapter


def change_admin(scenario: DisputeScenario, _: int, who: str, choice: int) -> None:
    """Offer the oracle's admin role, take the offer back, or accept it, which nobody else may."""
    oracle, offered = scenario.oracle, (*scenario.rig.admins, ZERO)[choice % 3]
    send = scenario.rig.first.oracle.send
    if choice // 3 % 2:
        by_account(scenario, "transferAdmin", offered, sender=oracle.admin)
        oracle.pending_admin = offered
        return
    taker = who if choice // 6 % STRANGER_EVERY == 0 else scenario.rig.admins[choice % 2]
    must_succeed = taker == oracle.pending_admin
    scenario.check(
        "acceptAdmin", lambda: send("acceptAdmin", sender=taker), must_succeed=must_succeed
    )
    if must_succeed:
        oracle.admin, oracle.pending_admin = taker, ZERO


def by_account(scenario: DisputeScenario, name: str, account: str, *, sender: str) -> None:
    """Make a call that the oracle's admin alone may make."""
    send = scenario.rig.first.oracle.send
    must_succeed = sender == scenario.oracle.admin
    scenario.check(name, lambda: send(name, account, sender=sender), must_succeed=must_succeed)


Act = Callable[[DisputeScenario, int, str, int], None]
HOLDS: Final = ("flag", "flag", "flag", "unflag", "pause", "unpause")
NEXT_ACTS: Final[dict[int, Act]] = {0: ask, REQUESTED: propose, PROPOSED: dispute, DISPUTED: decide}
NEXT_ACT_WEIGHT: Final = 9
ACTS: Final[tuple[Act, ...]] = (
    *(wait, wait, resolve, settle, settle, withdraw),
    *((answer_manually,) * 6),
    *((hold,) * 7),
    *(appoint, appoint, change_adapter, change_admin, ask, dispute),
)


def run_disputes(script: bytes) -> Counter[str]:
    """Run a script, conclude every question, and count the calls."""
    scenario = DisputeScenario()
    with scenario.rig.evm.rolled_back():
        for start in range(0, len(script) - STEP_BYTES + 1, STEP_BYTES):
            scenario.take(*script[start : start + STEP_BYTES])
        scenario.finish()
    return scenario.done
