"""Allocations: the part of a wallet's collateral that one shard may spend.

The treasury and the shard each count three totals of an allocation: units given by the treasury,
returned by the shard, and settled by trades of the shard on the chain. Messages between them hold
totals, never differences. So a message may arrive late, twice or never and can be rebuilt from
either journal; the receiver keeps the larger total. The difference between both sides is in transit.
"""

from typing import NewType, Self

import msgspec

from foretell.domain.values.hexadecimal import Address

Total = NewType("Total", str)
"""A sum of base units as a decimal string: it may exceed an integer of the journal."""


class AllocationTotal(msgspec.Struct, frozen=True, array_like=True):
    """One total of a wallet's allocation."""

    wallet: Address
    total: Total


class AllocationTotals(msgspec.Struct, frozen=True, array_like=True):
    """All totals of a wallet's allocation."""

    wallet: Address
    given: Total
    returned: Total
    settled: Total

    def allocation(self) -> "Allocation":
        """Return the allocation with these totals."""
        return Allocation.of_totals(self.given, self.returned, self.settled)


class Allocation(msgspec.Struct):
    """The totals of one side, in base units; the settled total may be below zero."""

    given_units: int = 0
    returned_units: int = 0
    settled_units: int = 0

    @property
    def units(self) -> int:
        """The present size; below zero when a reorg reverted units that were returned already."""
        return self.given_units - self.returned_units + self.settled_units

    def totals(self) -> tuple[Total, Total, Total]:
        """Return the totals as a snapshot stores them, at any width."""
        return (
            total_of(self.given_units),
            total_of(self.returned_units),
            total_of(self.settled_units),
        )

    @classmethod
    def of_totals(cls, given: Total, returned: Total, settled: Total) -> Self:
        """Return the allocation with stored totals."""
        return cls(int(given), int(returned), int(settled))


class Allocations(msgspec.Struct):
    """The shard's side: its name and its allocations.

    The name is empty until the shard joins a treasury; until then the ledger's confirmed collateral
    is the balance on the chain. Afterwards it is the units of the allocation.
    """

    shard: str = ""
    allocation_by_wallet: dict[Address, Allocation] = msgspec.field(default_factory=dict)

    @property
    def is_joined(self) -> bool:
        """Whether collateral is allocated by a treasury, not read from the chain."""
        return self.shard != ""

    def allocation_of(self, wallet: Address) -> Allocation:
        """Return the wallet's allocation, a new one when it had none."""
        assert self.is_joined, "only a shard of a treasury has allocations"
        return self.allocation_by_wallet.setdefault(wallet, Allocation())

    def look_up(self, wallet: Address) -> Allocation:
        """Return the wallet's allocation, or an empty one that is not stored."""
        return self.allocation_by_wallet.get(wallet) or Allocation()


def total_of(units: int) -> Total:
    """Return the total as a message holds it."""
    return Total(str(units))
