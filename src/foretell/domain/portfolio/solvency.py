"""Solvency: the collateral that contracts hold against what the holders of tokens can claim.

A condition of its own owes its larger outcome until it is resolved, and its payouts afterwards. The
questions of an event share their collateral: conversions leave more Yes than No of a question, and as
at most one of them is Yes, the event owes the largest such surplus once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from foretell.domain.portfolio.positions import Payout
from foretell.domain.values.hexadecimal import Bytes32

DEFICITS_NAMED_MAX: Final = 100
"""The most conditions with a deficit that a report names; it counts all of them."""

CONDITIONAL_TOKENS: Final = "conditional_tokens"
WRAPPED_COLLATERAL: Final = "wrapped_collateral"
EVENT_POSITIONS: Final = "event_positions"


class OutstandingTokens(NamedTuple):
    """The tokens of a condition that are held, and the collateral that its logs say is locked.

    `event_id` is None for a condition of its own. `burned_units` are No tokens that nobody can redeem;
    `no_units` are without them.
    """

    condition_id: Bytes32
    event_id: Bytes32 | None
    locked_units: int
    yes_units: int
    no_units: int
    burned_units: int
    payout: Payout | None

    @property
    def owed_units(self) -> int:
        """What its holders can claim, without the surplus of its event; rounded down, as payouts are."""
        if self.payout is not None:
            return _paid_units(self.yes_units, self.no_units, self.payout)
        if self.event_id is not None:
            return self.no_units
        return max(self.yes_units, self.no_units)

    @property
    def surplus_units(self) -> int:
        """What its holders can claim beyond that, if the question of an event is answered Yes."""
        if self.event_id is None or self.payout is not None:
            return 0
        return max(0, self.yes_units - self.no_units)

    @property
    def owed_wrapped_units(self) -> int:
        """The wrapped collateral under the positions of an event's question, zero for others."""
        if self.event_id is None:
            return 0
        if self.payout is not None:
            return _paid_units(self.yes_units, self.no_units, self.payout)
        return max(self.yes_units, self.no_units + self.burned_units)

    @property
    def deficit_units(self) -> int:
        """What is claimed above the collateral that is locked for it."""
        return max(0, self.owed_units - self.locked_units)


class BackingUnits(NamedTuple):
    """What the contracts hold at one block.

    `circulating_wrapped` is the wrapped collateral that is neither under positions nor the adapter's:
    its holders may change it into collateral.
    """

    conditional_tokens: int
    wrapped_collateral: int = 0
    event_positions: int = 0
    circulating_wrapped: int = 0


def backing_of(
    collateral: int,
    under_wrapped: int = 0,
    wrapped_under_positions: int = 0,
    wrapped_of_adapter: int = 0,
    wrapped_supply: int = 0,
) -> BackingUnits:
    """Return the backing of balances in base units: of conditional tokens first, then of the wrapper."""
    circulating = wrapped_supply - wrapped_under_positions - wrapped_of_adapter
    return BackingUnits(collateral, under_wrapped, wrapped_under_positions, circulating)


class Pool(NamedTuple):
    """One pool of collateral: what a contract holds of it, and what is claimed."""

    name: str
    held_units: int
    owed_units: int

    @property
    def deficit_units(self) -> int:
        """What is claimed above what is held."""
        return max(0, self.owed_units - self.held_units)


class Deficit(NamedTuple):
    """A pool or a condition that owes more than it has."""

    name: str
    units: int


@dataclass(slots=True)
class ClaimSum:
    """The claims of all conditions, added one by one."""

    conditions: int = 0
    own_units: int = 0
    event_units: int = 0
    wrapped_units: int = 0
    short_conditions: int = 0
    short: list[Deficit] = field(default_factory=list)
    _surplus_by_event: dict[Bytes32, int] = field(default_factory=dict)
    _answered_events: set[Bytes32] = field(default_factory=set)

    def add(self, outstanding: Iterable[OutstandingTokens]) -> None:
        """Add the claims of some conditions."""
        for tokens in outstanding:
            self.conditions += 1
            self.wrapped_units += tokens.owed_wrapped_units
            if tokens.event_id is None:
                self.own_units += tokens.owed_units
            else:
                self._add_of_event(tokens.event_id, tokens)
            if tokens.deficit_units:
                self.short_conditions += 1
                if len(self.short) < DEFICITS_NAMED_MAX:
                    self.short.append(Deficit(tokens.condition_id, tokens.deficit_units))

    def _add_of_event(self, event_id: Bytes32, tokens: OutstandingTokens) -> None:
        self.event_units += tokens.owed_units
        if tokens.payout is not None and tokens.payout.yes:
            self._answered_events.add(event_id)
        known = self._surplus_by_event.get(event_id, 0)
        self._surplus_by_event[event_id] = max(known, tokens.surplus_units)

    def pools(self, backing: BackingUnits) -> Sequence[Pool]:
        """Return what each contract holds and owes.

        The last pool is the wrapped collateral under positions: collateral under collateral, which no
        total counts again.
        """
        surplus_units = sum(
            units
            for event_id, units in self._surplus_by_event.items()
            if event_id not in self._answered_events
        )
        of_events = self.event_units + surplus_units + backing.circulating_wrapped
        return (
            Pool(CONDITIONAL_TOKENS, backing.conditional_tokens, self.own_units),
            Pool(WRAPPED_COLLATERAL, backing.wrapped_collateral, of_events),
            Pool(EVENT_POSITIONS, backing.event_positions, self.wrapped_units),
        )


@dataclass(frozen=True, slots=True)
class SolvencyTotal:
    """The solvency of all conditions at a block."""

    block_number: int
    block_hash: Bytes32
    computed_at_ms: int
    conditions: int
    pools: Sequence[Pool]
    short_conditions: int
    short: Sequence[Deficit]

    @property
    def held_units(self) -> int:
        """The collateral that the contracts hold."""
        return sum(pool.held_units for pool in self.pools if pool.name != EVENT_POSITIONS)

    @property
    def owed_units(self) -> int:
        """The collateral that can be claimed."""
        return sum(pool.owed_units for pool in self.pools if pool.name != EVENT_POSITIONS)

    @property
    def deficit_units(self) -> int:
        """The largest sum that is missing: of the pools, or of the conditions that are named."""
        return max(
            sum(pool.deficit_units for pool in self.pools), sum(each.units for each in self.short)
        )

    @property
    def deficits(self) -> Sequence[Deficit]:
        """Every pool that owes more than it has, and the first conditions."""
        pools = [Deficit(pool.name, pool.deficit_units) for pool in self.pools]
        return [*(each for each in pools if each.units), *self.short]

    @property
    def is_solvent(self) -> bool:
        """Whether nothing is missing anywhere."""
        return not self.deficits


def _paid_units(yes_units: int, no_units: int, payout: Payout) -> int:
    return (yes_units * payout.yes + no_units * payout.no) // (payout.yes + payout.no)
