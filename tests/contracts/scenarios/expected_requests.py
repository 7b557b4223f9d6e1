"""The expected life of optimistic questions, by slow and obvious rules instead of the contracts.

Every act returns whether it must succeed; a successful one changes what each account is due. Nothing here
reads a contract.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from eth_abi.abi import encode
from tests.contracts.optimistic import (
    ANSWER_S,
    ARBITRATION_S,
    DISPUTED,
    EXPIRED,
    HOLD_S,
    IGNORE,
    PROPOSED,
    RELEASE_S,
    REQUESTED,
    SAFETY_S,
    SETTLED,
)
from tests.contracts.resolution import PRICE_NO, PRICE_UNKNOWN, PRICE_YES, YES_OR_NO_QUERY
from tests.contracts.signing import ZERO, ZERO_WORD

from foretell.domain.values.hexadecimal import keccak256

PAYOUT_BY_PRICE: Final = {PRICE_YES: (1, 0), PRICE_NO: (0, 1), PRICE_UNKNOWN: (1, 1)}
MANUAL_PAYOUTS: Final = ([1, 0], [0, 1], [1, 1])


class Terms(NamedTuple):
    """The reward, bond and liveness of a question."""

    reward: int
    bond: int
    liveness: int


class Answer(NamedTuple):
    """A price, and the second from which it stood."""

    price: int
    since: int


@dataclass
class ExpectedOracle:
    """The accounts that the oracle's admin has named, its debts, and what it holds."""

    admin: str
    arbiter: str
    treasury: str
    pending_admin: str = ZERO
    has_adapter: bool = True
    held: int = 0
    due: Counter[str] = field(default_factory=Counter)

    def withdraw(self, who: str) -> bool:
        amount = self.due.pop(who, 0)
        self.held -= amount
        return amount > 0


@dataclass
class ExpectedRequest:
    """A request with what has happened to it."""

    key: bytes
    asked_at: int
    requested_at: int
    creator: str
    terms: Terms
    reward: int
    proposer: str = ZERO
    disputer: str = ZERO
    proposed_price: int = 0
    price: int = 0
    expires_at: int = 0
    disputed_at: int = 0
    available_at: int = 0
    successor: "ExpectedRequest | None" = None
    is_decided: bool = False
    is_released: bool = False
    is_abandoned: bool = False

    def state(self, now: int) -> int:
        if self.available_at:
            return SETTLED
        if self.disputed_at:
            return DISPUTED
        if not self.expires_at:
            return REQUESTED
        return PROPOSED if now < self.expires_at else EXPIRED

    @property
    def is_fallback(self) -> bool:
        """Whether the arbiter's silence gave the price, of this request or of the one in its place."""
        if not self.available_at or not self.disputed_at or self.is_decided or self.is_released:
            return False
        return self.successor is None or self.successor.is_fallback

    @property
    def is_too_early(self) -> bool:
        return self.available_at > 0 and self.price == IGNORE and self.successor is None

    def answer(self, now: int) -> Answer | None:
        """Return the price that the request has, or will have when it is settled."""
        state = self.state(now)
        if state == DISPUTED:
            return self.decision(now)
        answers = {
            SETTLED: Answer(self.price, self.available_at),
            EXPIRED: Answer(self.proposed_price, self.expires_at),
        }
        return answers.get(state)

    def decision(self, now: int) -> Answer | None:
        """Return the price of a dispute that the arbiter has not decided."""
        over_at = self.disputed_at + (RELEASE_S if self.successor else ARBITRATION_S)
        if self.successor is None:
            return Answer(PRICE_UNKNOWN, over_at) if now >= over_at else None
        if self.successor.available_at:
            return Answer(self.successor.price, now)
        return Answer(IGNORE, over_at) if self.must_release(now) else None

    def must_release(self, now: int) -> bool:
        """Return whether nobody has proposed again for a week after the dispute."""
        next_ = self.successor
        is_open = next_ is not None and next_.state(now) == REQUESTED
        return is_open and now >= self.disputed_at + RELEASE_S

    def close(self, answer: Answer) -> None:
        self.price, self.available_at = answer

    def fields(self) -> tuple[object, ...]:
        """Return what the oracle says of the request."""
        return (
            *(self.proposer, self.disputer, self.creator),
            *(self.reward, self.terms.bond, self.terms.liveness),
            *(self.proposed_price, self.price, self.requested_at),
            *(self.expires_at, self.disputed_at, self.available_at),
            True,
            ZERO_WORD if self.successor is None else self.successor.key,
            self.is_fallback,
        )


