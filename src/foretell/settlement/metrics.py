"""The metrics of settlement: gas of transactions mined in vain, and transactions that are not known here."""

from collections.abc import Callable
from typing import Final, NamedTuple

from prometheus_client import Counter, Gauge

GAS: Final = Counter(
    "foretell_failed_settlement_gas",
    "gas of settlements mined in vain: of the wallet for which it counts, of nobody, or of matches in batches (their limits)",
    ["blamed"],
)
UNKNOWN: Final = Gauge(
    "foretell_unknown_settlement_transactions",
    "transactions of settlement's accounts that wait at the node and are not in the database",
)


def count_gas(blamed: str, gas: int) -> None:
    """Count gas in the metrics of this process."""
    GAS.labels(blamed).inc(gas)


def count_unknown(count: int) -> None:
    """Show in the metrics of this process how many unknown transactions wait."""
    UNKNOWN.set(count)


class SettlementCounts(NamedTuple):
    """Where settlement counts: in this process, or in the one that serves its metrics.

    `gas` takes who is to blame, `wallet`, `nobody` or `batch`, and the gas; `unknown` how many unknown transactions
    wait now.
    """

    gas: Callable[[str, int], None] = count_gas
    unknown: Callable[[int], None] = count_unknown
