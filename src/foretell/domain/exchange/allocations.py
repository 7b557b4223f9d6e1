"""A slice: what one shard may spend of a wallet's collateral, counted on both sides of it.

The treasury and the shard each keep three totals of a slice, which say all that ever happened to
it: given by the treasury, returned by the shard, settled by trades of the shard on the chain. What
travels between them is a total, never a difference. So a letter may come late, twice or not at all
and be written anew from either journal: whoever reads it takes the larger total, and nothing
else. What the totals of both sides differ by is what is on its way.
"""

from typing import NewType, Self

import msgspec

from foretell.domain.values.hexadecimal import Address

Total = NewType("Total", str)
"""Base units in all, a decimal string on the wire: totals outgrow an integer of the journal."""


class AllocationTotal(msgspec.Struct, frozen=True, array_like=True):
    """One of a slice's totals, of a wallet."""

    wallet: Address
    total: Total


class AllocationTotals(msgspec.Struct, frozen=True, array_like=True):
    """All of a slice's totals, of a wallet."""

    wallet: Address
    given: Total
    returned: Total
    settled: Total

    def slice(self) -> "Allocation":
        """Return the slice that they are the totals of."""
        return Allocation.of_totals(self.given, self.returned, self.settled)


class Allocation(msgspec.Struct):
    """One side's totals, in base units; what a trade settled may be below zero."""

    given_units: int = 0
    returned_units: int = 0
    settled_units: int = 0

    @property
    def units(self) -> int:
        """What the slice holds; below zero when a reorg took what was returned already."""
        return self.given_units - self.returned_units + self.settled_units

    def totals(self) -> tuple[Total, Total, Total]:
        """Return the totals as a snapshot keeps them, whatever their width."""
        return (
            total_of(self.given_units),
            total_of(self.returned_units),
            total_of(self.settled_units),
        )

    @classmethod
    def of_totals(cls, given: Total, returned: Total, settled: Total) -> Self:
        """Return the slice that a snapshot kept."""
        return cls(int(given), int(returned), int(settled))


class Allocations(msgspec.Struct):
    """A shard's side: its name, empty while the chain's balance is the whole account, its slices.

    While the shard has a name, a slice's units are what its ledger calls confirmed collateral.
    """

    shard: str = ""
    allocation_by_wallet: dict[Address, Allocation] = msgspec.field(default_factory=dict)

    @property
    def is_joined(self) -> bool:
        """Whether collateral comes from a treasury, not from the chain."""
        return self.shard != ""

    def allocation_of(self, wallet: Address) -> Allocation:
        """Return the wallet's slice, a new one when it had none."""
        return self.allocation_by_wallet.setdefault(wallet, Allocation())

    def look_up(self, wallet: Address) -> Allocation:
        """Return the wallet's slice, or an empty one that is not kept."""
        return self.allocation_by_wallet.get(wallet) or Allocation()


def total_of(units: int) -> Total:
    """Return the total as it travels."""
    return Total(str(units))
