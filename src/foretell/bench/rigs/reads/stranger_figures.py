"""The figures of cheap reads beside a stranger's: their bar, their table, and their sentences."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.table import Table

from foretell.bench.rigs.machine import others_words
from foretell.bench.rigs.page import markdown_table
from foretell.bench.rigs.reads.stranger import StrangerTimes

MB: Final = 1e6
STRANGER_RATIO_MAX: Final = 2.0
HEADS: Final = ("read", "reads", "p99 alone", "p99 beside", "ratio")


class StrangerFigure(NamedTuple):
    """The times at one size of the history."""

    fills: int
    times: StrangerTimes

    @property
    def is_missed(self) -> bool:
        """Whether cheap reads take too long beside the stranger's."""
        return self.times.together.ratio > STRANGER_RATIO_MAX

    def rows(self) -> list[Sequence[str]]:
        """Return the cells of each cheap read, and of all."""
        return [
            (
                each.name,
                f"{each.reads:,}",
                f"{each.alone_ms:.2f} ms",
                f"{each.beside_ms:.2f} ms",
                f"{each.ratio:.2f}",
            )
            for each in (*self.times.cheap, self.times.together)
        ]

    def words(self) -> str:
        """Return the verdict, the read that suffers most, the cores of other programs, and the memory."""
        times, worst, together = self.times, self.times.worst, self.times.together
        return (
            f"{self.fills:,} fills: the p99 of {len(times.cheap)} cheap reads is {together.alone_ms:.1f} ms alone and"
            f" {together.beside_ms:.1f} ms beside a stranger's {times.dear:,} dear reads ({times.refused:,} more"
            f" refused): ratio {together.ratio:.2f}; bar {STRANGER_RATIO_MAX:g},"
            f" {'**missed**' if self.is_missed else 'met'}."
            f" Of {worst.name!r} alone it is {worst.ratio:.2f}, the largest of a single one."
            f" Other programs used {others_words(times.others_cores)} cores."
            f" The serving process then has {times.memory.serving / MB:.0f} MB,"
            f" that of dear reads {times.memory.dear / MB:.0f} MB."
        )

    def table(self) -> Table:
        """Return the table for a console."""
        table = Table()
        for head in HEADS:
            table.add_column(head, overflow="fold")
        for row in self.rows():
            table.add_row(*row)
        return table

    def lines(self) -> list[str]:
        """Return the sentences and the table in Markdown."""
        return [self.words(), "", markdown_table(HEADS, self.rows()), ""]


def growth_words(fewest: StrangerFigure, most: StrangerFigure) -> str:
    """Return the growth of the memory of both processes from one size to another."""
    first, last = fewest.times.memory, most.times.memory
    return (
        f"At {most.fills:,} fills the serving process has {last.serving / first.serving:.2f} times the memory that it"
        f" has at {fewest.fills:,}, that of dear reads {last.dear / first.dear:.2f} times."
    )
