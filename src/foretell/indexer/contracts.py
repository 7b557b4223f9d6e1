"""The contracts that the indexer reads."""

from dataclasses import dataclass
from typing import Self

from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address


@dataclass(frozen=True, slots=True)
class IndexedContracts:
    """The contracts whose logs change balances, allowances, positions and orders.

    `announces_spending` says that the collateral logs an Approval whenever a spender has used
    part of its allowance. Our own token and most newer ones do not: the rest is then computed.
    """

    collateral: Address
    conditional_tokens: Address
    exchanges: frozenset[Address]
    announces_spending: bool = False
    neg_risk_adapter: Address | None = None
    wrapped_collateral: Address | None = None

    @classmethod
    def of(cls, deployment: Deployment, *, announces_spending: bool = False) -> Self:
        """Return the contracts of a deployment."""
        has_neg_risk = ContractName.NEG_RISK_ADAPTER in deployment.contracts
        return cls(
            deployment.collateral,
            deployment.conditional_tokens,
            frozenset(deployment.exchanges),
            announces_spending,
            deployment.address(ContractName.NEG_RISK_ADAPTER) if has_neg_risk else None,
            deployment.address(ContractName.WRAPPED_COLLATERAL) if has_neg_risk else None,
        )

    @property
    def spenders(self) -> frozenset[Address]:
        """The contracts whose allowances are kept: each of their spendings shows in logs that are read."""
        return frozenset({*self.exchanges, self.conditional_tokens, *self._adapters})

    @property
    def untracked_wallets(self) -> frozenset[Address]:
        """Accounts without positions of their own: their moves belong to the activity of another wallet."""
        burn = {NO_TOKEN_BURN} if self._adapters else set[Address]()
        return frozenset({ZERO_ADDRESS, *self.exchanges, *self._adapters, *burn})

    def collateral_of(self, oracle: Address) -> Address:
        """Return the collateral of a condition with this oracle."""
        wrapped = self.wrapped_collateral if oracle in self._adapters else None
        return wrapped or self.collateral

    @property
    def _adapters(self) -> tuple[Address, ...]:
        return () if self.neg_risk_adapter is None else (self.neg_risk_adapter,)
