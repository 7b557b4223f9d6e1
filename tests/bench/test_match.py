import importlib.util
import io
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import pytest
from rich.console import Console
from tests.rigs.values import a_key

from foretell.bench import match
from foretell.bench.match import HOW_TO_GET_PEERS, Field, Speeds, run_bench_match
from foretell.bench.rigs.command_stream import Stream
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


def printed(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(match, "DEPTHS", DEPTHS)
    file = io.StringIO()
    run_bench_match(2, 300, Console(file=file, width=200))
    return file.getvalue()


def test_matching_is_told_by_the_depth_of_the_book_beside_the_best_peer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = printed(monkeypatch)
    rows = re.findall(
        r"│ (\d+) +│ [\d,]+ +│ ([\d,]+) +│ ([\d,]+) +│ ([\d,]+) +│ (\d+\.\d\d) +│ (\d+) ", told
    )
    assert [int(row[0]) for row in rows] == [10, 10, 20, 20, 40, 40]
    for _, book, light, py, ratio, fills in rows:
        ours, *peers = (float(each.replace(",", "")) for each in (book, light, py))
        assert float(ratio) == pytest.approx(ours / max(peers), abs=0.02)
        assert int(fills) == pytest.approx(75, abs=1)
    assert "with 40 resting orders that there are with 20" in told
    assert re.search(
        r"^match: \d+\.\d\d \(10 resting\), \d+\.\d\d \(20 resting\),", told, re.MULTILINE
    )


def test_without_peers_the_engine_is_measured_and_it_is_said_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    told = printed(monkeypatch)
    assert "match-depth: " in told
    assert HOW_TO_GET_PEERS in told
    assert not re.search("^match: ", told, re.MULTILINE)


def test_every_peer_is_there_where_the_tests_run() -> None:
    assert installed_peers().keys() == PEERS.keys()


@pytest.fixture(params=["engine", "book", *PEERS])
def contender(request: pytest.FixtureRequest, world: World) -> Contender:
    makers: dict[str, Callable[[], Contender]] = {
        "engine": lambda: WholeEngine(world),
        "book": OwnBook,
        **PEERS,
    }
    return makers[request.param]()


def test_each_tells_whom_every_taker_met(contender: Contender) -> None:
    """In the second round a best order is left in part, and met before the next one."""
    first_best, second_best = 10 + 2, 10 + 4 + 2
    done = list(islice(operations(10), 10 + 2 * ROUND))
    said = contender.run(contender.prepare(done))
    assert contender.fills(said) == [
        BookFill(first_best, 1, 41),
        BookFill(first_best, 1, 41),
        BookFill(second_best, 2, 41),
    ]


class Liar:
    """A contender that tells of no fill."""

    def prepare(self, operations: Sequence[Any]) -> Sequence[Any]:
        return operations

    def run(self, prepared: Sequence[Any]) -> Sequence[Any]:
        return prepared

    def fills(self, said: Sequence[Any]) -> list[BookFill]:
        del said
        return []


def test_other_fills_fail_the_benchmark() -> None:
    field = Field(10, {"book": OwnBook(), "liar": Liar()})
    with pytest.raises(BenchFailed, match="liar told other fills"):
        field.measure(ROUND)


@pytest.mark.parametrize("markets", [1, 7])
def test_the_rounds_of_a_stream_leave_every_book_as_deep(world: World, markets: int) -> None:
    state = State()
    for opening in market_commands(world, 0):
        apply(state, opening)
    apply(state, funding_command(world, 0))
    depth = 100
    for command in islice(Stream(world, markets).commands(depth), depth + markets * 2 * ROUND):
        assert apply(state, command).is_change
    assert len(state.live_orders) == depth
    depths = [len(list(market.book.orders())) for market in state.market_by_id.values()]
    assert max(depths[:markets]) - min(depths[:markets]) <= 1
    assert len(state.unsettled_trades) == 2 * markets


def test_the_ratio_is_to_the_fastest_peer() -> None:
    speeds = Speeds(10, {"engine": 1.0, "book": 6.0, "a": 2.0, "b": 3.0}, 0, 0.0)
    assert speeds.ratio == 2.0
    assert speeds._replace(per_s={"engine": 1.0, "book": 6.0}).ratio is None
