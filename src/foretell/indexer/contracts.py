"""Which contracts the indexer reads, and what it must know of them."""

from dataclasses import dataclass
from typing import Self

from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address


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
    neg_risk_adapter: Address | None = None
    wrapped_collateral: Address | None = None

    @classmethod
    def of(cls, deployment: Deployment, *, announces_spending: bool = False) -> Self:
        """Return those of a deployment."""
        has_events = ContractName.NEG_RISK_ADAPTER in deployment.contracts
        return cls(
            deployment.collateral,
            deployment.conditional_tokens,
            frozenset(deployment.exchanges),
            announces_spending,
            deployment.address(ContractName.NEG_RISK_ADAPTER) if has_events else None,
            deployment.address(ContractName.WRAPPED_COLLATERAL) if has_events else None,
        )

    @property
    def spenders(self) -> frozenset[Address]:
        """Whose allowances are kept: the contracts whose every spending shows in logs of ours."""
        return frozenset({*self.exchanges, self.conditional_tokens, *self._adapters})

    @property
    def untracked_wallets(self) -> frozenset[Address]:
        """Accounts that hold nothing of their own: what they move is somebody's act."""
        burn = {NO_TOKEN_BURN} if self._adapters else set[Address]()
        return frozenset({ZERO_ADDRESS, *self.exchanges, *self._adapters, *burn})

    def collateral_of(self, oracle: Address) -> Address:
        """Return what the tokens of a condition with this oracle are backed by."""
        wrapped = self.wrapped_collateral if oracle in self._adapters else None
        return wrapped or self.collateral

    @property
    def _adapters(self) -> tuple[Address, ...]:
        return () if self.neg_risk_adapter is None else (self.neg_risk_adapter,)
