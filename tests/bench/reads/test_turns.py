"""Calls that take turns are measured again while other programs use the machine."""

from functools import partial

import pytest

from foretell.bench.rigs.machine import DISTURBED_CORES, Usage
from foretell.bench.rigs.reads import turns
from foretell.bench.rigs.reads.turns import (
    ROUNDS_MAX,
    Alternation,
    Timed,
    alternate,
    alternate_undisturbed,
    p99_of,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("others_cores", "rounds", "chosen"),
    [
        ([1.0, 1.0, DISTURBED_CORES], 3, 2),
        ([0.0], 1, 0),
        ([0.5, 0.3, 0.9, 0.4, 0.6], ROUNDS_MAX, 1),
    ],
)
async def test_calls_are_measured_until_a_round_is_undisturbed_and_else_the_least_disturbed_is_chosen(
    monkeypatch: pytest.MonkeyPatch, others_cores: list[float], rounds: int, chosen: int
) -> None:
    """A finding: the first round that was not slow was taken, however disturbed it was."""
    usages = iter([use for cores in others_cores for use in (Usage(0, 0, 0), Usage(1, cores, 0))])
    monkeypatch.setattr(turns, "usage_with", lambda *_: next(usages))
    made: list[Timed] = []

    async def alternate(*_: object) -> list[Timed]:
        made.append(Timed([float(len(made))], [0.0]))
        return [made[-1]]

    monkeypatch.setattr(turns, "alternate", alternate)
    measured = await alternate_undisturbed([], 1, ())
    assert measured == Alternation([made[chosen]], others_cores[chosen], rounds)
    assert len(made) == rounds


async def test_each_call_is_made_in_turn_and_timed() -> None:
    made = []

    async def call(number: int) -> None:
        made.append(number)

    times = await alternate([partial(call, 0), partial(call, 1)], 2)
    assert made[:6] == [0, 1, 0, 1, 0, 1]
    assert len(times[0].passed_ms) == len(times[1].cpu_ms) == len(made) // 2 - 1


@pytest.mark.parametrize("number", [1, 99, 100, 101, 200, 1_000])
def test_at_most_one_call_in_a_hundred_exceeds_the_p99_and_more_exceed_any_shorter_time(
    number: int,
) -> None:
    """A finding: of a hundred calls it was the longest."""
    passed_ms = [float(each) for each in range(number)]
    p99_ms = p99_of(passed_ms[::-1])
    exceeding = sum(each > p99_ms for each in passed_ms)
    assert 100 * exceeding <= number < 100 * (exceeding + 1)
