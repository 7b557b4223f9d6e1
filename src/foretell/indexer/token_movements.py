"""Whose act each move of outcome tokens belongs to, within one transaction.

Conditional Tokens logs the tokens that it makes or burns first, and the act that did it after them,
with whatever a receiver's code did in between: so an act explains the newest fitting move that
nothing has explained yet. What the exchange moves belongs to its fills; the rest of it, such as fees
paid in tokens, is a transfer. A move that nothing explains is a transfer as well.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Change, TradePrice, transfer_in, transfer_out
from foretell.domain.values.hexadecimal import Address

Holding = tuple[Address, AssetId]
"""A wallet and a token that it holds."""


@dataclass(slots=True)
class _Movement:
    holding: Holding
    units: int
    is_in: bool
    change: Change | None = None


class TxMovements:
    """What one transaction moves, in the order of its logs."""

    def __init__(self) -> None:
        self._movements: list[_Movement] = []
        self._unexplained: dict[tuple[Holding, bool], list[_Movement]] = defaultdict(list)
        self._traded: Counter[Holding] = Counter()

    def add_transfer(
        self, sender: Address, receiver: Address, token_id: AssetId, units: int, price: TradePrice
    ) -> None:
        """Take in a move from one wallet to another."""
        if sender != receiver:
            self._add((sender, token_id), units, is_in=False).change = transfer_out(units)
            self._add((receiver, token_id), units, is_in=True).change = transfer_in(units, price)

    def add_unexplained(self, holding: Holding, units: int, *, is_in: bool) -> None:
        """Take in tokens that were made or burned, by an act whose log comes later."""
        movement = self._add(holding, units, is_in=is_in)
        self._unexplained[holding, is_in].append(movement)

    def add_traded(self, holding: Holding, units: int) -> None:
        """Take in what the exchange brought a wallet, or below zero took from it."""
        self._traded[holding] += units

    def add_fill(self, holding: Holding, change: Change, *, is_in: bool) -> None:
        """Take in what a fill says that the exchange brought or took."""
        self._add(holding, change.size_units, is_in=is_in).change = change
        self._traded[holding] -= change.size_units if is_in else -change.size_units

    def explain(self, holding: Holding, change: Change, *, is_in: bool) -> bool:
        """Say what the newest fitting move was, or return that there is none."""
        waiting = self._unexplained[holding, is_in]
        for index in reversed(range(len(waiting))):
            if waiting[index].units == change.size_units:
                waiting.pop(index).change = change
                return True
        return False

    def newest_units(self, holding: Holding, *, is_in: bool) -> int:
        """Return how much the newest unexplained move was of, zero when there is none."""
        waiting = self._unexplained[holding, is_in]
        return waiting[-1].units if waiting else 0

    def changes(self, price_of: Callable[[AssetId], TradePrice]) -> dict[Holding, list[Change]]:
        """Return what every holding went through, in order; what is left over is a transfer."""
        for holding, units in self._traded.items():
            if units:
                self._add(holding, abs(units), is_in=units > 0)
        changes: dict[Holding, list[Change]] = defaultdict(list)
        for movement in self._movements:
            change = movement.change or _transfer(movement, price_of(movement.holding[1]))
            changes[movement.holding].append(change)
        return changes

    def _add(self, holding: Holding, units: int, *, is_in: bool) -> _Movement:
        movement = _Movement(holding, units, is_in)
        self._movements.append(movement)
        return movement


def _transfer(movement: _Movement, price: TradePrice) -> Change:
    return transfer_in(movement.units, price) if movement.is_in else transfer_out(movement.units)
