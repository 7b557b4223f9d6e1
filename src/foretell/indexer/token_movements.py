"""Attribution of the token moves of one transaction to the activities that caused them.

A contract logs the tokens that it moves first and the activity that caused them afterwards, and a receiver's
code may run in between: so an act explains the newest unexplained move that fits, of those by its own
contract. Moves by the exchange belong to its fills; the rest of them, such as fees paid in tokens, is a
transfer. A move that no act explains is a transfer as well.
"""

import enum
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Change, TradePrice, transfer_in, transfer_out
from foretell.domain.values.hexadecimal import Address

HoldingKey = tuple[Address, AssetId]
"""A wallet and a token."""


class Mover(enum.Enum):
    """The contract that moved tokens, and whose act explains the move."""

    CONDITIONAL_TOKENS = enum.auto()
    NEG_RISK_ADAPTER = enum.auto()


@dataclass(slots=True)
class _Movement:
    holding: HoldingKey
    units: int
    is_in: bool
    change: Change | None = None


class TxMovements:
    """The token moves of one transaction, in the order of its logs."""

    def __init__(self) -> None:
        self._movements: list[_Movement] = []
        self._unexplained: dict[tuple[HoldingKey, bool, Mover], list[_Movement]] = defaultdict(list)
        self._traded: Counter[HoldingKey] = Counter()

    def add_transfer(
        self, sender: Address, receiver: Address, token_id: AssetId, units: int, price: TradePrice
    ) -> None:
        """Add a move from one wallet to another."""
        if sender != receiver:
            self._add((sender, token_id), units, is_in=False).change = transfer_out(units)
            self._add((receiver, token_id), units, is_in=True).change = transfer_in(units, price)

    def add_unattributed(
        self, holding: HoldingKey, units: int, mover: Mover, *, is_in: bool
    ) -> None:
        """Add tokens whose activity is logged later."""
        movement = self._add(holding, units, is_in=is_in)
        self._unexplained[holding, is_in, mover].append(movement)

    def add_traded(self, holding: HoldingKey, units: int) -> None:
        """Add tokens that the exchange moved to a wallet; a negative amount left it."""
        self._traded[holding] += units

    def add_fill(self, holding: HoldingKey, change: Change, *, is_in: bool) -> None:
        """Add the move that a fill of the exchange reports."""
        self._add(holding, change.size_units, is_in=is_in).change = change
        self._traded[holding] -= change.size_units if is_in else -change.size_units

    def explain(self, holding: HoldingKey, change: Change, mover: Mover, *, is_in: bool) -> bool:
        """Attribute the newest move that fits to this change; return whether there was one."""
        waiting = self._unexplained[holding, is_in, mover]
        for index in reversed(range(len(waiting))):
            if waiting[index].units == change.size_units:
                waiting.pop(index).change = change
                return True
        return False

    def newest_units(self, holding: HoldingKey, mover: Mover, *, is_in: bool) -> int:
        """Return the size of the newest unexplained move, zero when there is none."""
        waiting = self._unexplained[holding, is_in, mover]
        return waiting[-1].units if waiting else 0

    def changes(self, price_of: Callable[[AssetId], TradePrice]) -> dict[HoldingKey, list[Change]]:
        """Return the changes of every holding, in order; moves without an activity are transfers."""
        for holding, units in self._traded.items():
            if units:
                self._add(holding, abs(units), is_in=units > 0)
        changes: dict[HoldingKey, list[Change]] = defaultdict(list)
        for movement in self._movements:
            change = movement.change or _transfer(movement, price_of(movement.holding[1]))
            changes[movement.holding].append(change)
        return changes

    def _add(self, holding: HoldingKey, units: int, *, is_in: bool) -> _Movement:
        movement = _Movement(holding, units, is_in)
        self._movements.append(movement)
        return movement


def _transfer(movement: _Movement, price: TradePrice) -> Change:
    return transfer_in(movement.units, price) if movement.is_in else transfer_out(movement.units)
