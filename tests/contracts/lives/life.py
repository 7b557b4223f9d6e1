"""One life: who there is, what they have signed, and what must be so after every step.

A life is a string of bytes, eight to a step: what is done, by whom, with what, how much.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.contracts.evm import Contract, Reverted
from tests.contracts.lives.arena import Venue, arena
from tests.contracts.lives.bookkeeping import COLLATERAL, QUESTIONS, Books, Key, Resting
from tests.contracts.signing import Order

STEP_BYTES: Final = 8
TRADERS: Final = 4
# Most happens in few places, so that orders meet.
VENUES: Final = (0, 0, 0, 1, 1, 1, 2, 3)


class Step(NamedTuple):
    """One step's bytes: the act, the actor, three choices, and an amount."""

    act: int
    actor: int
    first: int
    second: int
    third: int
    amount: int


class Life:
    """One random life."""

    def __init__(self) -> None:
        self.arena = arena()
        self.books = Books()
        self.orders: dict[tuple[str, str], list[tuple[Order, Resting]]] = {}
        self.nonces: Counter[Key] = Counter()
        self.paused: set[str] = set()
        self.salt = 0
        self.done: Counter[str] = Counter()
        self.people = [*(actor.address for actor in self.arena.traders), *self.arena.hostile]
        self.answered: dict[int, bool] = {}
        self.refusal = ""
        tokens = [token for venue in self.venues for token in venue.pair]
        places = (self.arena.market.lock, self.arena.questions[0].lock)
        for who in (*self.people, self.arena.world.fee_receiver, *places):
            self.books.units[who, COLLATERAL] = self.on_chain(who, COLLATERAL)
        for who in self.people:
            for token in tokens:
                self.books.units[who, token] = self.on_chain(who, token)
        # What lies under the sets of those who take no part.
        market = self.arena.market
        held = self.books.held(market.pair[0])
        self.market_base = self.books.units[market.lock, COLLATERAL] - held

    @property
    def venues(self) -> tuple[Venue, ...]:
        return (self.arena.market, *self.arena.questions)

    def person(self, number: int) -> str:
        return self.people[number % len(self.people)]

    def trader(self, number: int) -> str:
        return self.people[number % TRADERS]

    def venue(self, number: int) -> Venue:
        return self.venues[VENUES[number % len(VENUES)]]

    def attempt(self, who: str, contract: Contract, name: str, *arguments: object) -> bool:
        """Send, and say whether it went through."""
        try:
            contract.send(name, *arguments, sender=who)
        except Reverted as refused:
            self.refusal = refused.name
            return False
        return True

    def compare(self, keys: set[Key]) -> None:
        """Hold the books against the chain."""
        for who, asset in keys:
            assert self.on_chain(who, asset) == self.books.units[who, asset], (who, asset)

    def on_chain(self, who: str, asset: int) -> int:
        world = self.arena.world
        if asset == COLLATERAL:
            units: int = world.collateral.call("balanceOf", who)
        else:
            units = world.ctf.call("balanceOf", who, asset)
        return units

    def check_covered(self) -> None:
        """Refuse a state in which less collateral is held than somebody could ask for."""
        market, questions = self.arena.market, self.arena.questions
        if market.pair[0] not in self.books.payout_by_token:
            assert self.books.held(market.pair[0]) == self.books.held(market.pair[1])
        locked = self.books.units[market.lock, COLLATERAL] - self.market_base
        payouts = [self.payout_of(market)]
        assert locked >= self.books.owed([market.pair], payouts)
        pairs = [venue.pair for venue in questions]
        held = self.books.units[questions[0].lock, COLLATERAL]
        for outcomes in self.outcomes():
            assert held >= self.books.owed(pairs, outcomes)

    def payout_of(self, venue: Venue) -> tuple[int, int]:
        """Return what a pair pays; before that is known, both sides the same."""
        first, second = (self.books.payout_by_token.get(token, (1, 2)) for token in venue.pair)
        return first[0], second[0]

    def outcomes(self) -> Iterator[list[tuple[int, int]]]:
        """Yield what the questions may still pay: at most one Yes, and what is answered is."""
        for winner in (None, *range(QUESTIONS)):
            answers = {index: index == winner for index in range(QUESTIONS)}
            if all(answers[index] == said for index, said in self.answered.items()):
                yield [(1, 0) if answers[index] else (0, 1) for index in range(QUESTIONS)]


def steps_of(script: bytes) -> Iterator[Step]:
    for start in range(0, len(script) - STEP_BYTES + 1, STEP_BYTES):
        act, actor, first, second, third, low, high, _ = script[start : start + STEP_BYTES]
        yield Step(act, actor, first, second, third, low + 256 * high)
