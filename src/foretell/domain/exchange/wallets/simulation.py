"""Decide which trades settle in a batch without a simulation.

A simulation costs the node as much as the block does. It pays where a match may fail for a reason that
the index does not show. Each match of a batch is fenced, so a wrong guess costs the gas of one match; the
wallets of a match that failed are simulated from then on.
"""

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.exchange.wallets.wallet_bars import day_of
from foretell.domain.values.hexadecimal import Address

Holding = tuple[Address, AssetId]
Permission = tuple[Address, Address, bool]
"""A wallet, an exchange, and whether it is that of the wallet's collateral or of its tokens."""


class SimulationReason(enum.StrEnum):
    """A reason to simulate a trade before it is sent."""

    EXCHANGE_CLOSED = "exchange_closed"
    INDEX_BEHIND = "index_behind"
    GAS_SPENT = "gas_spent"
    CONTRACT_WALLET = "contract_wallet"
    CODE_UNKNOWN = "code_unknown"
    FAILED_LATELY = "failed_lately"
    EXPIRES = "expires"
    BALANCE = "balance"
    ALLOWANCE = "allowance"


class Payment(NamedTuple):
    """What an order of a trade gives; the amount is among those that its wallet owes.

    `is_own` if the wallet is the account that signed the order. `expires_at_s` is 0 for an order that does
    not expire on the chain.
    """

    wallet: Address
    asset: AssetId
    is_own: bool
    expires_at_s: int = 0


@dataclass(frozen=True, slots=True)
class SettlementView:
    """What is known of the chain and of wallets, as of the last indexed block.

    `owed_units` is what all unsettled trades of a wallet give, those on their way included, and nothing of
    what they bring. `plain` are the accounts without code, and `troubled` the wallets that are barred or
    were part of a settlement that failed lately. `gas_of_day` is what matches that failed in batches cost.
    """

    now_ms: int
    lag_blocks: int = 0
    gas_of_day: int = 0
    open_exchanges: Collection[Address] = frozenset()
    plain: Collection[Address] = frozenset()
    troubled: Collection[Address] = frozenset()
    held_units: Mapping[Holding, int] = field(default_factory=dict)
    allowed_units: Mapping[Permission, int] = field(default_factory=dict)
    owed_units: Mapping[Holding, int] = field(default_factory=dict)


def simulation_reason(
    exchange: Address,
    payments: Sequence[Payment],
    view: SettlementView,
    options: SettlementOptions,
) -> SimulationReason | None:
    """Return why a trade is simulated before it is sent in a batch, or None if it is not.

    A wallet covers its trades only if what it holds is enough for all of them, in any order and without
    what they bring. So nothing depends on which of them the chain has first.
    """
    if exchange not in view.open_exchanges:
        return SimulationReason.EXCHANGE_CLOSED
    if view.lag_blocks > options.unsimulated_lag_blocks_max:
        return SimulationReason.INDEX_BEHIND
    if view.gas_of_day >= options.unsimulated_gas_per_day_max:
        return SimulationReason.GAS_SPENT
    reasons = (_reason_of(exchange, payment, view, options) for payment in payments)
    return next((reason for reason in reasons if reason is not None), None)


def _reason_of(
    exchange: Address, payment: Payment, view: SettlementView, options: SettlementOptions
) -> SimulationReason | None:
    wallet, asset = payment.wallet, payment.asset
    ends_at_ms = payment.expires_at_s * 1000
    owed_units = view.owed_units.get((wallet, asset), 0)
    allowed_units = view.allowed_units.get((wallet, exchange, asset == COLLATERAL), 0)
    reasons = {
        SimulationReason.CONTRACT_WALLET: not payment.is_own,
        SimulationReason.CODE_UNKNOWN: wallet not in view.plain,
        SimulationReason.FAILED_LATELY: wallet in view.troubled,
        SimulationReason.EXPIRES: 0 < ends_at_ms < view.now_ms + options.unsimulated_expiry_ms,
        SimulationReason.BALANCE: view.held_units.get((wallet, asset), 0) < owed_units,
        SimulationReason.ALLOWANCE: allowed_units < owed_units,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def troubled_since(now_ms: int) -> int:
    """Return the first day whose failed settlements still count: yesterday, so at least 24 hours."""
    return day_of(now_ms) - 1
