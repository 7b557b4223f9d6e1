"""The counter of gas that settlements cost which were mined in vain."""

from collections.abc import Callable
from typing import Final

from prometheus_client import Counter

GAS: Final = Counter(
    "foretell_failed_settlement_gas",
    "gas of settlements that were mined in vain, by whether a wallet is proved to have made them fail",
    ["blamed"],
)

CountGas = Callable[[str, int], None]
"""Counts gas, by who is to blame: `wallet` or `nobody`."""


def count_gas(blamed: str, gas: int) -> None:
    """Count gas in the metrics of this process."""
    GAS.labels(blamed).inc(gas)
