"""Calls that take turns are measured again while they are slow and other programs use the machine."""

import pytest

from foretell.bench.rigs.machine import DISTURBED_CORES, Usage
from foretell.bench.rigs.reads import turns
from foretell.bench.rigs.reads.turns import ROUNDS_MAX, alternate_undisturbed, p99_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("others_cores", "is_slow", "rounds"),
    [
        ([1.0, 1.0, DISTURBED_CORES], True, 3),
        ([0.0], True, 1),
        ([1.0], False, 1),
        ([1.0] * ROUNDS_MAX, True, ROUNDS_MAX),
    ],
)
async def test_slow_calls_are_measured_again_until_they_are_undisturbed(
    monkeypatch: pytest.MonkeyPatch, others_cores: list[float], *, is_slow: bool, rounds: int
) -> None:
    usages = iter([use for cores in others_cores for use in (Usage(0, 0, 0), Usage(1, cores, 0))])
    monkeypatch.setattr(turns, "usage_with", lambda *_: next(usages))
    made = 0

    async def call() -> None:
        nonlocal made
        made += 1

    measured = await alternate_undisturbed([call], 1, (), lambda _: is_slow)
    assert measured.others_cores == others_cores[-1]
    assert len(measured.times[0].passed_ms) in {1, 2}
    assert 2 * rounds <= made <= 3 * rounds


def test_one_call_in_a_hundred_takes_longer_than_the_p99() -> None:
    assert p99_of([float(number) for number in range(200)]) == 198
    assert p99_of([1.0]) == 1.0
