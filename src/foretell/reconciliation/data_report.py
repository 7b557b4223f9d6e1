"""The report of a comparison of the tables with the chain: what was compared, and each difference."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

DIFFERENCES_NAMED_MAX: Final = 100
"""The most differences that a report names; it counts all of them."""


@dataclass(frozen=True, slots=True)
class DataDifference:
    """A row of a table that is not what was computed; None stands for no row."""

    table: str
    key: Hashable
    expected: Any
    of_table: Any


@dataclass(slots=True)
class DataReport:
    """What was compared, and what differs; `rows_held` is the most rows of the chain's figures in memory at once."""

    block_number: int
    block_hash: str
    now_s: int = 0
    """The time of the comparison; without it, cursors are not compared with the times of blocks."""
    rows: dict[str, int] = field(default_factory=dict)
    cursor_ages_s: dict[str, int] = field(default_factory=dict)
    """How far each cursor is behind the newest time that the tables have."""
    wallets: int = 0
    rows_held: int = 0
    found: int = 0
    differing: set[str] = field(default_factory=set)
    """The tables with differences."""
    differences: list[DataDifference] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether every row is what was computed."""
        return not self.found

    def add(self, table: str, key: Hashable, expected: object, of_table: object) -> None:
        """Count a row, and a difference if the two are not equal."""
        self.rows[table] = self.rows.get(table, 0) + 1
        if expected != of_table:
            self.found += 1
            self.differing.add(table)
            if len(self.differences) < DIFFERENCES_NAMED_MAX:
                self.differences.append(DataDifference(table, key, expected, of_table))
