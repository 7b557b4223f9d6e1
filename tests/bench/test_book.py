import io
import re

from rich.console import Console
from tests.bench.printed_ratios import is_ratio

from foretell.bench.book import BookPlan, BookRound, run_bench_book
from foretell.bench.rigs.figures import BOOK
from foretell.bench.rigs.trading_alone import CONSTANT_BODY

PLAN = BookPlan(rounds=1, orders_per_s=50, seconds=0.6, connections=4, warm_up_orders=20)


def test_reads_of_a_book_under_orders_are_printed_next_to_those_of_a_constant_body() -> None:
    file = io.StringIO()
    (measurement,) = run_bench_book(PLAN, Console(file=file, width=200))
    printed = file.getvalue()
    ((constant, book, ratio),) = re.findall(r"│ 1 +│ ([\d,]+) +│ ([\d,]+) +│ (\S+) +│", printed)
    rates = [float(each.replace(",", "")) for each in (book, constant)]
    assert is_ratio(ratio, *rates)
    assert f"book: {ratio} reads of a book under 50 orders a second" in printed
    assert (measurement.figure, f"{measurement.seen:.2f}") == (BOOK, ratio)
    assert measurement.ceiling == f"{constant} reads/s of a constant 4 kB"


def test_the_ratio_is_reads_of_the_book_over_reads_of_the_constant_body() -> None:
    assert BookRound(8_000, 6_000, 1.0, 0.0).ratio == 0.75


def test_the_constant_body_has_four_kilobytes() -> None:
    assert len(CONSTANT_BODY) == 4096
