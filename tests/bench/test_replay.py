import io
import re
from collections import Counter
from pathlib import Path

import pytest
import uvloop
from rich.console import Console
from tests.bench.printed_ratios import is_ratio
from tests.rigs.values import a_key

from foretell.bench.replay import StartRound, measure_start, run_bench_replay
from foretell.bench.rigs.journal_fixture import write_journal_fixture
from foretell.bench.rigs.startup import FoldFigures, Restored
from foretell.bench.rigs.world import World, make_world
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.commands import ObserveChain, PlaceOrder, decode_command
from foretell.domain.exchange.snapshot import decode_state
from foretell.journal.files.reader import fold, read_entries
from foretell.journal.files.snapshots import newest_snapshot
from foretell.journal.verify import verify

ORDERS = 300
EVENTS = 400


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(a_key("bench"))


def test_a_run_prints_its_ratio_its_start_and_the_memory_of_an_order() -> None:
    file = io.StringIO()
    run_bench_replay(1, ORDERS, EVENTS, Console(file=file, width=200))
    printed = file.getvalue()
    ((records, commands, ratio, ready),) = re.findall(
        r"│ 1 +│ ([\d,]+) +│ ([\d,]+) +│ (\d+\.\d\d) +│ (\d+\.\d) ", printed
    )
    rates = [float(each.replace(",", "")) for each in (records, commands)]
    assert is_ratio(ratio, *rates)
    start = rf"restart: ready after {re.escape(ready)} s, of which the snapshot takes \d+\.\d"
    assert re.search(start, printed)
    assert f"replay: {ratio} records" in printed
    (order_bytes,) = re.findall(r"^memory: ([\d,]+) bytes for each", printed, re.MULTILINE)
    assert int(order_bytes.replace(",", "")) > 500


def test_the_journal_of_a_run_has_the_numbers_that_were_asked_for(
    tmp_path: Path, world: World
) -> None:
    writing = write_journal_fixture(tmp_path, world, ORDERS, EVENTS, trades_per_block=20)
    last = uvloop.run(writing)
    snapshot = newest_snapshot(tmp_path)
    assert snapshot is not None
    assert len(decode_state(snapshot.payload).live_orders) == ORDERS
    entries = list(read_entries(tmp_path, snapshot.sequence))
    kinds = Counter(type(decode_command(entry.payload)) for entry in entries)
    assert len(entries) == EVENTS == last - snapshot.sequence
    assert kinds[ObserveChain] == 2
    assert kinds[PlaceOrder] > EVENTS / 2
    assert verify(tmp_path).last_sequence == last


def test_every_block_settles_the_trades_before_it(tmp_path: Path, world: World) -> None:
    until_block = len(world.conditions) * 6 + 1
    uvloop.run(write_journal_fixture(tmp_path, world, ORDERS, until_block, trades_per_block=50))
    state, _ = fold(tmp_path, newest_snapshot(tmp_path))
    assert (state.observed_block, len(state.unsettled_trades)) == (2, 0)
    assert len(state.live_orders) == ORDERS + len(world.conditions)


def test_states_that_differ_fail_the_benchmark(tmp_path: Path) -> None:
    memory = Restored(1.0, 1.0, FoldFigures(1, 1.0, "another", 0))
    results = iter([FoldFigures(1, 1.0, "one", 0), memory, 1.0])
    with pytest.raises(BenchFailed, match="in another state"):
        measure_start(tmp_path, a_key("bench"), run=lambda *_: next(results))


def test_the_ratio_is_records_over_commands() -> None:
    memory = Restored(0.5, 800.0, FoldFigures(100, 1.0, "", 0.1))
    shown = StartRound(FoldFigures(100, 4.0, "", 0.2), memory, 9.0)
    assert (shown.ratio, shown.others_cores) == (0.25, 0.2)
