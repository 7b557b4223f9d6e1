"""The comparison of one table with what it should have, in both directions.

A table is read in pages. Each row is looked up among the figures, and afterwards each figure among the rows seen.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.reconciliation.data_report import DataReport
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables.indexing import ODD


class ComparedTable(NamedTuple):
    """A table, and what it should have by the chain or the trades; a value of None stands for no row, on both sides."""

    table: sa.Table
    figures: SpilledRows[Any, Any]
    key: Callable[[Any], Any]
    of_table: Callable[[Any], object]
    of_chain: Callable[[Any], object] = lambda value: value
    is_compared: Callable[[Any], bool] = lambda _: True
    """Whether the chain's logs say something of a key; rows of others are passed over."""


async def compare(
    compared: ComparedTable,
    spill: SpillFile,
    pages: AsyncIterator[Sequence[sa.Row[Any]]],
    report: DataReport,
) -> None:
    """Compare the rows of a table's pages."""
    name, figures = compared.table.name.removeprefix(ODD), compared.figures
    report.rows[name] = 0
    seen: SpilledRows[Any, bool] = spill.mapping(f"seen_{name}", figures.columns, bool)
    async for page in pages:
        for row in page:
            kept, key = compared.of_table(row), compared.key(row)
            if kept is not None and compared.is_compared(key):
                figure = figures.get(key)
                counted = None if figure is None else compared.of_chain(figure)
                report.add(name, key, counted, kept)
                seen[key] = True
    for key, figure in figures.items():
        counted = compared.of_chain(figure)
        if counted is not None and key not in seen and compared.is_compared(key):
            report.add(name, key, counted, None)
