"""What everybody should hold, told apart from the contracts by slow and obvious rules.

The plain market is one condition of two tokens. The event is three neg-risk questions. All collateral
that lies under positions is `locked`, of the market and of the event apart.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.contracts.signing import BUY, OWN_V2

COLLATERAL: Final = 0
BPS: Final = 10_000
V2_FEE_RATE_BPS: Final = 250
QUESTIONS: Final = 3

Key = tuple[str, int]
Payout = tuple[int, int]


@dataclass
class Books:
    """Who holds what, and what is locked under it."""

    units: Counter[Key] = field(default_factory=Counter)
    touched: set[Key] = field(default_factory=set)
    payout_by_token: dict[int, tuple[int, int]] = field(default_factory=dict)
    converted: int = 0

    def move(self, asset: int, sender: str, receiver: str, amount: int) -> None:
        self.change(sender, asset, -amount)
        self.change(receiver, asset, amount)

    def change(self, who: str, asset: int, amount: int) -> None:
        self.units[who, asset] += amount
        self.touched.add((who, asset))

    def split(self, who: str, lock: str, pair: tuple[int, int], amount: int) -> None:
        self.move(COLLATERAL, who, lock, amount)
        for token in pair:
            self.change(who, token, amount)

    def merge(self, who: str, lock: str, pair: tuple[int, int], amount: int) -> None:
        self.split(who, lock, pair, -amount)

    def redeem(self, who: str, lock: str, token: int, amount: int) -> None:
        """Pay what the token is worth, rounded down."""
        numerator, denominator = self.payout_by_token[token]
        self.change(who, token, -amount)
        self.move(COLLATERAL, lock, who, amount * numerator // denominator)

    def held(self, token: int) -> int:
        """Return how much of a token there is in all, but for what nobody can ever redeem."""
        return sum(amount for (_, asset), amount in self.units.items() if asset == token)

    def owed(self, pairs: list[tuple[int, int]], payouts: list[Payout]) -> int:
        """Return what the holders of these tokens get when they pay this."""
        return sum(
            self.held(token) * numerator // sum(payout)
            for pair, payout in zip(pairs, payouts, strict=True)
            for token, numerator in zip(pair, payout, strict=True)
        )


@dataclass
class Resting:
    """An order as the books see it."""

    who: str
    side: int
    token: int
    cost: int
    size: int
    profile: int
    fee_rate_bps: int
    remaining: int
    nonce: int = 0
    is_cancelled: bool = False

    @property
    def making(self) -> int:
        return self.cost if self.side == BUY else self.size

    @property
    def taking(self) -> int:
        return self.size if self.side == BUY else self.cost

    def taking_of(self, making: int) -> int:
        """Return what the order gets for this part of what it gives, rounded up."""
        return -(-making * self.taking // self.making)


def crosses(taker: Resting, maker: Resting) -> bool:
    """Return whether two prices meet: fractions compared by multiplying across."""
    sides = (taker.side, maker.side)
    ours, theirs = taker.cost * maker.size, maker.cost * taker.size
    one = taker.size * maker.size
    met = {
        (0, 1): ours >= theirs,
        (1, 0): ours <= theirs,
        (0, 0): ours + theirs >= one,
        (1, 1): ours + theirs <= one,
    }
    return met[sides]


def fee_max(order: Resting, given: int, received: int) -> int:
    """Return the highest fee that may be taken of a fill."""
    if order.profile == OWN_V2:
        return received * V2_FEE_RATE_BPS // BPS
    if order.side != BUY:
        return order.fee_rate_bps * min(received, given - received) // BPS
    if given == 0:
        return order.fee_rate_bps * received // BPS
    return order.fee_rate_bps * min(given, received - given) * received // (given * BPS)
