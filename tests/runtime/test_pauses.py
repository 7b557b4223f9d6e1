import pytest

from foretell.runtime.pauses import TICK_S, Pauses


def test_pauses_that_a_timer_cannot_keep_are_added_to_the_next() -> None:
    """A finding: half a millisecond is no time for a timer of uvloop, and short parts had no pauses."""
    now_s, slept_s = [5.0], 0.0
    pauses = Pauses(lambda: now_s[0])
    for _ in range(100):
        now_s[0] += 0.0001
        waits_s = round(pauses.add(0.0003, 0.0001), 3)
        slept_s += waits_s
        now_s[0] += waits_s
    assert slept_s == pytest.approx(100 * 0.0003, abs=2 * TICK_S)


def test_a_pause_that_is_over_shortens_no_later_one() -> None:
    now_s = [5.0]
    pauses = Pauses(lambda: now_s[0])
    assert pauses.left_s == 0.0
    assert pauses.add(2.0) == pytest.approx(2.0)
    now_s[0] = 6.0
    assert pauses.left_s == pytest.approx(1.0)
    assert pauses.add(2.0) == pytest.approx(3.0)
    now_s[0] = 20.0
    assert pauses.left_s == 0.0
    assert pauses.add(2.0) == pytest.approx(2.0)
