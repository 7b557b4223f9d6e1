"""Which contracts the indexer reads, and what it must know of them."""

from dataclasses import dataclass
from typing import Self

from foretell.domain.deployment import Deployment
from foretell.domain.hexadecimal import Address


@dataclass(frozen=True, slots=True)
class IndexedContracts:
    """The contracts whose logs move what we account for.

    `announces_spending` says that the collateral logs an Approval whenever a spender has used
    some of its allowance. Our own and most newer tokens do not: what is left is then computed.
    """

    collateral: Address
    conditional_tokens: Address
    exchanges: frozenset[Address]
    announces_spending: bool = False

    @classmethod
    def of(cls, deployment: Deployment, *, announces_spending: bool = False) -> Self:
        """Return those of a deployment."""
        return cls(
            deployment.collateral,
            deployment.conditional_tokens,
            frozenset({deployment.exchange}),
            announces_spending,
        )

    @property
    def spenders(self) -> frozenset[Address]:
        """Whose allowances are kept: the contracts whose every spending shows in logs of ours."""
        return self.exchanges | {self.conditional_tokens}
