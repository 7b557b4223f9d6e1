"""The token moves of one transaction, and the reason of each."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from foretell.reconciliation.chain_figures import ChainFigures, Holding
from foretell.reconciliation.holdings import Act, after_all, transferred


class Direction(NamedTuple):
    """Tokens of a wallet that arrive, or leave, by the adapter of events or by the contract of all tokens."""

    holding: Holding
    is_in: bool
    is_of_event: bool


@dataclass(slots=True)
class _Move:
    direction: Direction
    units: int
    act: Act | None = None


class TransactionMoves:
    """The moves in the order of the logs. Tokens move first; the log that says why comes later."""

    def __init__(self, figures: ChainFigures) -> None:
        self._figures = figures
        self._moves: list[_Move] = []
        self._of_exchange: Counter[Holding] = Counter()

    def add(self, direction: Direction, units: int, act: Act | None = None) -> None:
        """Add a move, with its reason if that is known."""
        self._moves.append(_Move(direction, units, act))

    def add_transfer(self, sender: str, receiver: str, token: str, units: int) -> None:
        """Add a gift, at the price of now."""
        if sender != receiver:
            for wallet, is_in in ((sender, False), (receiver, True)):
                given = self._given(token, units, is_in=is_in)
                self.add(Direction((wallet, token), is_in, is_of_event=False), units, given)

    def add_of_exchange(self, holding: Holding, units: int) -> None:
        """Count tokens that the exchange moved; those of its fills are taken off."""
        self._of_exchange[holding] += units

    def explain(self, holding: Holding, act: Act, *, is_of_event: bool) -> None:
        """Give the newest move of this wallet, token and amount its reason, if there is one."""
        wanted = Direction(holding, act.is_in, is_of_event), act.units
        for move in reversed(self._moves):
            if move.act is None and (move.direction, move.units) == wanted:
                move.act = act
                return

    def newest(self, direction: Direction) -> int:
        """Return the amount of the newest move without a reason, 0 if there is none."""
        for move in reversed(self._moves):
            if move.act is None and move.direction == direction:
                return move.units
        return 0

    def close(self) -> None:
        """Apply all moves to the positions; those without a reason are gifts."""
        for holding, units in self._of_exchange.items():
            if units:
                self.add(Direction(holding, units > 0, is_of_event=False), abs(units))
        acts: defaultdict[Holding, list[Act]] = defaultdict(list)
        for move in self._moves:
            (wallet, token), is_in, _ = move.direction
            acts[wallet, token].append(move.act or self._given(token, move.units, is_in=is_in))
        without = self._figures.contracts.without_positions
        for holding, of_holding in acts.items():
            if holding[0] not in without:
                position = self._figures.positions[holding]
                self._figures.set_position(holding, after_all(position, of_holding))

    def _given(self, token: str, units: int, *, is_in: bool) -> Act:
        cost, size = self._figures.prices.get(token, (1, 2))
        return transferred(units, units * cost // size if is_in else 0, is_in=is_in)
