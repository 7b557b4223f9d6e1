"""The expected balances of all accounts, by slow and obvious rules instead of the contracts.

The plain market is one condition of two tokens. The event has three neg-risk questions. The
collateral behind positions is locked in one contract for the market and in another for the event.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.contracts.signing import BUY, PROFILES

COLLATERAL: Final = 0
BPS: Final = 10_000
V2_FEE_RATE_BPS: Final = 250
RISE_DELAY_S: Final = 3 * 24 * 3600
QUESTIONS: Final = 3

Key = tuple[str, int]
Payout = tuple[int, int]


@dataclass
class ExpectedBalances:
    """The balances of accounts, and the locked collateral."""

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
        """Pay the value of the tokens, rounded down."""
        numerator, denominator = self.payout_by_token[token]
        self.change(who, token, -amount)
        self.move(COLLATERAL, lock, who, amount * numerator // denominator)

    def held(self, token: int) -> int:
        """Return the sum of all balances of a token, without burnt ones."""
        return sum(amount for (_, asset), amount in self.units.items() if asset == token)

    def owed(self, pairs: list[tuple[int, int]], payouts: list[Payout]) -> int:
        """Return the sum that these payouts give the holders of these tokens."""
        return sum(
            self.held(token) * numerator // sum(payout)
            for pair, payout in zip(pairs, payouts, strict=True)
            for token, numerator in zip(pair, payout, strict=True)
        )


@dataclass
class ExpectedFees:
    """The limit of fees on v2 orders, a rise that was announced, and who is paid."""

    receiver: str
    rate_bps: int = V2_FEE_RATE_BPS
    next_bps: int = 0
    starts_at: int = 0

    def announce(self, rate_bps: int, now: int) -> None:
        self.rate_bps = self.rate_at(now)
        if rate_bps <= self.rate_bps:
            self.rate_bps, self.starts_at = rate_bps, 0
        else:
            self.next_bps, self.starts_at = rate_bps, now + RISE_DELAY_S

    def rate_at(self, now: int) -> int:
        return self.next_bps if 0 < self.starts_at <= now else self.rate_bps


@dataclass
class ExpectedAdmin:
    """The admin of an exchange, and the account that the role was offered to."""

    now: str
    offered: str = ""


@dataclass
class ExpectedOrder:
    """An order with its expected remaining amount."""

    who: str
    side: int
    token: int
    cost: int
    size: int
    profile: int
    fee_rate_bps: int
    remaining: int
    nonce: int = 0
    timestamp: int = 0
    is_cancelled: bool = False
    is_forged: bool = False
    is_unsigned: bool = False
    is_approved: bool = False

    @property
    def is_v1(self) -> bool:
        return PROFILES[self.profile].struct_version == 1

    @property
    def making(self) -> int:
        return self.cost if self.side == BUY else self.size

    @property
    def taking(self) -> int:
        return self.size if self.side == BUY else self.cost

    def taking_of(self, making: int) -> int:
        """Return the amount that the order receives for a part of its making amount, rounded up."""
        return -(-making * self.taking // self.making)


def crosses(taker: ExpectedOrder, maker: ExpectedOrder) -> bool:
    """Return whether two orders cross; the prices are compared as fractions."""
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


def fee_max(order: ExpectedOrder, given: int, received: int, v2_rate_bps: int) -> int:
    """Return the highest fee of a fill."""
    if not order.is_v1:
        return received * v2_rate_bps // BPS
    if order.side != BUY:
        return order.fee_rate_bps * min(received, given - received) // BPS
    if given == 0:
        return order.fee_rate_bps * received // BPS
    return order.fee_rate_bps * min(given, received - given) * received // (given * BPS)
