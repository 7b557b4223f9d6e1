import io
import re

from rich.console import Console

from foretell.bench.memory import (
    DAY_S,
    SUBMITTED_AT_ONCE,
    DayPart,
    MemoryPlan,
    OrderBytes,
    day_of_orders,
    order_bytes,
    run_bench_memory,
    sized_bytes,
)
from foretell.bench.replay import in_new_process
from foretell.bench.rigs.figures import DAY, ORDER_BYTES

DAY_PLAN = MemoryPlan(
    orders=2_000,
    commands=10 * 2 * SUBMITTED_AT_ONCE,
    seconds=300.0,
    depth=300,
    warm_up_commands=SUBMITTED_AT_ONCE,
)


def test_memory_is_printed_with_its_growth_since_the_first_tenth() -> None:
    results = iter(
        [
            OrderBytes(620.4, 580.0),
            [DayPart(2.4, 500, 90, 10**8), DayPart(24.0, 1_500, 80, 11 * 10**7)],
        ]
    )
    file = io.StringIO()
    order, day = run_bench_memory(DAY_PLAN, Console(file=file, width=200), lambda *_: next(results))
    printed = file.getvalue()
    assert "620 bytes by the growth of the process, 580 by the sizes" in printed
    assert re.findall(r"│ 24\.0 +│ 1,500 +│ 80 +│ 110\.0 +│", printed)
    assert "1.10 times the memory after the first tenth, with 1,000 commands since" in printed
    assert (order.figure, order.seen) == (ORDER_BYTES, 620.4)
    assert (day.figure, day.seen, day.ceiling) == (DAY, 1.1, "100 MB after the first tenth")


def test_the_bytes_of_an_order_include_its_id_and_what_the_engine_keeps_of_it() -> None:
    """In a process of its own, in which other tests have left no memory to fill."""
    measured: OrderBytes = in_new_process(order_bytes, 2_000)
    assert 150 < measured.sized < 10_000
    assert measured.resident >= 0


def test_objects_are_counted_once_and_code_is_not() -> None:
    text = "x" * 1_000
    one, two = sized_bytes([text]), sized_bytes([text, text, sized_bytes, str])
    assert one > 1_000
    assert two - one < 100


def test_a_day_of_orders_passes_by_commands() -> None:
    parts = day_of_orders(DAY_PLAN)
    assert [part.commands for part in parts] == [
        2 * SUBMITTED_AT_ONCE * number for number in range(1, 11)
    ]
    assert parts[-1].hour == DAY_S / 3600
    assert all(0 < part.resting < 2 * DAY_PLAN.depth for part in parts)
    assert all(part.resident_bytes > 10_000_000 for part in parts)


def test_a_day_without_time_ends_early() -> None:
    parts = day_of_orders(DAY_PLAN._replace(seconds=0.0))
    assert [(part.hour, part.commands) for part in parts] == [(0.0, 0)] * 10
