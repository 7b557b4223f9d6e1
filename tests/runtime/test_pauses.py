import pytest

from foretell.runtime.pauses import OWED_S_MAX, TICK_S, Pauses


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
    assert pauses.add(0.5) == pytest.approx(0.5)
    now_s[0] = 5.25
    assert pauses.left_s == pytest.approx(0.25)
    assert pauses.add(0.5) == pytest.approx(0.75)
    now_s[0] = 20.0
    assert pauses.left_s == 0.0
    assert pauses.add(0.5) == pytest.approx(0.5)


def test_pauses_of_work_that_was_cut_short_do_not_add_up_for_ever() -> None:
    """A finding: exports that their clients cancelled left their rests to those of others."""
    pauses = Pauses(lambda: 5.0)
    for _ in range(1_000):
        pauses.add(0.05)
    assert pauses.left_s == OWED_S_MAX