@dataclass
class ExpectedQuestion:
    """A question with its requests, the last of which is asked now."""

    oracle: ExpectedOracle
    adapter: str
    text: bytes
    creator: str
    requests: list[ExpectedRequest] = field(default_factory=list)
    payout: tuple[int, ...] = ()
    is_reset: bool = False
    is_paused: bool = False
    answers_at: int = 0

    @property
    def is_open(self) -> bool:
        return bool(self.requests) and not self.payout

    @property
    def asked(self) -> ExpectedRequest:
        return self.requests[-1]

    def state(self, now: int) -> int:
        return self.asked.state(now) if self.requests else 0

    def ask(self, terms: Terms, now: int) -> bool:
        if self.requests or not self.oracle.has_adapter:
            return False
        self.oracle.held += terms.reward
        self.open(terms, terms.reward, now, now)
        return True

    def open(self, terms: Terms, reward: int, asked_at: int, now: int) -> None:
        text = keccak256(self.text)
        words = encode(
            ["address", "bytes32", "uint256", "bytes32"],
            [self.adapter, YES_OR_NO_QUERY, asked_at, text],
        )
        request = ExpectedRequest(keccak256(words), asked_at, now, self.creator, terms, reward)
        self.requests.append(request)

    def ask_again(self, now: int) -> None:
        """Put a request with the reward in the place of the last one."""
        former = self.asked
        self.open(former.terms, former.reward, max(now, former.asked_at + 1), now)
        former.reward, former.successor = 0, self.asked

    def propose(self, who: str, price: int, now: int) -> bool:
        if self.state(now) != REQUESTED or price not in PAYOUT_BY_PRICE:
            return False
        request = self.asked
        request.proposer, request.proposed_price = who, price
        request.expires_at = now + request.terms.liveness
        self.oracle.held += request.terms.bond
        return True

    def dispute(self, who: str, now: int) -> bool:
        """Dispute the proposal; a first dispute has the question asked again."""
        if self.state(now) != PROPOSED:
            return False
        self.asked.disputer, self.asked.disputed_at = who, now
        self.oracle.held += self.asked.terms.bond
        if not self.payout and not self.is_reset:
            self.is_reset = True
            self.ask_again(now)
        return True

    def decide(self, who: str, price: int, now: int) -> bool:
        if who != self.oracle.arbiter or self.state(now) != DISPUTED:
            return False
        request = self.asked
        is_allowed = price == IGNORE or price in PAYOUT_BY_PRICE
        if not is_allowed or now >= request.disputed_at + ARBITRATION_S:
            return False
        request.is_decided = True
        request.close(Answer(price, now))
        self.pay(request)
        if price == IGNORE and request.is_abandoned:
            self.return_reward(request)
        return True

    def settle(self, request: ExpectedRequest, now: int) -> bool:
        if request.available_at:
            return True
        answer = request.answer(now)
        if answer is None:
            return False
        request.is_released = request.disputed_at > 0 and request.must_release(now)
        request.close(answer)
        self.pay(request)
        return True

    def pay(self, request: ExpectedRequest) -> None:
        """Add what everybody is due for a request that has just got its price."""
        due, bond = self.oracle.due, request.terms.bond
        if not request.disputed_at:
            due[request.proposer] += bond + request.reward
        elif request.is_fallback or request.price == IGNORE:
            due[request.proposer] += bond
            due[request.disputer] += bond
            # One that it was too early for keeps its reward for the request in its place.
            due[request.creator] += request.reward if request.is_fallback else 0
        else:
            is_right = request.price == request.proposed_price
            due[request.proposer if is_right else request.disputer] += (
                bond + bond // 2 + request.reward
            )
            due[self.oracle.treasury] += bond - bond // 2

    def return_reward(self, request: ExpectedRequest) -> None:
        self.oracle.due[request.creator] += request.reward
        request.reward = 0

    def resolve(self, now: int) -> bool:
        """Report the answer, or ask again where it was too early for one."""
        answer = self.asked.answer(now) if self.is_open else None
        if answer is None or (self.is_paused and now < answer.since + HOLD_S):
            return False
        self.settle(self.asked, now)
        if answer.price == IGNORE:
            self.is_reset = False
            self.ask_again(now)
        else:
            self.payout = PAYOUT_BY_PRICE[answer.price]
        return True

    def resolve_manually(self, payout: list[int], now: int) -> bool:
        is_announced = self.is_flagged(now) and self.answers_at <= now
        if not self.is_open or not is_announced or payout not in MANUAL_PAYOUTS:
            return False
        self.payout = tuple(payout)
        request = self.asked
        if request.state(now) == REQUESTED:
            request.close(Answer(IGNORE, now))
            self.return_reward(request)
        elif request.is_too_early:
            self.return_reward(request)
        else:
            request.is_abandoned = True
        return True

    def is_flagged(self, now: int) -> bool:
        """Return whether the admin has announced an answer that has not lapsed."""
        return self.answers_at > 0 and now < self.answers_at + ANSWER_S

    def hold(self, act: str, now: int) -> bool:
        """Flag, unflag, pause or unpause the question."""
        is_refused = {"flag": self.is_flagged(now), "unflag": not self.answers_at}.get(act, False)
        if not self.is_open or is_refused:
            return False
        if act == "flag":
            self.answers_at = now + SAFETY_S
        elif act != "pause":
            self.answers_at = 0
        self.is_paused = act in {"flag", "pause"}
        return True
