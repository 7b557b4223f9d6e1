"""Positions of wallets: size, cost and realised profit, computed from the changes of a token.

A position has a size and a cost basis. An acquisition adds to both; a disposal reduces the cost pro
rata, and its proceeds beyond that cost are realised. All amounts are integers in base units. The
cost of a disposal is rounded up: profit is never overstated, the rest of a position never costs more
than its average, and a closed position has no cost.

The changes of one transaction apply in the order of its logs. A wallet with code may pass tokens on
before the log that explains them; when the order would make a size negative, acquisitions apply
first.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX


class ChangeKind(enum.StrEnum):
    """The cause of a change."""

    BUY = "BUY"
    SPLIT = "SPLIT"
    TRANSFER_IN = "TRANSFER_IN"
    CONVERT_IN = "CONVERT_IN"
    SELL = "SELL"
    MERGE = "MERGE"
    REDEEM = "REDEEM"
    TRANSFER_OUT = "TRANSFER_OUT"
    CONVERT_OUT = "CONVERT_OUT"


ACQUISITIONS: Final = frozenset(
    {ChangeKind.BUY, ChangeKind.SPLIT, ChangeKind.TRANSFER_IN, ChangeKind.CONVERT_IN}
)
_TRANSFERS: Final = frozenset({ChangeKind.TRANSFER_IN, ChangeKind.TRANSFER_OUT})


@dataclass(frozen=True, slots=True)
class Position:
    """A wallet's holding of one token.

    `size_units` is the present size, at `cost_units`. `bought_units` is all that was ever bought,
    split or converted into, for `spent_units`. `realized_units` is the profit of disposals other than transfers.
    """

    size_units: int = 0
    cost_units: int = 0
    bought_units: int = 0
    spent_units: int = 0
    realized_units: int = 0


NO_POSITION: Final = Position()


class Change(NamedTuple):
    """An acquisition of tokens at a cost, or a disposal with proceeds."""

    kind: ChangeKind
    size_units: int
    money_units: int


class TradePrice(NamedTuple):
    """The price of a trade, as its collateral and its tokens."""

    cost_units: int
    size_units: int


ONE_HALF: Final = TradePrice(1, 2)
"""The price of a token that was never traded."""


class Payout(NamedTuple):
    """The payout that an oracle reported: each outcome's numerator over their sum."""

    yes: int
    no: int


def purchase(size_units: int, cost_units: int, fee_units: int) -> Change:
    """Return the change of a BUY fill; its fee is charged in the received tokens."""
    return Change(ChangeKind.BUY, size_units - fee_units, cost_units)


def sale(size_units: int, cost_units: int, fee_units: int) -> Change:
    """Return the change of a SELL fill; its fee is charged in the received collateral."""
    return Change(ChangeKind.SELL, size_units, cost_units - fee_units)


def split(units: int, *, is_yes: bool) -> Change:
    """Return the change of one of the two tokens in a split."""
    return Change(ChangeKind.SPLIT, units, half_units(units, is_yes=is_yes))


def merge(units: int, *, is_yes: bool) -> Change:
    """Return the change of one of the two tokens in a merge."""
    return Change(ChangeKind.MERGE, units, half_units(units, is_yes=is_yes))


def redemption(units: int, payout_units: int) -> Change:
    """Return the change of a redemption for this payout."""
    return Change(ChangeKind.REDEEM, units, payout_units)


def transfer_in(units: int, price: TradePrice) -> Change:
    """Return the change of received tokens; they cost their value at the price, rounded down."""
    return Change(ChangeKind.TRANSFER_IN, units, units * price.cost_units // price.size_units)


def transfer_out(units: int) -> Change:
    """Return the change of tokens given away, without proceeds or profit."""
    return Change(ChangeKind.TRANSFER_OUT, units, 0)


class Conversion(NamedTuple):
    """The change of each No token that a conversion takes, and of each Yes token that it gives."""

    given: tuple[Change, ...]
    received: tuple[Change, ...]


def conversion(units: int, given_count: int, received_count: int) -> Conversion:
    """Return the changes of converting some No tokens into the other questions' Yes tokens.

    Of n questions each Yes costs an n-th, rounded down, so a conversion has no profit: the proceeds
    of the No tokens equal the cost of the Yes tokens plus the received collateral, to the unit.
    """
    yes_cost = units // (given_count + received_count)
    proceeds = (given_count - 1) * units + received_count * yes_cost
    part, rest = divmod(proceeds, given_count)
    return Conversion(
        tuple(
            Change(ChangeKind.CONVERT_OUT, units, part + (index < rest))
            for index in range(given_count)
        ),
        (Change(ChangeKind.CONVERT_IN, units, yes_cost),) * received_count,
    )


def half_units(units: int, *, is_yes: bool) -> int:
    """Return one token's half of a complete set's collateral: Yes is rounded up, No down.

    The two halves always add up to the whole.
    """
    return units - units // 2 if is_yes else units // 2


def redeemed_units(yes_units: int, no_units: int, paid_units: int, payout: Payout) -> Payout:
    """Return the part of each token in a redemption that paid this much for both.

    The contract rounds each part down, so Yes is computed and No is the rest; a token that was not
    redeemed has no part.
    """
    if no_units == 0:
        return Payout(paid_units, 0)
    whole = payout.yes + payout.no
    yes_part = min(paid_units, yes_units * payout.yes // whole)
    return Payout(yes_part, paid_units - yes_part)


def apply_all(position: Position, changes: Sequence[Change]) -> Position:
    """Return the position after the changes of one transaction."""
    for change in _possible_order(position.size_units, changes):
        position = apply(position, change)
    return position


def apply(position: Position, change: Change) -> Position:
    """Return the position after one change."""
    assert change.size_units >= 0
    assert change.money_units >= 0
    if change.kind in ACQUISITIONS:
        return _acquire(position, change)
    return _dispose(position, change)


def _possible_order(size_units: int, changes: Sequence[Change]) -> Iterable[Change]:
    """Return the changes as they are, or acquisitions first when the size would go below zero."""
    for change in changes:
        size_units += change.size_units if change.kind in ACQUISITIONS else -change.size_units
        if size_units < 0:
            return sorted(changes, key=lambda change: change.kind not in ACQUISITIONS)
    return changes


def _acquire(position: Position, change: Change) -> Position:
    is_bought = change.kind not in _TRANSFERS
    return Position(
        size_units=_bounded(position.size_units + change.size_units),
        cost_units=_bounded(position.cost_units + change.money_units),
        bought_units=_bounded(position.bought_units + (change.size_units if is_bought else 0)),
        spent_units=_bounded(position.spent_units + (change.money_units if is_bought else 0)),
        realized_units=position.realized_units,
    )


def _dispose(position: Position, change: Change) -> Position:
    """Dispose at average cost. Tokens beyond the size, from an unreadable log, cost nothing."""
    left = max(0, position.size_units - change.size_units)
    kept_cost = position.cost_units * left // position.size_units if left else 0
    gain = change.money_units - (position.cost_units - kept_cost)
    return Position(
        size_units=left,
        cost_units=kept_cost,
        bought_units=position.bought_units,
        spent_units=position.spent_units,
        realized_units=_bounded(
            position.realized_units + (0 if change.kind in _TRANSFERS else gain)
        ),
    )


def _bounded(units: int) -> int:
    """Return the units, limited to the largest amount, which sums over years could exceed."""
    return max(-AMOUNT_UNITS_MAX, min(units, AMOUNT_UNITS_MAX))
