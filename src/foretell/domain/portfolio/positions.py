"""What a wallet holds of a token, what it cost and what it brought: a fold of what moved.

A position has a size and a cost basis. What comes in adds to both; what goes out takes the cost
down pro rata, and what it brought beyond that cost is realised. All of it is integers in base
units. The cost of what goes out is rounded up: profit is never overstated, and the rest of a
position never costs more than its average; a position that closes leaves no cost behind.

One transaction is one instant. Its changes apply in the order of its logs, unless that would hand
out what is not there yet (a wallet with code may pass tokens on before the log that explains them);
then what came in counts first.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX


class ChangeKind(enum.StrEnum):
    """Why a holding changes."""

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

    `size_units` is held now at `cost_units`; `bought_units` were ever bought or split off for
    `spent_units`; `realized_units` is what sales, merges and redemptions brought beyond cost.
    """

    size_units: int = 0
    cost_units: int = 0
    bought_units: int = 0
    spent_units: int = 0
    realized_units: int = 0


NO_POSITION: Final = Position()


class Change(NamedTuple):
    """Tokens that come in at a cost, or go out and bring something."""

    kind: ChangeKind
    size_units: int
    money_units: int


class TradePrice(NamedTuple):
    """A price as the trade that made it: so much collateral for so many tokens."""

    cost_units: int
    size_units: int


ONE_HALF: Final = TradePrice(1, 2)
"""The price of a token that was never traded."""


class Payout(NamedTuple):
    """What an oracle reported: each outcome's numerator over the sum of both."""

    yes: int
    no: int


def purchase(size_units: int, cost_units: int, fee_units: int) -> Change:
    """Return what a BUY fill does: the fee is charged in the tokens that it brings."""
    return Change(ChangeKind.BUY, size_units - fee_units, cost_units)


def sale(size_units: int, cost_units: int, fee_units: int) -> Change:
    """Return what a SELL fill does: the fee is charged in the collateral that it brings."""
    return Change(ChangeKind.SELL, size_units, cost_units - fee_units)


def split(units: int, *, is_yes: bool) -> Change:
    """Return what splitting collateral does to one of the two tokens."""
    return Change(ChangeKind.SPLIT, units, half_units(units, is_yes=is_yes))


def merge(units: int, *, is_yes: bool) -> Change:
    """Return what merging complete sets does to one of the two tokens."""
    return Change(ChangeKind.MERGE, units, half_units(units, is_yes=is_yes))


def redemption(units: int, payout_units: int) -> Change:
    """Return what redeeming a token for this much does."""
    return Change(ChangeKind.REDEEM, units, payout_units)


def transfer_in(units: int, price: TradePrice) -> Change:
    """Return what receiving tokens does: they cost what they would bring, rounded down."""
    return Change(ChangeKind.TRANSFER_IN, units, units * price.cost_units // price.size_units)


def transfer_out(units: int) -> Change:
    """Return what giving tokens away does: they bring nothing, and nothing is realised."""
    return Change(ChangeKind.TRANSFER_OUT, units, 0)


class Conversion(NamedTuple):
    """What a conversion does to each No that it takes, and to each Yes that it gives."""

    given: tuple[Change, ...]
    received: tuple[Change, ...]


def conversion(units: int, given_count: int, gotten_count: int) -> Conversion:
    """Return what converting so much of some No's into the other Yes does.

    Of n questions each Yes counts as an n-th, rounded down, so that nothing is gained by converting:
    what the No's bring is what the Yes cost and the collateral that comes along, to the unit.
    """
    yes_cost = units // (given_count + gotten_count)
    brought = (given_count - 1) * units + gotten_count * yes_cost
    part, rest = divmod(brought, given_count)
    return Conversion(
        tuple(
            Change(ChangeKind.CONVERT_OUT, units, part + (place < rest))
            for place in range(given_count)
        ),
        (Change(ChangeKind.CONVERT_IN, units, yes_cost),) * gotten_count,
    )


def half_units(units: int, *, is_yes: bool) -> int:
    """Return one token's half of a complete set's collateral: yes is rounded up, no down.

    The two halves are always the whole, in and out.
    """
    return units - units // 2 if is_yes else units // 2


def redeemed_units(yes_units: int, no_units: int, paid_units: int, payout: Payout) -> Payout:
    """Return what each token brought of a redemption that paid this much for both.

    The contract rounds each token's part down, so yes is computed and no is the rest; a token
    that was not there brought nothing.
    """
    if no_units == 0:
        return Payout(paid_units, 0)
    whole = payout.yes + payout.no
    yes_part = min(paid_units, yes_units * payout.yes // whole)
    return Payout(yes_part, paid_units - yes_part)


def fold(position: Position, changes: Sequence[Change]) -> Position:
    """Return the position after one transaction's changes."""
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
    """Return the changes as they are, or what comes in first when the size would go below zero."""
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
    """Take out at average cost. What is not held, because its coming was unreadable, cost nothing."""
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
    """Return the units, or the largest amount: a sum of years of trading stops counting there."""
    return max(-AMOUNT_UNITS_MAX, min(units, AMOUNT_UNITS_MAX))
