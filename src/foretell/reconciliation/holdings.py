"""A wallet's tokens and their cost, by the rules of the reference page, line by line."""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

UNITS_MAX: Final = 2**63 - 1


class Act(NamedTuple):
    """Tokens that arrive at a cost, or leave for proceeds; transfers are neither bought nor sold."""

    is_in: bool
    units: int
    money: int
    is_transfer: bool = False


def arrived(units: int, money: int) -> Act:
    """Return tokens that were bought, split or converted into."""
    return Act(is_in=True, units=units, money=money)


def gone(units: int, money: int) -> Act:
    """Return tokens that were sold, merged, redeemed or converted."""
    return Act(is_in=False, units=units, money=money)


def transferred(units: int, money: int, *, is_in: bool) -> Act:
    """Return tokens that were given, or received at what they are worth."""
    return Act(is_in=is_in, units=units, money=money, is_transfer=True)


@dataclass(frozen=True, slots=True)
class CountedPosition:
    """The figures of one wallet and token, in base units."""

    size: int = 0
    cost: int = 0
    bought: int = 0
    spent: int = 0
    realized: int = 0

    def after(self, act: Act) -> "CountedPosition":
        """Return the position after tokens came or went."""
        return self._with(act) if act.is_in else self._without(act)

    def _with(self, act: Act) -> "CountedPosition":
        more = replace(self, size=_fit(self.size + act.units), cost=_fit(self.cost + act.money))
        if act.is_transfer:
            return more
        bought, spent = _fit(self.bought + act.units), _fit(self.spent + act.money)
        return replace(more, bought=bought, spent=spent)

    def _without(self, act: Act) -> "CountedPosition":
        gone = min(act.units, self.size)
        cost_of_gone = -(-self.cost * gone // self.size) if gone else 0
        if gone == self.size:
            cost_of_gone = self.cost
        gain = 0 if act.is_transfer else act.money - cost_of_gone
        return replace(
            self,
            size=self.size - gone,
            cost=self.cost - cost_of_gone,
            realized=_fit(self.realized + gain),
        )


NOTHING_HELD: Final = CountedPosition()


def after_all(position: CountedPosition, acts: list[Act]) -> CountedPosition:
    """Return the position after one transaction; if tokens would be missing, those that arrive come first."""
    size = least = position.size
    for act in acts:
        size += act.units if act.is_in else -act.units
        least = min(least, size)
    ordered = (
        acts if least >= 0 else [a for a in acts if a.is_in] + [a for a in acts if not a.is_in]
    )
    for act in ordered:
        position = position.after(act)
    return position


def _fit(units: int) -> int:
    return max(-UNITS_MAX, min(units, UNITS_MAX))
