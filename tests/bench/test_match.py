import importlib.util
import io
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import pytest
from rich.console import Console
from tests.bench.printed_ratios import is_ratio
from tests.rigs.values import a_key

from foretell.bench.match import HOW_TO_GET_PEERS, Field, Speeds, run_bench_match
from foretell.bench.rigs.command_stream import CommandStream
from foretell.bench.rigs.engines import (
    PEERS,
    BookFill,
    Contender,
    OwnBook,
    WholeEngine,
    installed_peers,
)
from foretell.bench.rigs.operations import ROUND, operations
from foretell.bench.rigs.world import World, funding_command, make_world, market_commands
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.state import State

DEPTHS = (10, 20, 40)


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(a_key("bench"))


def printed_by_a_run() -> str:
    file = io.StringIO()
    run_bench_match(2, 300, Console(file=file, width=200), DEPTHS)
    return file.getvalue()


def test_matching_is_printed_by_depth_next_to_the_best_peer() -> None:
    printed = printed_by_a_run()
    rows = re.findall(
        r"│ (\d+) +│ [\d,]+ +│ ([\d,]+) +│ ([\d,]+) +│ ([\d,]+) +│ (\d+\.\d\d) +│ (\d+) ", printed
    )
    assert [int(row[0]) for row in rows] == [10, 10, 20, 20, 40, 40]
    for _, book, light, py, ratio, fills in rows:
        ours, *peers = (float(each.replace(",", "")) for each in (book, light, py))
        assert is_ratio(ratio, ours, max(peers))
        assert int(fills) == pytest.approx(75, abs=1)
    assert "with 40 resting orders that there are with 20" in printed
    assert re.search(
        r"^match: \d+\.\d\d \(10 resting\), \d+\.\d\d \(20 resting\),", printed, re.MULTILINE
    )
    assert re.search(
        r"^match-engine: \d+\.\d\d commands .* with 20 resting orders", printed, re.MULTILINE
    )


def test_without_peers_the_engine_is_measured_with_a_note_on_installing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    printed = printed_by_a_run()
    assert "match-depth: " in printed
    assert HOW_TO_GET_PEERS in printed
    assert not re.search("^match: ", printed, re.MULTILINE)


def test_every_peer_is_installed_for_the_tests() -> None:
    assert installed_peers().keys() == PEERS.keys()


@pytest.fixture(params=["engine", "book", *PEERS])
def contender(request: pytest.FixtureRequest, world: World) -> Contender:
    makers: dict[str, Callable[[], Contender]] = {
        "engine": lambda: WholeEngine(world),
        "book": OwnBook,
        **PEERS,
    }
    return makers[request.param]()


def test_each_contender_reports_the_makers_of_every_fill(contender: Contender) -> None:
    """In the second round a best order stays in part, and is met before the next one."""
    first_best, second_best = 10 + 2, 10 + 4 + 2
    done = list(islice(operations(10), 10 + 2 * ROUND))
    results = contender.run(contender.prepare(done))
    assert contender.fills(results) == [
        BookFill(first_best, 1, 41),
        BookFill(first_best, 1, 41),
        BookFill(second_best, 2, 41),
    ]


class Liar:
    """A contender that reports no fill."""

    def prepare(self, operations: Sequence[Any]) -> Sequence[Any]:
        return operations

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        return prepared

    def fills(self, results: Sequence[Any]) -> list[BookFill]:
        del results
        return []


def test_other_fills_fail_the_benchmark() -> None:
    field = Field(10, {"book": OwnBook(), "liar": Liar()})
    with pytest.raises(BenchFailed, match="liar reported other fills"):
        field.measure(ROUND)


@pytest.mark.parametrize("markets", [1, 7])
def test_the_rounds_of_a_stream_keep_the_depth_of_every_book(world: World, markets: int) -> None:
    state = State()
    for opening in market_commands(world, 0):
        apply(state, opening)
    apply(state, funding_command(world, 0))
    depth = 100
    for command in islice(
        CommandStream(world, markets).commands(depth), depth + markets * 2 * ROUND
    ):
        assert apply(state, command).is_change
    assert len(state.live_orders) == depth
    depths = [len(list(market.book.orders())) for market in state.market_by_id.values()]
    assert max(depths[:markets]) - min(depths[:markets]) <= 1
    assert len(state.unsettled_trades) == 2 * markets


def test_the_ratio_is_over_the_fastest_peer() -> None:
    speeds = Speeds(10, {"engine": 1.0, "book": 6.0, "a": 2.0, "b": 3.0}, 0, 0.0)
    assert speeds.ratio == 2.0
    assert speeds.engine_ratio == pytest.approx(1 / 3)
    alone = speeds._replace(per_s={"engine": 1.0, "book": 6.0})
    assert (alone.ratio, alone.engine_ratio) == (None, None)
